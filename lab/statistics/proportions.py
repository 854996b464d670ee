"""Proportions that cannot be made without the name of their denominator and a check of their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from lab.records import Record
from lab.statistics.cluster import cluster_interval, wilson

LEVEL = 0.95
PLACES = 6
"""Decimal places kept: far below any interval's width, and above the last bits in which platforms differ."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Proportion(Record):
    """A share with its denominator's name and an interval.

    Attributes:
        name: What the numerator counts.
        of: What the denominator counts; required.
        numerator: Count.
        denominator: Count.
        value: Numerator over denominator, 0 to 1; None when the denominator is zero.
        low: Lower bound of the interval, 0 to 1; None with the value.
        high: Upper bound of the interval, 0 to 1; None with the value.
        method: How the interval was made; empty with the value.
        level: Confidence level of the interval.
    """

    name: Name
    of: Name
    numerator: int = Field(ge=0)
    denominator: int = Field(ge=0)
    value: float | None
    low: float | None
    high: float | None
    method: str
    level: float = LEVEL

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.numerator > self.denominator:
            raise ValueError(f"{self.name}: {self.numerator} of {self.denominator} is no proportion")
        missing = [part is None for part in (self.value, self.low, self.high)]
        if any(missing) != (self.denominator == 0) or any(missing) != all(missing):
            raise ValueError(f"{self.name}: value and interval are absent exactly when the denominator is zero")
        return self

    @property
    def percent(self) -> str:
        """Value and interval in per cent, or ``n/a``: ``100 % [75.8, 100]``."""
        if self.value is None or self.low is None or self.high is None:
            return "n/a"
        return f"{_percent(self.value)} % [{_percent(self.low)}, {_percent(self.high)}]"

    def text(self) -> str:
        """All of it in one line: ``12/12 of reached attack trials, 100 % [75.8, 100]``."""
        return f"{self.numerator}/{self.denominator} of {self.of}, {self.percent}"


def _percent(share: float) -> str:
    # A bound that is not quite 0 or 100 must not print as if it were.
    shown = f"{100 * share:.1f}"
    if shown == "0.0":
        return "0" if share == 0 else "<0.1"
    if shown == "100.0":
        return "100" if share == 1 else ">99.9"
    return shown


def _distinct(ids: Iterable[str], what: str) -> set[str]:
    counted = Counter(iter(ids))  # a mapping stands for its keys, not for counts
    doubled = sorted(key for key, times in counted.items() if times > 1)
    if doubled:
        raise ValueError(f"{what}: ids counted twice: {doubled[:3]}")
    return set(counted)


def proportion(
    numerator_ids: Iterable[str],
    denominator_ids: Iterable[str],
    *,
    name: str,
    of: str,
    clusters: Mapping[str, str] | None = None,
    unit: str = "scenarios",
    level: float = LEVEL,
) -> Proportion:
    """Makes a proportion from ids, so that nothing can be counted that is not in the denominator.

    Args:
        numerator_ids: Ids that count; a subset of the denominator's.
        denominator_ids: Ids they are counted among.
        name: What the numerator counts.
        of: What the denominator counts.
        clusters: Unit (scenario) of each id. When a unit has more than one id the interval is a bootstrap
            over units; without it, or with one id a unit, it is Wilson's.
        unit: What the clusters are, in the plural, for the name of the method.
        level: Confidence level.

    Returns:
        The proportion; its interval is absent when there is no id at all.

    Raises:
        ValueError: An id is doubled, the numerator holds an id that the denominator lacks, a name is empty,
            or an id has no unit.
    """
    below = _distinct(denominator_ids, f"{name}: denominator")
    above = _distinct(numerator_ids, f"{name}: numerator")
    if not above <= below:
        raise ValueError(f"{name}: not in the denominator: {sorted(above - below)[:3]}")
    value = low = high = None
    method = ""
    if below:
        units: dict[str, list[str]] = {}
        for key in sorted(below):
            if clusters is not None and key not in clusters:
                raise ValueError(f"{name}: no unit is known for {key}")
            units.setdefault(key if clusters is None else clusters[key], []).append(key)
        if len(units) == len(below):
            low, high = wilson(len(above), len(below), level)
            method = "wilson"
        else:
            counts = {unit: (sum(key in above for key in keys), len(keys)) for unit, keys in units.items()}
            interval = cluster_interval(counts, level, unit=unit)
            low, high, method = interval.low, interval.high, interval.method
        value = round(len(above) / len(below), PLACES)
        low, high = round(low, PLACES), round(high, PLACES)
    return Proportion(
        name=name,
        of=of,
        numerator=len(above),
        denominator=len(below),
        value=value,
        low=low,
        high=high,
        method=method,
        level=level,
    )


class Bounds(Record):
    """What a rate would be if every trial of unknown outcome had gone one way: arithmetic extremes.

    Attributes:
        unknown: Number of trials counted one way and then the other.
        low: All of them counted against the numerator; None when there is nothing to divide by.
        high: All of them counted for it.
    """

    unknown: int = Field(ge=0)
    low: float | None
    high: float | None

    def text(self) -> str:
        """``90.0 % to 100 % with 1 unknown counted against and for``."""
        if self.low is None or self.high is None:
            return "n/a"
        shown = f"{_percent(self.low)} % to {_percent(self.high)} %"
        return f"{shown} with {self.unknown} unknown counted against and for"


def bounds(rate: Proportion, unknown: int) -> Bounds:
    """Sensitivity of a rate to trials whose outcome is unknown.

    Source: C. F. Manski, *Partial Identification of Probability Distributions*, 2003, §1.2.

    Args:
        rate: The rate over known outcomes.
        unknown: Trials that ended in an error or without a decided verdict.

    Returns:
        The worst cases on both sides.
    """
    total = rate.denominator + unknown
    if not total:
        return Bounds(unknown=unknown, low=None, high=None)
    low = round(rate.numerator / total, PLACES)
    return Bounds(unknown=unknown, low=low, high=round((rate.numerator + unknown) / total, PLACES))
