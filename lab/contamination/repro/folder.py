"""Writes the reproduction of a trial: one folder that needs Docker or bubblewrap and the agent, and not the lab."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.agents.hermes.recipe import Recipe, containers_directory, copy_driver, find_recipe
from lab.agents.hermes.sources import parse_source
from lab.agents.hermes.store import Store as Cache
from lab.contamination.observe.judge import AFTER, BEFORE, REQUESTS, SETTLED
from lab.contamination.repro.readme import readme
from lab.contamination.repro.recorded import PHASES, answers, as_json, expected
from lab.contamination.script import seed_of, turn_texts
from lab.contamination.single import read_result
from lab.contamination.stores import Manifest, kept_bytes
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.gateway.exchange import read_exchanges
from lab.records import Store, TrialResult, file_digest
from lab.runs.folder import CHECKSUMS

KIT = ("endpoint.py", "check.py", "reproduce.sh")
EXPECTED, ANSWERS, HOME = "expected.json", "answers.json", "home"
_CHECK_SECONDS = 120


@dataclass(frozen=True)
class Reproduction:
    """What was written.

    Attributes:
        folder: Where.
        shows: What the reproduction shows, in one line.
        files: Names of all files, relative to the folder.
    """

    folder: Path
    shows: str
    files: tuple[str, ...]


def export_repro(
    suite: Suite, trial: str, target: Path, progress: Callable[[str], None] = lambda _: None
) -> Reproduction:
    """Writes the reproduction of a trial, and checks on recorded bytes that its ``check.py`` tells right from wrong.

    Args:
        suite: The run.
        trial: Id of the trial.
        target: Folder to make; it must not be there, or be empty.
        progress: Told one line before a long step.

    Raises:
        InputError: The trial shows nothing, its evidence is damaged, or build or driver are no longer the locked ones.
        OSError: The folder cannot be written.
    """
    result = read_result(suite, trial)
    scenario = suite.scenarios[result.scenario]
    wanted = expected(result, scenario)
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise InputError(f"{target} is there already", "name another folder with --to")
    build = suite.lock["builds"][result.build]
    recipe = find_recipe(parse_source(suite.locked.builds[result.build].source), Cache(), progress)
    _check_recipe(recipe, build)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        _write_kit(made, recipe)
        _write_trial(made, suite, result)
        (made / EXPECTED).write_text(as_json(wanted), encoding="utf-8")
        _check_itself(made, suite.folder.trial(trial), result, Path(scratch))
        delivered = turn_texts(scenario, result.role)
        (made / ANSWERS).write_text(
            as_json(answers(read_exchanges(suite.folder.trial(trial) / REQUESTS), delivered)), encoding="utf-8"
        )
        (made / "README.md").write_text(readme(suite.lock, result, scenario, wanted["shows"], recipe), encoding="utf-8")
        files = tuple(str(p.relative_to(made)) for p in sorted(made.rglob("*")) if p.is_file())
        sums = "".join(f"{file_digest(made / name)}  {name}\n" for name in files)
        (made / CHECKSUMS).write_text(sums, encoding="utf-8")
        if target.exists():
            target.rmdir()
        made.rename(target)
    return Reproduction(target, wanted["shows"], (*files, CHECKSUMS))


def _check_recipe(recipe: Recipe, build: dict[str, Any]) -> None:
    """Driver and lock must be those of the trial: another one would be another experiment."""
    for what, had, has in (
        ("the driver", build.get("driver_digest"), recipe.driver_digest()),
        ("the lock of the agent", build.get("lock_digest"), file_digest(recipe.lock)),
    ):
        if had != has:
            raise InputError(f"{what} is no longer what the run was made with", "run the scenario again: lab run")


def _write_kit(made: Path, recipe: Recipe) -> None:
    """All that is a program: the lab's own files, none of which holds a word of the trial."""
    source = containers_directory() / "repro"
    for name in (*KIT, "Dockerfile"):
        if not (source / name).is_file():
            raise InputError(f"{source / name} is missing", "use a complete checkout")
    for name in KIT:
        shutil.copyfile(source / name, made / name)
    (made / "driver").mkdir()
    copy_driver(recipe, made / "driver")
    image = made / "image"
    (image / "wheels").mkdir(parents=True)
    shutil.copyfile(source / "Dockerfile", image / "Dockerfile")
    shutil.copyfile(recipe.lock, image / "requirements.lock")
    note = "Wheels for an installation without a package index, or that no index has, go here.\n"
    (image / "wheels" / "README").write_text(note)
    if recipe.wheel:
        shutil.copyfile(recipe.wheel, image / "wheels" / recipe.wheel.name)


def _write_trial(made: Path, suite: Suite, result: TrialResult) -> None:
    """The home before, the driver's jobs, the command and its environment."""
    evidence, agent = suite.folder.trial(result.trial), suite.agents[result.build]
    scenario, setup = suite.scenarios[result.scenario], suite.locked.setups[result.setup]
    home = made / HOME
    home.mkdir()
    agent.initialise_home(home, seed_of(scenario, result.role), setup)
    before = _manifest(evidence / BEFORE)
    laid = {str(p.relative_to(home)): file_digest(p) for p in home.rglob("*") if p.is_file()}
    if laid != {path: state.sha256 for path, state in before.files.items()}:
        raise InputError(f"this lab no longer lays out the home of {result.trial} as it was", "run the scenario again")
    for phase in PHASES:
        job = evidence / f"job-{phase}.json"
        if job.is_file():
            name = "job.json" if phase == "session" else job.name
            shutil.copyfile(job, made / name)
    (made / "command.list").write_text("".join(f"{word}\n" for word in agent.command()))
    (made / "env.list").write_text("".join(f"{name}={value}\n" for name, value in agent.environment().items()))
    (made / "agent.list").write_text(f"{agent.product}={suite.lock['builds'][result.build]['version']}\n")
    (made / "recorded").mkdir()
    shutil.copyfile(evidence / "stores.diff", made / "recorded" / "stores.diff")


def _manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or damaged", "run the trial again: lab resume") from error


def _check_itself(made: Path, evidence: Path, result: TrialResult, scratch: Path) -> None:
    """Runs ``check.py`` on the home as it was recorded afterwards, and on the one before unless nothing was changed."""
    after = _manifest(evidence / (SETTLED if result.settled else AFTER))
    home = scratch / "after"
    shutil.copytree(made / HOME, home)
    before = _manifest(evidence / BEFORE)
    for path in before.changed(after):
        state, place = after.files.get(path), home / path
        # Stores alone are looked at; a name that an agent gave is never taken as a place outside of this home.
        if (state or before.files[path]).store is Store.OTHER or ".." in place.parts or not place.is_relative_to(home):
            continue
        if state is None:
            place.unlink(missing_ok=True)
        elif state.kept:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(kept_bytes(state, evidence))
    log = scratch / "log"
    log.write_text('{"answered": {"foreground": 1}, "recorded": {}, "difference": ""}')
    if _check(made, home, log) != 0:
        raise InputError(
            f"what {result.trial} left is held in a form that a plain look at the bytes does not find",
            "attach the trial's folder instead",
        )
    if not result.stores_unchanged and _check(made, made / HOME, log) == 0:
        raise InputError(f"nothing in the stores tells {result.trial} from a trial without effect", "export another")


def _check(made: Path, home: Path, log: Path) -> int:
    command = [sys.executable, "-I", *map(str, (made / "check.py", made / EXPECTED, home, log))]
    return subprocess.run(command, check=False, capture_output=True, timeout=_CHECK_SECONDS).returncode
