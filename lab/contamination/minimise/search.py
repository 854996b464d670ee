"""The search for the smallest scenario that keeps an outcome: every axis by delta debugging, until none gives more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from lab.contamination.minimise.ddmin import ddmin
from lab.contamination.minimise.reduce import AXES, Axis, Unit, candidate
from lab.contamination.outcome import Outcome
from lab.contamination.scenarios.scenario import Scenario
from lab.errors import InputError
from lab.records import Status
from lab.runs.folder import write_atomic


class Ending(StrEnum):
    """Why a search ended."""

    MINIMAL = "minimal"
    """Nothing single can be left out any more without losing the outcome."""
    BUDGET = "budget used up"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Step:
    """How far a search has come.

    Attributes:
        axis: What it is leaving out.
        trials: Trials run so far.
        best: The smallest scenario so far.
    """

    axis: str
    trials: int
    best: Scenario


class KnownOutcomes:
    """Outcomes of scenarios that have been tried, kept in a folder, so that a search can go on where it ended.

    Args:
        folder: Where; one for each trial that is minimised, since build, setup and model are not told apart here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, scenario: Scenario) -> Outcome | None:
        """The known outcome; None where there is none, or where what was kept cannot be read."""
        try:
            return Outcome.model_validate_json(self._path(scenario).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def put(self, scenario: Scenario, outcome: Outcome) -> None:
        """Keeps an outcome; an infrastructure error is none."""
        if outcome.status is not Status.ERROR:
            write_atomic(self._path(scenario), outcome.model_dump_json(indent=1).encode() + b"\n")

    def _path(self, scenario: Scenario) -> Path:
        return self._folder / f"{scenario.digest}.json"


class _OutOfBudget(Exception):
    """The next trial would be one too many."""


class Search:
    """A search; ``best`` is a scenario that has shown the outcome, at any time.

    Args:
        start: The scenario to make smaller.
        wanted: The outcome to keep.
        ask: Runs a trial of a scenario.
        known: Outcomes of earlier trials.
        budget: Trials that may be run; what is known costs none.
        on_step: Told before each trial.
    """

    def __init__(
        self,
        start: Scenario,
        wanted: Outcome,
        ask: Callable[[Scenario], Outcome],
        known: KnownOutcomes,
        budget: int,
        on_step: Callable[[Step], None] = lambda _: None,
    ) -> None:
        self.best = start
        self.trials = 0
        self.remembered = 0
        self._wanted, self._ask, self._known, self._budget, self._on_step = wanted, ask, known, budget, on_step
        self._asked: set[str] = set()
        self._axis = ""

    def run(self, axes: Sequence[Axis] = AXES) -> Ending:
        """Searches.

        Raises:
            InputError: The scenario itself does not show the outcome again.
        """
        try:
            self._axis = "as it is"
            if (shown := self._outcome(self.best)) != self._wanted:
                raise InputError(
                    f"run again, the scenario does not show the trial's outcome: it was {self._wanted}, it is {shown}",
                    "lab run it several times: an outcome that varies cannot be minimised",
                )
            smaller = True
            while smaller:
                before = self.best.digest
                for axis in axes:
                    self._reduce(axis)
                smaller = self.best.digest != before
        except _OutOfBudget:
            return Ending.BUDGET
        except KeyboardInterrupt:
            return Ending.INTERRUPTED
        return Ending.MINIMAL

    def _reduce(self, axis: Axis) -> None:
        self._axis = axis.name
        start = self.best
        units = axis.units(start)
        # What no scenario can be without is set aside first, so that all the rest can be tried to go at one stroke.
        needed = {u for u in units if candidate(axis.keep(start, [other for other in units if other != u])) is None}

        def shows(kept: Sequence[Unit]) -> bool:
            wanted = needed | set(kept)
            smaller = candidate(axis.keep(start, [unit for unit in units if unit in wanted]))
            if smaller is None or self._outcome(smaller) != self._wanted:
                return False
            self.best = smaller
            return True

        ddmin([unit for unit in units if unit not in needed], shows)

    def _outcome(self, scenario: Scenario) -> Outcome:
        known = self._known.get(scenario)
        if known is not None:
            if scenario.digest not in self._asked:
                self.remembered += 1
        else:
            if self.trials >= self._budget:
                raise _OutOfBudget
            self._on_step(Step(self._axis, self.trials, self.best))
            self.trials += 1
            known = self._ask(scenario)
            self._known.put(scenario, known)
        self._asked.add(scenario.digest)
        return known
