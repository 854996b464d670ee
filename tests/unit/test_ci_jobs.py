"""The ready CI jobs: valid for the services' published schemas, and every command in them is one that the lab has."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from lab.cli.app import app
from lab.gate.read import read_gate
from lab.report.exports.format_names import Format

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
GITHUB, GITLAB = CI / "github-actions.yml", CI / "gitlab-ci.yml"


def jobs(path: Path) -> dict[str, list[str]]:
    """The shell lines of each job."""
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path == GITHUB:
        texts = {name: [step.get("run", "") for step in job["steps"]] for name, job in told["jobs"].items()}
    else:
        parts = ("before_script", "script", "after_script")
        base = told[".lab"]
        texts = {
            name: [line for part in parts for line in (base | job).get(part, [])]
            for name, job in told.items()
            if isinstance(job, dict) and "extends" in job
        }
    return {name: [line.strip() for text in found for line in text.splitlines()] for name, found in texts.items()}


def commands(line: str) -> Iterator[list[str]]:
    """The arguments of each ``lab`` that a shell line calls."""
    words = shlex.split(line.replace("$LAB_BUILDS", "0.19.0"), comments=True)
    if words and words[0] in ("lab", ".venv/bin/lab"):
        end = next((n for n, word in enumerate(words) if word in (">", "|", "&&", "||")), len(words))
        yield words[1:end]


ALL = [
    (path, args)
    for path in (GITHUB, GITLAB)
    for lines in jobs(path).values()
    for line in lines
    for args in commands(line)
]


def parse(args: list[str]) -> Any:
    """Parses a command line as the lab does, without doing what it says; returns the innermost context."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("lab", list(args))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return context
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.mark.parametrize(
    ("path", "args"), ALL, ids=lambda value: value.stem if isinstance(value, Path) else " ".join(value)
)
def test_every_command_is_one_with_these_options(path: Path, args: list[str]) -> None:
    context = parse(args)
    assert context.command.callback is not None
    for name in context.params.get("formats") or ():
        Format(name)


@pytest.mark.parametrize(
    "args",
    [["gaet"], ["gate", "--rulez", "x"], ["history", "append"], ["run", "--error-budget", "7"], ["build", "--json=x"]],
    ids=" ".join,
)
def test_the_check_sees_a_wrong_command(args: list[str]) -> None:
    with pytest.raises(
        Exception, match=r"No such (command|option)|does not take a value|less than or equal|not in the range"
    ):
        parse(args)


def test_the_jobs_do_what_the_guide_says() -> None:
    for path in (GITHUB, GITLAB):
        found = {name: [args for line in lines for args in commands(line)] for name, lines in jobs(path).items()}
        trials, bench = ([" ".join(args) for args in found[name]] for name in ("contamination", "benchmark"))
        for wanted in ("build --backend", "run --backend", "export report --format junit --format sarif", "gate"):
            assert any(command.startswith(wanted) for command in trials), (path.name, wanted)
        for wanted in ("bench", "history add", "history draw", "gate"):
            assert any(command.startswith(wanted) for command in bench), (path.name, wanted)
        assert len(ALL) > 12


def test_no_host_is_named_and_actions_are_pinned() -> None:
    for path in (GITHUB, GITLAB):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text
        assert not re.search(r"\b[\w-]+\.(io|com|org|dev|net)\b", text)
    uses = re.findall(r"uses: (\S+)", GITHUB.read_text(encoding="utf-8"))
    assert len(uses) >= 8
    assert all(re.fullmatch(r"(actions|github)/[\w/-]+@v\d+", name) for name in uses)


def test_what_the_cache_keys_are_made_of_is_there() -> None:
    text = GITHUB.read_text(encoding="utf-8")
    patterns = [p for found in re.findall(r"hashFiles\(([^)]*)\)", text) for p in re.findall(r"'([^']*)'", found)]
    for pattern in patterns:
        assert pattern.startswith("exports/") or any(ROOT.glob(pattern + ("/*" if pattern.endswith("**") else ""))), (
            pattern
        )
    told = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    caches = [cache for job in told.values() if isinstance(job, dict) for cache in job.get("cache", [])]
    files = [file for cache in caches if isinstance(cache["key"], dict) for file in cache["key"]["files"]]
    assert len(files) == 4
    assert all((ROOT / file).is_file() for file in files)


@pytest.mark.parametrize(
    ("path", "options"),
    [
        (GITHUB, ("--builtin-schema", "vendor.github-workflows")),
        (GITLAB, ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")),
    ],
    ids=["github", "gitlab"],
)
def test_the_services_schemas_accept_the_jobs_and_no_broken_ones(
    path: Path, options: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("check_jsonschema", reason="pip install 'check-jsonschema>=0.29,<1'")

    def check(file: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "check_jsonschema", *options, str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = check(path)
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / path.name
    broken.write_text(path.read_text(encoding="utf-8").replace("  cache:", "  cash:").replace("runs-on:", "run-on:"))
    broken.write_text(broken.read_text(encoding="utf-8").replace("when: always", "when: sometimes"))
    assert check(broken).returncode == 1


def test_the_example_of_rules_is_read() -> None:
    file = read_gate(CI / "lab.toml")
    assert {type(rule).__name__ for rule in file.gate.rule} == {"RateRule", "MeasureRule"}
    assert all(rule.reason for rule in file.gate.rule) and all(file.lines)
