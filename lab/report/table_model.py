"""Records of the report's tables: what guards, stores and operators did, and each scenario's verdicts."""

from __future__ import annotations

from lab.records import Decision, Notice, Record, Role, Stage, Store, Value
from lab.report.rate_model import Count, GroupRow
from lab.statistics.proportions import Proportion


class DecisionRow(GroupRow):
    """What the guards did with the write attempts of valid trials; the unit is the attempt."""

    role: Role
    origin: str
    decision: Decision
    carrying: int
    other: int
    trials: int


class StoreRow(GroupRow):
    """What valid trials left in one store.

    Attributes:
        holds: Trials whose store holds the content.
        clean: Trials whose store does not.
        undecided: Trials that do not say.
        changed: Trials in which its bytes differ from before.
    """

    role: Role
    store: Store
    persistence: bool
    holds: int
    clean: int
    undecided: int
    changed: int


class NoticeRow(GroupRow):
    """What the user was told in valid trials, beside what is on disk."""

    role: Role
    notice: Notice
    persisted: int
    not_persisted: int
    undecided: int


class OriginRow(Record):
    """Write attempts of one origin that carry the content, in valid trials other than twins.

    Attributes:
        decisions: Attempts by what the guards did.
        other: Attempts of this origin that do not carry it.
        trials: Trials with a carrying attempt.
    """

    build: str
    setup: str
    origin: str
    decisions: dict[Decision, int]
    other: int
    trials: tuple[str, ...]


class UnattemptedRow(Record):
    """Content that stands in a store although no model attempted to write it, in valid trials other than twins."""

    build: str
    setup: str
    role: Role
    store: Store
    trials: tuple[str, ...]


class StagedRow(Record):
    """Staged writes of valid trials, and what became of them.

    Attributes:
        operator: What the operator did; ``nobody`` where nobody dealt with them.
        store: Store that the staged writes are meant for.
        persisted: Trials whose content is in a store afterwards (or whose old entry is gone).
        not_persisted: Trials in which it is not.
        undecided: Trials that do not say.
        doubled: Trials in which the content then stands in more than one place.
        left: Trials in which staged writes are still pending afterwards.
        provenance: How the agent's records name the maker of the skill afterwards.
        notices: What the user was told when it was staged.
        said: What the agent answered the operator, cut; hostile.
    """

    build: str
    setup: str
    operator: str
    store: Store
    persisted: int
    not_persisted: int
    undecided: int
    doubled: int
    left: int
    provenance: tuple[Count, ...] = ()
    notices: tuple[Count, ...] = ()
    said: tuple[Count, ...] = ()
    trials: tuple[str, ...] = ()


class CarrierRow(Record):
    """What brought the content in, under one build, and whether it could.

    Attributes:
        reached: Valid trials in which it came before the reviewer.
        marked: Of these, trials in which it was marked as untrusted.
        causes: Why trials do not count.
    """

    build: str
    carrier: str
    valid: int
    invalid: int
    error: int
    reached: int
    marked: int
    causes: tuple[Count, ...] = ()


class Tables(Record):
    """Tables over valid trials that are counts, not rates; carriers also count what is not valid."""

    decisions: tuple[DecisionRow, ...] = ()
    stores: tuple[StoreRow, ...] = ()
    notices: tuple[NoticeRow, ...] = ()
    origins: tuple[OriginRow, ...] = ()
    unattempted: tuple[UnattemptedRow, ...] = ()
    staged: tuple[StagedRow, ...] = ()
    carriers: tuple[CarrierRow, ...] = ()


class ScenarioCell(Record):
    """One scenario under one build, setup and model.

    Attributes:
        stages: For each stage, how many valid trials ended in which value.
        decisions: Decisions on carrying attempts, by count of attempts.
        persist: Persisted among its valid, decided repeats.
    """

    build: str
    setup: str
    model: str
    planned: int
    valid: int
    invalid: int
    error: int
    stages: dict[Stage, dict[Value, int]]
    decisions: dict[Decision, int]
    persist: Proportion
    trials: tuple[str, ...]
    void: bool = False


class ScenarioRow(Record):
    """One scenario in one role, with its cells."""

    scenario: str
    title: str
    family: str
    role: Role
    hard: bool
    cells: tuple[ScenarioCell, ...]
