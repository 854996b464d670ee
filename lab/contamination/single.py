"""One trial on its own, outside a run's plan: found in a run folder, or run again for its outcome alone."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from lab.agents.base import Setup
from lab.contamination.observe.judge import TrialIdentity
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.suite import Suite
from lab.contamination.trial import Bench, run_trial
from lab.errors import InputError
from lab.records import Role, TrialResult, digest
from lab.runs.folder import RESULT, RunFolder
from lab.runs.retries import RetryTable, load_retries

_WHICH = "give a folder reports/…/trials/<id>, or a run folder and the id of a trial"


def find_trial(path: Path, trial: str = "") -> tuple[Suite, str]:
    """Finds a trial of a run.

    Args:
        path: The trial's folder; or the run's, with ``trial``.
        trial: Id of the trial; empty where ``path`` is its folder.

    Returns:
        The run, checked against its lock, and the trial's id.

    Raises:
        InputError: There is no such run or trial.
    """
    place = path.absolute()
    if not trial:
        if place.parent.name != "trials":
            raise InputError(f"{path} is not the folder of a trial", _WHICH)
        place, trial = place.parent.parent, place.name
    suite = Suite(RunFolder.open(place))
    if trial not in suite.trials:
        raise InputError(f"the run {suite.folder.run_id} has no trial {trial}", _WHICH)
    return suite, trial


def read_result(suite: Suite, trial: str) -> TrialResult:
    """The result of a trial.

    Raises:
        InputError: It has none yet, or it is damaged.
    """
    path = suite.folder.trial(trial) / RESULT
    try:
        return TrialResult.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"the trial {trial} has not ended", f"lab resume {suite.folder.path}") from None
    except ValidationError as error:
        raise InputError(f"{path} is damaged", f"lab rescore {suite.folder.path}") from error


def run_alone(
    bench: Bench,
    scenario: Scenario,
    role: Role,
    setup: Setup,
    model: str,
    *,
    retries: RetryTable | None = None,
    sleep: Callable[[float], None] = time.sleep,
    keep: Path | None = None,
) -> TrialResult:
    """Runs one trial in a folder of its own; an error that may pass is tried again.

    Args:
        bench: Build, isolation and endpoints.
        scenario: The scenario.
        role: As what it is run.
        setup: Its setup.
        model: Who answers the agent.
        retries: Which errors are tried again; the table of new runs by default.
        sleep: Waits between two attempts.
        keep: Folder for the evidence of the last attempt, made here; None to remove it again.

    Raises:
        EnvironmentUnusable: The sandbox cannot be started.
    """
    table = retries or load_retries()
    cell = digest([scenario.digest, role, bench.environment.digest, setup.model_dump(mode="json"), model])
    identity = TrialIdentity(trial="alone", cell=cell, build="", setup=setup.name, model=model, role=role)
    attempts = 0
    while True:
        attempts += 1
        with tempfile.TemporaryDirectory(prefix="lab-alone-") as scratch:
            result = run_trial(identity, scenario, setup, bench, Path(scratch), threading.Event())
            rule = table.again(result.status, result.cause, attempts)
            if rule is None:
                if keep:
                    shutil.copytree(scratch, keep, symlinks=True)
                return result
        sleep(rule.pause_seconds)
