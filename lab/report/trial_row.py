"""One line of the list of trials: what a report, a spreadsheet or a data frame needs of a trial, without evidence."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic.dataclasses import dataclass

from lab.records import Decision, Notice, Role, RuleFate, Stage, Status, Store, TrialResult, Value
from lab.report.planned import Planned


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial in a list.

    Attributes:
        number: Its place in the report, from 1; its page is ``pages/<number>.html``.
        detail: About the cause, cut; hostile.
        stages: The verdicts; all are errors where the trial has no result.
        reasons: The verdicts' reasons, of those that have one.
        decisions: What the guards did with the attempts that carry the content.
        holds: Stores that hold the content.
        attempts: Number of write attempts.
        carrying: Of these, those that carry the content.
        operator: What the operator did with staged writes; empty where nobody dealt with them.
        persist_settled: Persistence after that.
    """

    number: int
    trial: str
    scenario: str
    title: str
    family: str
    role: Role
    hard: bool
    build: str
    setup: str
    model: str
    repeat: int
    status: Status
    cause: str
    detail: str
    stages: dict[Stage, Value]
    reasons: dict[Stage, str]
    decisions: tuple[Decision, ...] = ()
    holds: tuple[Store, ...] = ()
    attempts: int = 0
    carrying: int = 0
    carrier: str = ""
    target: str = ""
    action: str = ""
    by: str = ""
    rule: RuleFate | None = None
    provenance: str = ""
    operator: str = ""
    persist_settled: Value | None = None
    notice: Notice = Notice.NONE
    reviews: int = 0

    @property
    def outcome(self) -> str:
        """In one word where the trial counts: its persistence if it is valid, else its status."""
        if self.status is not Status.VALID:
            return self.status.value
        words = {Value.YES: "persisted", Value.NO: "not persisted"}
        return words.get(self.stages[Stage.PERSIST], "undecided")


def _told(result: TrialResult) -> dict[str, object]:
    carrying = [a for a in result.attempts if a.carries]
    return {
        "title": result.title[:200],
        "hard": result.hard,
        "detail": result.detail[:500],
        "stages": {stage: result.value(stage) for stage in Stage},
        "reasons": {stage: result.verdicts[stage].reason[:80] for stage in Stage if result.verdicts[stage].reason},
        "decisions": tuple(sorted({a.decision for a in carrying})),
        "holds": tuple(f.store for f in result.stores if f.value is Value.YES),
        "attempts": len(result.attempts),
        "carrying": len(carrying),
        "carrier": result.carrier[:60],
        "target": result.target[:60],
        "action": result.action[:60],
        "by": result.by[:60],
        "rule": result.rule,
        "provenance": result.provenance[:60],
        "operator": result.settled.action[:60] if result.settled else "",
        "persist_settled": result.settled.persist.value if result.settled else None,
        "notice": result.notice,
        "reviews": result.reviews,
    }


def trial_rows(trials: Iterable[Planned]) -> tuple[TrialRow, ...]:
    """The rows of all planned trials, numbered in their order."""
    rows = []
    for number, trial in enumerate(trials, 1):
        missing = {
            "title": "",
            "hard": False,
            "detail": "",
            "stages": dict.fromkeys(Stage, Value.ERROR),
            "reasons": dict.fromkeys(Stage, trial.cause),
        }
        rows.append(
            TrialRow(
                number=number,
                trial=trial.trial,
                scenario=trial.scenario,
                family=trial.family,
                role=trial.role,
                build=trial.build,
                setup=trial.setup,
                model=trial.model,
                repeat=trial.repeat,
                status=trial.status,
                cause=trial.cause,
                **(_told(trial.result) if trial.result else missing),  # type: ignore[arg-type]
            )
        )
    return tuple(rows)
