"""Records of the report's rates: where trials went, proportions with what they leave out, groups of trials."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from lab.records import Record, Status
from lab.statistics.proportions import Bounds, Proportion

NOT_RUN = "not_run"  # cause of a planned trial that has no result


class Measures(StrEnum):
    """What a model's rates are about; the three are never mixed."""

    ENFORCEMENT = "enforcement"
    SUSCEPTIBILITY = "susceptibility"
    REFERENCE = "reference"


class RateName(StrEnum):
    """The rates of the funnel."""

    PERSIST_VALID = "persist/valid"
    REACH_VALID = "reach/valid"
    ATTEMPT_REACH = "attempt|reach"
    PERSIST_ATTEMPT = "persist|attempt"
    LOAD_PERSIST = "load|persist"
    UNATTEMPTED = "persisted without an attempt"
    ATTEMPT_VALID = "attempt/valid"
    HONEST_LOSS = "honest loss"
    FALSE_MEMORY = "false memory"


class Count(Record):
    """How often something was seen, and in which trials."""

    label: str
    count: int
    trials: tuple[str, ...] = ()


class Cause(Record):
    """Why trials do not count."""

    status: Status
    cause: str
    trials: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of trials."""
        return len(self.trials)


class Accounting(Record):
    """Where every planned trial went.

    Attributes:
        name: What is accounted for (all trials, or a role).
        planned: Trials of the plan.
        valid: Trials that count.
        invalid: Trials in which the content was not delivered as planned.
        error: Trials that the infrastructure lost, those that have not run among them.
        not_run: Of the errors, the trials without any result.
        causes: Invalid trials and errors by cause.
    """

    name: str
    planned: int
    valid: int
    invalid: int
    error: int
    not_run: int
    causes: tuple[Cause, ...] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        lost = sum(cause.count for cause in self.causes)
        if self.planned != self.valid + self.invalid + self.error or lost != self.invalid + self.error:
            raise ValueError(f"{self.name}: planned is not valid + invalid + error")
        return self


class Rate(Record):
    """A proportion with what it leaves out.

    Attributes:
        key: Which rate.
        proportion: The rate, over decided verdicts only.
        undecided: Trials of its base whose verdict is neither yes nor no, by reason; in no numerator.
        bounds: The rate with every error and every undetermined verdict counted against and for.
        errors: Number of errors in the bounds.
    """

    key: RateName
    proportion: Proportion
    undecided: tuple[Count, ...] = ()
    bounds: Bounds
    errors: int


class GroupRow(Record):
    """What a row of a table is about: the trials of one family under one build, setup and model."""

    build: str
    setup: str
    model: str
    family: str


class Group(GroupRow):
    """The funnel of one family under one build, setup and model; attack trials only.

    Attributes:
        measures: What the model makes these rates say.
        persist: Headline rate.
        rates: The further rates of the funnel, in order.
        void: Reasons why the family proves nothing here; empty when it does.
        not_run: Controls of this family that had no trial, so that nothing backs the rates in that respect.
    """

    measures: Measures
    accounting: Accounting
    persist: Rate
    rates: tuple[Rate, ...]
    void: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()

    @property
    def headline(self) -> bool:
        """Whether its headline rate may stand at the top of the report."""
        return not self.void and self.measures is not Measures.REFERENCE


class Overall(Record):
    """The headline rate of one build, setup and model over all its families; attack trials only.

    Attributes:
        families: Families that are in it.
        left_out: Families that are not, because they are void.
        persist: Headline rate.
    """

    build: str
    setup: str
    model: str
    measures: Measures
    families: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    persist: Rate


class HonestLoss(GroupRow):
    """Positive controls that should have persisted and did not.

    Attributes:
        rate: Lost among valid positive controls.
        easy: Of the controls that nothing should stop.
        hard: Of the controls whose wording the agent's scan is expected to refuse.
        reasons: Why they were lost.
    """

    measures: Measures
    accounting: Accounting
    rate: Rate
    easy: Proportion
    hard: Proportion
    reasons: tuple[Count, ...] = ()
    void: tuple[str, ...] = ()


class FalseMemory(GroupRow):
    """Negative controls, which must not be remembered, that persisted.

    Attributes:
        rate: Persisted among valid negative controls.
        attempt: Attempted among valid negative controls.
        ways: How they persisted.
    """

    measures: Measures
    accounting: Accounting
    rate: Rate
    attempt: Rate
    ways: tuple[Count, ...] = ()
    void: tuple[str, ...] = ()


class TwinRow(GroupRow):
    """Payload-free twins, apart from the attack trials they belong to.

    Attributes:
        attempt: Attempts that carry the content, among valid twins.
        persist: Persistence, among valid twins.
        pairs: Attack and twin of the same scenario and repeat, both decided, by who persisted.
    """

    accounting: Accounting
    attempt: Rate
    persist: Rate
    pairs: tuple[Count, ...] = ()
    void: tuple[str, ...] = ()
