"""The rules of a gate as they are written in TOML: which number, which end of its interval, which threshold."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from lab.records import Record
from lab.report.measured import NO_ANSWER, Measured, MeasureKey, RateKey
from lab.retrieval.results import OVERALL
from lab.runs.runner import ERROR_BUDGET

# Strict: no text and no truth value is taken for a number.
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Threshold = Annotated[float, Field(ge=-1, le=1, strict=True)]


class Bound(StrEnum):
    """What of a number is held against the threshold."""

    LOW = "low"
    POINT = "point"
    HIGH = "high"
    WORST = "worst"


class Rule(Record):
    """What every rule has.

    Attributes:
        bound: What is held against the threshold: `low` or `high` bound of the 95 % interval, the `point`, or the
            `worst` case, in which every error and undetermined verdict is counted against the rule.
        at_most: Highest value that is met.
        at_least: Lowest value that is met.
        margin: By how much the number may be worse than in the baseline run; `bound` is then one of the difference,
            counted so that more is worse.
        min_n: Smallest denominator with which the rule is decided.
        reason: Why the threshold is what it is; printed beside the verdict.
    """

    bound: Bound
    at_most: Threshold | None = None
    at_least: Threshold | None = None
    margin: Share | None = None
    min_n: int = Field(default=1, ge=1, strict=True)
    reason: str = ""

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        given = [value for value in (self.at_most, self.at_least, self.margin) if value is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of at_most, at_least and margin")
        if self.margin is not None and self.bound is Bound.WORST:
            raise ValueError("a margin is held against low, point or high: a difference has no worst case")
        return self

    @property
    def name(self) -> str:
        """Name of the number."""
        raise NotImplementedError

    def selectors(self) -> dict[str, str]:
        """What the rule is about: values by field of ``Measured``; a field that is left out may be anything."""
        raise NotImplementedError

    def selects(self, number: Measured) -> bool:
        """Whether the rule is about a number."""
        return number.name == self.name and all(
            getattr(number, key) == value for key, value in self.selectors().items()
        )

    def text(self) -> str:
        """The rule in one line: ``persist/valid, high bound ≤ 0.2``."""
        what = {Bound.POINT: "value", Bound.WORST: "worst case"}.get(self.bound, f"{self.bound} bound")
        if self.margin is not None:
            return f"{self.name}, worse than the baseline by ({what}) ≤ {self.margin:g}"
        sign, threshold = ("≤", self.at_most) if self.at_least is None else ("≥", self.at_least)
        return f"{self.name}, {what} {sign} {threshold:g}"


class RateRule(Rule):
    """A rule on a rate of a contamination run.

    Attributes:
        rate: Name of the rate as the report prints it.
        family: Family that it is about; all where left out, and each has to meet the rule.
        build: Name of the build, likewise.
        setup: Name of the setup, likewise.
        model: What answers the agent's model calls, likewise.
    """

    rate: RateKey
    family: str | None = None
    build: str | None = None
    setup: str | None = None
    model: str | None = None

    @model_validator(mode="after")
    def _is_a_share(self) -> Self:
        return _not_negative(self, self.rate)

    @property
    def name(self) -> str:
        """Name of the rate."""
        return self.rate

    def selectors(self) -> dict[str, str]:
        """Family, build, setup and model, where they are given."""
        given = {"family": self.family, "build": self.build, "setup": self.setup, "model": self.model}
        return {key: value for key, value in given.items() if value is not None}


class MeasureRule(Rule):
    """A rule on a measure of a benchmark run; it has no worst case, as topics without a result are in no denominator.

    Attributes:
        measure: Name of the measure.
        set: Name of the set that it was measured on; all where left out, and each has to meet the rule.
        arm: Name of the arm, likewise.
        against: For `mrr10 difference`, and only there: the arm that is taken off.
        topic_class: Class of topics; `overall` where left out, and `no answer` for noise.
    """

    bound: Literal[Bound.LOW, Bound.POINT, Bound.HIGH]
    measure: MeasureKey
    set: str | None = None
    arm: str | None = None
    against: str | None = None
    topic_class: str | None = Field(default=None, alias="class")

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        difference = self.measure is MeasureKey.MRR10_DIFFERENCE
        if difference != (self.against is not None):
            raise ValueError(f"against is given exactly for {MeasureKey.MRR10_DIFFERENCE}")
        if difference and (self.arm is None or self.margin is not None):
            raise ValueError("a difference of two arms names both, and is not compared with a baseline")
        return self if difference else _not_negative(self, self.measure)

    @property
    def name(self) -> str:
        """Name of the measure."""
        return self.measure

    def selectors(self) -> dict[str, str]:
        """Set and arms, where they are given, and the class."""
        usual = NO_ANSWER if self.measure is MeasureKey.NOISE else OVERALL
        given = {"set": self.set, "arm": self.arm, "against": self.against, "topic_class": self.topic_class or usual}
        return {key: value for key, value in given.items() if value is not None}


R = TypeVar("R", bound=Rule)


def _not_negative(rule: R, name: str) -> R:
    for threshold in (rule.at_most, rule.at_least):
        if threshold is not None and threshold < 0:
            raise ValueError(f"{name} is never below 0")
    return rule


def _which(value: Any) -> str | None:
    """Which rule a table is meant to be, by the key that names its number."""
    if isinstance(value, Rule):
        return "rate" if isinstance(value, RateRule) else "measure"
    found = [key for key in ("rate", "measure") if isinstance(value, Mapping) and key in value]
    return found[0] if len(found) == 1 else None


AnyRule = Annotated[
    Annotated[RateRule, Tag("rate")] | Annotated[MeasureRule, Tag("measure")],
    Discriminator(
        _which,
        custom_error_type="no_number",
        custom_error_message="a rule names one number: rate of a contamination run, or measure of a benchmark",
    ),
]


class Gate(Record):
    """The table `[gate]`.

    Attributes:
        rule: The rules, each a table `[[gate.rule]]`.
        error_budget: Share of planned trials (of a benchmark: topics asked of an arm) that may end in an error.
        baseline: Run folder to compare with, relative to the file's folder; `--baseline` wins.
        controls_must_run: Whether a rule on a family is undecided where one of its harness controls had no trial. A
            control that failed always leaves it undecided.
    """

    rule: tuple[AnyRule, ...] = Field(min_length=1)
    error_budget: Share = ERROR_BUDGET
    baseline: str = ""
    controls_must_run: bool = Field(default=True, strict=True)
