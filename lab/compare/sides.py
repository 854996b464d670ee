"""The sides of a comparison: planned trials with what became of them, of one run or of one value within a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.compare.measures import MEASURES
from lab.compare.model import Dimension
from lab.contamination.controls import Scope, evaluate_controls, void_families
from lab.contamination.mechanisms.case import setups_of
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.records import Role, Status, TrialResult

Key = tuple[str, ...]
"""What pairs a trial: scenario, role, build, setup, model and repeat, without the dimension compared."""

_COUNTED = {measure.role for measure in MEASURES}


@dataclass(frozen=True)
class Trial:
    """One planned trial of a side.

    Attributes:
        result: Its result; None when it has not run.
        void: The failed harness control that makes its family void; empty where none does.
    """

    trial: str
    scenario: str
    family: str
    role: Role
    build: str
    setup: str
    model: str
    repeat: int
    result: TrialResult | None
    void: str

    def key(self, dimension: Dimension) -> Key:
        """By what it is paired across a dimension."""
        cell = {"build": self.build, "setup": self.setup, "model": self.model}
        cell.pop(dimension.value, None)
        return (self.scenario, self.role.value, *cell.values(), str(self.repeat))

    @property
    def absence(self) -> str:
        """Why it does not count; empty when it does."""
        if self.result is None:
            return "not run"
        if self.result.status is not Status.VALID:
            return f"{self.result.status} ({self.result.cause[:120]})"
        return f"void: {self.void[:160]}" if self.void else ""


@dataclass(frozen=True)
class Trials:
    """One side of a comparison.

    Attributes:
        run: Id of the run.
        lock: Its lock.
        trials: Its trials that some measure is over, in the order of the plan; twins and negative controls are not.
    """

    run: str
    lock: Mapping[str, Any]
    trials: tuple[Trial, ...]

    def only(self, dimension: Dimension, name: str) -> Trials:
        """The trials of one build, setup or model."""
        return Trials(self.run, self.lock, tuple(t for t in self.trials if getattr(t, dimension.value) == name))


def read_trials(suite: Suite) -> Trials:
    """Joins the plan of a run with its results, and marks what failed harness controls make void.

    Raises:
        InputError: A result is damaged, or is not that of the planned cell.
    """
    results = {}
    for result in suite.each_result():
        planned = suite.trials.get(result.trial)
        if planned is None or planned["cell"] != result.cell or result.trial in results:
            raise InputError(
                f"{suite.folder.path} holds a result of {result.trial} that is not of its plan",
                f"lab rescore {suite.folder.path}",
            )
        results[result.trial] = result
    scopes = [Scope(family=t["family"], build=t["build"], setup=t["setup"]) for t in suite.trials.values()]
    unattended = {name: setup.unattended for name, setup in setups_of(suite.lock).items()}
    controls = evaluate_controls(results.values(), planned=scopes, unattended=unattended)
    void = {(v.build, v.setup, v.family): v.reasons[0] for v in void_families(controls, scopes)}
    trials = tuple(
        Trial(
            trial=name,
            scenario=t["scenario"],
            family=t["family"],
            role=Role(t["role"]),
            build=t["build"],
            setup=t["setup"],
            model=t["model"],
            repeat=int(t["repeat"]),
            result=results.get(name),
            void=void.get((t["build"], t["setup"], t["family"]), ""),
        )
        for name, t in suite.trials.items()
        if t["role"] in _COUNTED
    )
    return Trials(suite.folder.run_id, suite.lock, trials)
