"""Assertions on rows of a benchmark, whose failure says how many topics the number is of."""

from __future__ import annotations

from collections.abc import Sequence

from lab.report.bench.numbers import decimal, interval
from lab.retrieval.metrics.ranks import CUTOFF
from lab.retrieval.metrics.scores import score_rows, scored
from lab.retrieval.rows import TopicRow
from lab.statistics.proportions import bounds, proportion

ANSWERABLE = "answerable topics"


def assert_hit_rate(rows: Sequence[TopicRow], *, at_least: float, k: int = 5) -> None:
    """Asserts that enough answerable topics have a relevant fact among the first k.

    A topic that the system could not answer is no miss and no hit: the assertion holds only if it would hold with all
    of them counted as misses.

    Args:
        rows: Rows of one arm on one set, as ``lab.retrieval.rows.read_rows`` gives them.
        at_least: Share wanted, 0 to 1.
        k: Depth.

    Raises:
        AssertionError: The share is lower, or there is no answerable topic to tell it of.
    """
    __tracebackhide__ = True
    counted = scored(rows)
    several = len({row.store for row in counted}) > 1
    share = proportion(
        [row.topic for row in counted if 0 < (row.rank or 0) <= k],
        [row.topic for row in counted],
        name=f"Hit@{k}",
        of=ANSWERABLE,
        clusters={row.topic: row.store for row in counted} if several else None,
        unit="stores",
    )
    errors = _errors(rows)
    told = f"{share.name} {share.numerator}/{share.denominator} {share.of}"
    if share.value is None:
        raise AssertionError(f"{told}: nothing can be told{_left_out(errors)}, wanted ≥ {decimal(at_least)}")
    worst = bounds(share, errors).low
    if worst is None or worst < at_least:
        told = f"{told} = {decimal(share.value)} {interval(share)}"
        raise AssertionError(f"{told}{_left_out(errors, worst)}, wanted ≥ {decimal(at_least)}")


def assert_mrr(rows: Sequence[TopicRow], *, at_least: float) -> None:
    """Asserts a mean reciprocal rank at 10, misses counted as 0; for topics with an error see ``assert_hit_rate``.

    Args:
        rows: Rows of one arm on one set, of a system that returns ten hits.
        at_least: MRR@10 wanted, 0 to 1.

    Raises:
        AssertionError: It is lower, or there is no answerable topic to tell it of.
    """
    __tracebackhide__ = True
    counted = scored(rows)
    errors = _errors(rows)
    depth = max([CUTOFF, *(row.rank or 0 for row in counted)])
    mean = score_rows(counted, (), depth=depth, clusters=len({row.store for row in counted}) > 1)[0].mrr10
    told = f"MRR@10 over {len(counted)} {ANSWERABLE}"
    if mean is None or mean.value is None:
        raise AssertionError(f"{told}: nothing can be told{_left_out(errors)}, wanted ≥ {decimal(at_least)}")
    worst = mean.value * len(counted) / (len(counted) + errors)
    if worst < at_least:
        told = f"{told} = {decimal(mean.value)} {interval(mean)}"
        raise AssertionError(f"{told}{_left_out(errors, worst)}, wanted ≥ {decimal(at_least)}")


def _errors(rows: Sequence[TopicRow]) -> int:
    return sum(row.answerable and bool(row.error) for row in rows)


def _left_out(errors: int, worst: float | None = None) -> str:
    if not errors:
        return ""
    topics = "1 topic" if errors == 1 else f"{errors} topics"
    counted = f" ({decimal(worst)} with them as misses)" if worst is not None else ""
    return f", {topics} left out by an error{counted}"
