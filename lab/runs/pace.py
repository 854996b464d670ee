"""How long a run will take: from the newest earlier run on the same backend, or from the lab's own measurement."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, TypeAdapter

from lab.records import Record
from lab.runs.folder import RESULT

PACE_FILE = Path(__file__).with_name("pace.yaml")
MOST_FOLDERS = 20
"""Run folders looked into for one on the same backend; an estimate is not worth more."""

MOST_RESULTS = 500


class Pace(Record):
    """How long the trials of a backend take.

    The time of a trial has two humps, with and without a second session, and their median says little about a sum. So
    the median is taken over sessions, and multiplied with how many sessions a trial has on average.

    Attributes:
        seconds_per_session: Median wall seconds of one session.
        sessions_per_trial: Mean number of sessions of a trial.
        source: Where the two numbers come from, for the reader.
    """

    seconds_per_session: float = Field(gt=0)
    sessions_per_trial: float = Field(ge=1)
    source: str = "the lab's own measurement"


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        seconds: Wall seconds.
        trials: Trials of the plan.
        jobs: Trials at once.
        pace: What it was reckoned from.
    """

    seconds: float
    trials: int
    jobs: int
    pace: Pace


def estimate(trials: int, jobs: int, backend: str, reports: Path) -> Estimate:
    """Estimates the wall time of a run.

    Args:
        trials: Trials of the plan.
        jobs: Trials at once.
        backend: Name of the isolation backend.
        reports: Folder with earlier run folders; only the newest one on this backend is read.
    """
    pace = earlier_pace(reports, backend) or default_pace(backend)
    seconds = math.ceil(trials / jobs) * pace.seconds_per_session * pace.sessions_per_trial
    return Estimate(seconds, trials, jobs, pace)


def default_pace(backend: str) -> Pace:
    """The pace that comes with the lab; a backend it does not name gets that of the slowest."""
    table = TypeAdapter(dict[str, Pace]).validate_python(yaml.safe_load(PACE_FILE.read_text(encoding="utf-8")))
    slowest = max(table.values(), key=lambda pace: pace.seconds_per_session)
    return table.get(backend, slowest)


def earlier_pace(reports: Path, backend: str) -> Pace | None:
    """The pace of the newest run folder on a backend that has trials without an error; None where there is none.

    What cannot be read is passed over: a damaged old folder must not stop a new run.
    """
    folders = sorted((p.parent for p in reports.glob("*/lock.json")), reverse=True)
    for folder in folders[:MOST_FOLDERS]:
        lock = read_or_empty(folder / "lock.json")
        told = lock.get("backend")
        if not isinstance(told, dict) or told.get("name") != backend:
            continue
        trials = list(_seconds(folder))
        sessions = [seconds for trial in trials for seconds in trial]
        if sessions:
            return Pace(
                seconds_per_session=statistics.median(sessions),
                sessions_per_trial=len(sessions) / len(trials),
                source=f"{len(trials)} trials of run {folder.name}",
            )
    return None


def _seconds(folder: Path) -> Iterator[list[float]]:
    """Wall seconds of the sessions of each trial that ended without an error."""
    for number, path in enumerate((folder / "trials").glob(f"*/{RESULT}")):
        if number >= MOST_RESULTS:
            return
        result = read_or_empty(path)
        seconds = result.get("seconds")
        if result.get("status") == "error" or not isinstance(seconds, dict):
            continue
        good = [float(s) for s in seconds.values() if isinstance(s, int | float) and 0 < s < math.inf]
        if good:
            yield good


def read_or_empty(path: Path) -> dict[str, Any]:
    """A document of an earlier run; empty where it cannot be read: a damaged old folder must not stop a new run."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
