"""Bad input and broken machines: one clear line, the documented exit code, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import LabCommand, only_run

PROJECT = Path(__file__).parents[2]
ONE = ("--select", "F5-001", "--models", "scripted:faithful")


@pytest.fixture
def scenarios(tmp_path: Path, small_library: Path) -> Path:
    copy = tmp_path / "scenarios"
    shutil.copytree(small_library, copy)
    return copy


def test_lint_names_file_line_and_mend(lab: LabCommand, installed: LabCommand, scenarios: Path) -> None:
    assert installed("lint", "--scenarios", scenarios).code == 0
    broken = scenarios / "F1" / "F1-003.yaml"
    lines = broken.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.startswith("language:"))
    lines[number - 1] = "language: klingon"
    broken.write_text("\n".join(lines))
    done = lab("lint", "--scenarios", scenarios)
    assert done.code == 2
    assert f"F1-003.yaml:{number}: " in done.out and "→" in done.out
    assert lab("lint", "--scenarios", scenarios, "--json").json[0]["line"] == number


@pytest.mark.bwrap
def test_a_corrupted_scenario_stops_the_run_before_it_begins(
    lab: LabCommand, scenarios: Path, bwrap: str, tmp_path: Path
) -> None:
    (scenarios / "F5" / "F5-001.yaml").write_bytes(b"id: F5-001\n\xff\xfe")
    done = lab("run", "--backend", bwrap, "--scenarios", scenarios, *ONE)
    assert done.code == 2 and done.is_one_clear_line()
    assert "F5-001.yaml" in done.err and "lab lint" in done.err
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--backend", "podman"), "podman"),
        (("run", "--backend", "bwrap", "--models", "scripted:sometimes"), "sometimes"),
        (("run", "--backend", "bwrap", "--models", "gpt"), "gpt"),
        (("run", "--backend", "bwrap", "--setups", "nowhere"), "nowhere"),
        (("run", "--backend", "bwrap", "--select", "F9-*"), "F9-*"),
        (("run", "--backend", "bwrap", "--families", "F7"), "F7"),
        (("build", "--backend", "bwrap", "--build", ","), "no build"),
        (("agent", "check", "--backend", "bwrap", "--build", "/nowhere"), "/nowhere"),
        (("agent", "check", "--backend", "bwrap", "--patches", "/nowhere.toml"), "/nowhere.toml"),
        (("run", "--backend", "bwrap", "--builds", "9.9.9"), "9.9.9"),
        (("run", "--backend", "bwrap", "--builds", "0.19.0,0.19.0"), "twice"),
        (("run", "--backend", "bwrap", "--builds", "0.19.0", "--builds", "0.19.0"), "twice"),
        (("run", "--backend", "bwrap", "--builds", ","), "no build"),
        (("run", "--backend", "bwrap", "--shard", "5/4"), "5/4"),
        (("run", "--backend", "bwrap", "--shard", "0/3"), "0/3"),
        (("run", "--backend", "bwrap", "--shard", "second"), "second"),
        (("run", "--backend", "bwrap", "--tags", "no-such-tag"), "no-such-tag"),
        (("run", "--backend", "bwrap", "--select", "F1-001,!F1-*"), "selection holds no scenario"),
        (("run", "--backend", "bwrap", "--models", "scripted:faithful,scripted:faithful"), "twice"),
        (("clean", "--backend", "nonsense"), "nonsense"),
        (("resume", "/nowhere"), "/nowhere"),
        (("report",), "no run folder"),
        (("rescore", "/tmp"), "/tmp"),
    ],
)
def test_a_wrong_name_is_named(lab: LabCommand, arguments: tuple[str, ...], words: str) -> None:
    done = lab(*arguments)
    assert done.code == 2, done.err
    assert done.is_one_clear_line() and words in done.err


def test_a_build_that_there_is_not_is_named(installed: LabCommand) -> None:
    done = installed("build", "--backend", "bwrap", "--build", "9.9.9")
    assert done.code == 2 and done.is_one_clear_line() and "9.9.9" in done.err


def test_usage_errors_exit_with_2(lab: LabCommand, installed: LabCommand) -> None:
    assert installed("nonsense").code == 2
    assert lab("run", "--repeats", "0").code == 2


@pytest.mark.parametrize("text", ["[run\n", "run = 5", "[runn]", "[run]\nmodles = 'x'", "[agent]\ncheck = 5"])
def test_a_broken_configuration_file_is_named(lab: LabCommand, tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.toml").write_text(text)
    done = lab("lint")
    assert done.code == 2 and done.is_one_clear_line() and "lab.toml" in done.err


@pytest.mark.agent
@pytest.mark.bwrap
def test_lab_toml_gives_defaults_and_flags_win(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text('[run]\nselect = "F5-00[12]"\nmodels = "scripted:faithful"\n')
    assert len(lab("run", "--backend", bwrap, "--plan", "--json").json["trials"]) == 2
    assert len(lab("run", "--backend", bwrap, "--select", "F5-001", "--plan", "--json").json["trials"]) == 1
    environment = {"LAB_MODELS": "scripted:faithful,scripted:never-write"}
    assert len(lab("run", "--backend", bwrap, "--plan", "--json", **environment).json["trials"]) == 4


@pytest.mark.agent
@pytest.mark.bwrap
@pytest.mark.parametrize("builds", ['"0.19.0,9.9.9"', '["0.19.0", "9.9.9"]'])
def test_builds_in_lab_toml_are_a_list_or_comma_separated(
    lab: LabCommand, bwrap: str, tmp_path: Path, builds: str
) -> None:
    (tmp_path / "lab.toml").write_text(f"[run]\nbuilds = {builds}\n")
    done = lab("run", "--backend", bwrap, "--plan")
    assert done.code == 2 and done.is_one_clear_line() and "9.9.9" in done.err
    assert lab("run", "--backend", bwrap, "--plan", "--builds", "0.19.0").code == 0
    assert lab("run", "--backend", bwrap, "--plan", LAB_BUILDS="0.19.0").code == 0


@pytest.mark.bwrap
def test_no_engine_and_no_bubblewrap_names_both_mends(installed: LabCommand, bwrap: str) -> None:
    """The lab never falls back to running the agent unsandboxed."""
    if os.geteuid() != 0:
        pytest.skip("hiding bubblewrap from one process needs root — run the tests as root")
    hidden = shutil.which("bwrap")
    without = ("unshare", "--mount", "sh", "-c", f'mount --bind /dev/null {hidden} && exec "$@"', "sh")
    done = installed("run", "--select", "F5-001", before=without, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.code == 4 and done.is_one_clear_line(), done.err
    assert "apt-get install -y bubblewrap" in done.err and "apt-get install -y docker.io" in done.err


def test_clean_cannot_be_sure_without_an_engine(installed: LabCommand) -> None:
    done = installed("clean", "--backend", "docker", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.code == 4 and done.is_one_clear_line()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root — run the tests as root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.agent
@pytest.mark.bwrap
def test_a_full_disk_loses_nothing_and_can_be_resumed(
    lab: LabCommand, installed: LabCommand, bwrap: str, small_disk: Path
) -> None:
    reports = small_disk / "reports"
    selection = ("--select", "F5-00[123]", "--models", "scripted:faithful", "--jobs", "1")
    done = lab("run", "--backend", bwrap, *selection, LAB_REPORTS=str(reports))
    assert done.code == 4 and done.is_one_clear_line(), done.err
    assert "the disk is full" in done.err and "lab resume" in done.err
    folder = only_run(reports)
    kept = {p: p.read_bytes() for p in folder.glob("trials/*/result.json")}
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    done = installed("resume", folder, "--json", LAB_REPORTS=str(reports))
    assert done.code == 0, done.err
    assert done.json["accounting"]["valid"] == 3
    assert all(path.read_bytes() == content for path, content in kept.items())


@pytest.mark.agent
@pytest.mark.bwrap
def test_an_agent_that_is_too_slow_blows_the_error_budget(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    done = lab("run", "--backend", bwrap, *ONE, "--timeout", "1")
    assert done.code == 3 and done.is_one_clear_line(), done.err
    assert "1 of 1 planned trials" in done.err
    folder = only_run(tmp_path / "reports")
    assert "sandbox_timeout" in (folder / "report.md").read_text()
    assert "tried again: 1 after sandbox_timeout" in done.err
    assert [p.name.rpartition(".")[2] for p in folder.glob("earlier/*")] == ["1"], "the first attempt is kept"


@pytest.mark.agent
@pytest.mark.bwrap
def test_hostile_text_is_inert_in_every_output(lab: LabCommand, scenarios: Path, bwrap: str, tmp_path: Path) -> None:
    path = scenarios / "F5" / "F5-001.yaml"
    hostile = r"<script>document.title='x'</script><img src=x onerror=alert(1)>\e[31m\0\u202e=cmd|' /C calc'!A0"
    text = path.read_text().replace("title:", f'title: "{hostile}"\n_:', 1)
    lines = [line for line in text.splitlines() if not line.startswith("_:")]
    path.write_text("\n".join(lines) + "\n")
    done = lab("run", "--backend", bwrap, "--scenarios", scenarios, *ONE)
    assert done.code == 0, done.err
    assert not set(done.err + done.out) & set("\x1b\x00\u202e")
    folder = only_run(tmp_path / "reports")
    pages = [folder / "report.html", *(folder / "pages").iterdir()]
    assert len(pages) > 1
    for path in pages:
        page = path.read_text().lower()
        assert page.count("<script") == (path.name == "report.html") and "<img" not in page
        assert not set(page) & set("\x1b\x00\u202e")
