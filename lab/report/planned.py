"""The plan joined with its results: every planned trial exactly once, with where it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic.dataclasses import dataclass

from lab.errors import InputError
from lab.records import Role, Stage, Status, TrialResult, Value
from lab.report.rate_model import NOT_RUN, Accounting, Cause


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One trial of the plan and what became of it.

    Attributes:
        result: Its result; None when it has not run.
    """

    trial: str
    scenario: str
    family: str
    role: Role
    build: str
    setup: str
    model: str
    repeat: int = 1
    result: TrialResult | None = None

    @property
    def status(self) -> Status:
        """Where it counts; without a result it is an error, never a no."""
        return self.result.status if self.result else Status.ERROR

    @property
    def cause(self) -> str:
        """Why it does not count; empty when it does."""
        return self.result.cause[:120] if self.result else NOT_RUN

    @property
    def valid(self) -> bool:
        """Whether its verdicts count."""
        return self.status is Status.VALID

    def value(self, stage: Stage) -> Value:
        """The verdict of a stage; error without a result."""
        return self.result.value(stage) if self.result else Value.ERROR

    @property
    def where(self) -> tuple[str, str, str, str]:
        """Build, setup, model and family."""
        return self.build, self.setup, self.model, self.family


_SHARED = ("scenario", "family", "role", "build", "setup", "model", "repeat")


def join(plan: Mapping[str, Any], results: Iterable[TrialResult]) -> list[Planned]:
    """Joins plan and results.

    Args:
        plan: The plan as written by the runner: ``trials`` with one mapping a trial.
        results: All results that were read.

    Returns:
        Planned trials in the order of their ids.

    Raises:
        InputError: A trial is planned or told twice, a result is not of this plan, or the two contradict
            each other.
    """
    mend = "the run folder mixes two runs; resume or run again in a fresh folder"
    told: dict[str, TrialResult] = {}
    for result in results:
        if result.trial in told:
            raise InputError(f"trial {result.trial} has two results", mend)
        told[result.trial] = result
    joined: dict[str, Planned] = {}
    for entry in plan.get("trials", ()):
        try:
            known = {key: entry[key] for key in ("trial", *_SHARED) if key in entry}
            planned = Planned(**known)
        except (TypeError, ValueError) as error:
            raise InputError(f"plan.json holds a trial that cannot be read: {error}", mend) from error
        if planned.trial in joined:
            raise InputError(f"trial {planned.trial} is planned twice", mend)
        found = told.pop(planned.trial, None)
        if found:
            for key in _SHARED:
                if getattr(found, key) != getattr(planned, key):
                    raise InputError(f"trial {planned.trial}: plan and result differ in {key}", mend)
            planned = replace(planned, result=found)
        joined[planned.trial] = planned
    if told:
        raise InputError(f"{len(told)} results are not in the plan, the first is {sorted(told)[0]}", mend)
    return [joined[key] for key in sorted(joined)]


def account(name: str, trials: Iterable[Planned]) -> Accounting:
    """Counts planned = valid + invalid + error, with the causes."""
    listed = list(trials)
    causes: dict[tuple[Status, str], list[str]] = {}
    for trial in listed:
        if not trial.valid:
            causes.setdefault((trial.status, trial.cause), []).append(trial.trial)
    counted = {status: sum(trial.status is status for trial in listed) for status in Status}
    return Accounting(
        name=name,
        planned=len(listed),
        valid=counted[Status.VALID],
        invalid=counted[Status.INVALID],
        error=counted[Status.ERROR],
        not_run=sum(trial.result is None for trial in listed),
        causes=tuple(
            Cause(status=status, cause=cause, trials=tuple(sorted(ids)))
            for (status, cause), ids in sorted(causes.items())
        ),
    )
