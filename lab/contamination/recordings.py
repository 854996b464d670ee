"""A recording: what of a run is needed to answer its cells again without a model, and nothing of the agents' homes."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.contamination.observe.judge import REQUESTS
from lab.contamination.plan import LOCK, PLAN, SCENARIOS
from lab.errors import InputError
from lab.runs.folder import RESULT, RunFolder


def check_free(target: Path) -> None:
    """Checks that a recording can be put there; before the run, which may take hours.

    Raises:
        InputError: Something is there.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not empty", "name a folder that does not exist: --record")


def keep_recording(run: RunFolder, target: Path) -> int:
    """Copies lock, plan, scenarios, and of each trial its exchanges and its result, and seals the copy.

    Args:
        run: The run.
        target: Folder to make.

    Returns:
        Trials in it.

    Raises:
        OSError: It cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in (LOCK, PLAN):
        shutil.copyfile(run.path / name, target / name)
    shutil.copytree(run.path / SCENARIOS, target / SCENARIOS)
    copy = RunFolder(target)
    kept = 0
    for source in sorted((run.path / "trials").glob("*")):
        if (source / RESULT).is_file():
            folder = copy.trial(source.name)
            folder.mkdir(parents=True)
            for name in (REQUESTS, RESULT):
                if (source / name).is_file():
                    shutil.copyfile(source / name, folder / name)
            kept += 1
    copy.seal()
    return kept
