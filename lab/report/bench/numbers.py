"""How numbers of a benchmark are written in every report, and the words that explain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.retrieval.results import ArmResult, BenchResult, Mean
from lab.statistics.proportions import Proportion

NOTES = (
    "A topic is a query; it is answerable when some fact of its store answers it. Hit@k is the share of answerable "
    "topics with a relevant fact among the first k; MRR@10 is the mean of 1/rank of the first one, 0 where it is not "
    "among the first 10.",
    "Topics without an answer are in no mean. What an arm injects for them stands in a table of its own.",
    "An error is no miss: a topic that a system could not answer is left out of that arm's numbers and listed.",
    "Differences between arms are paired by topic. An arm is better only where Hit@1 (exact McNemar, Holm) and the "
    "interval of the MRR@10 difference both say so; otherwise the verdict is “cannot tell”.",
)

ABSENT = "n/a"


def share(value: Proportion | None) -> str:
    """``.712`` or ``n/a``."""
    return ABSENT if value is None or value.value is None else decimal(value.value)


def mean(value: Mean | None) -> str:
    """``.712`` or ``n/a``."""
    return ABSENT if value is None or value.value is None else decimal(value.value)


def interval(value: Proportion | Mean | None) -> str:
    """``[.601, .803]``, or empty where there is none."""
    if value is None or value.low is None or value.high is None:
        return ""
    return f"[{decimal(value.low)}, {decimal(value.high)}]"


def decimal(value: float | None) -> str:
    """Three decimals, without the zero before the point: ``.712``, ``1.000``, ``−.041``."""
    if value is None:
        return ABSENT
    text = f"{abs(value):.3f}".removeprefix("0") if abs(value) < 1 else f"{abs(value):.3f}"
    return f"−{text}" if value < 0 and text.strip(".0") else text


def probability(value: float) -> str:
    """A p-value: three decimals, or ``< .001``."""
    return "< .001" if value < 0.001 else decimal(value)


def failed_checks(result: BenchResult) -> list[tuple[str, str, str]]:
    """Set, arm and text of every invariant that does not hold."""
    return [
        (one.info.name, arm.arm, f"{check.name}: {check.text}")
        for one in result.sets
        for arm in one.arms
        for check in arm.checks
        if not check.holds
    ]


def checks_made(result: BenchResult) -> int:
    """Number of invariants that were looked at."""
    return sum(len(arm.checks) for one in result.sets for arm in one.arms)


def opened(arm: ArmResult) -> str:
    """For how many topics the gate opened, ``12/79``; empty for an arm without a channel behind one."""
    if not arm.gate or not arm.settings.get("embeddings"):
        return ""
    return f"{sum(row.opened for row in arm.gate)}/{sum(row.n for row in arm.gate)}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "share": share,
    "mean": mean,
    "interval": interval,
    "decimal": decimal,
    "probability": probability,
    "failed_checks": failed_checks,
    "checks_made": checks_made,
    "opened": opened,
}
