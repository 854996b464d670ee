"""Scores of one arm: each class of answerable topics with its own denominator, misses counted as 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np

from lab.retrieval.metrics.ranks import CUTOFF, RankCounts, Ranks, reciprocal
from lab.retrieval.results import OVERALL, ClassScores, Mean
from lab.retrieval.rows import TopicRow
from lab.statistics.means import mean_interval
from lab.statistics.proportions import Proportion, proportion

HIT5 = 5
"""Least depth at which a system can be scored."""


def scored(rows: Sequence[TopicRow], left_out: Collection[str] = ()) -> list[TopicRow]:
    """Rows that count: answerable topics that the system could answer, without those left out."""
    return [row for row in rows if row.answerable and not row.error and row.topic not in left_out]


def score_rows(
    rows: Sequence[TopicRow],
    classes: Sequence[str],
    *,
    depth: int,
    clusters: bool,
    left_out: Collection[str] = (),
) -> tuple[ClassScores, ...]:
    """Scores an arm.

    Args:
        rows: One for each topic, hit or miss.
        classes: Classes in the order of the report.
        depth: Most hits that the system returns; below 10, Hit@10 and MRR@10 are not defined for it.
        clusters: Whether intervals are taken over stores instead of topics; for sets with several stores.
        left_out: Topics that another arm of the comparison could not answer: all arms are scored on the same ones.

    Returns:
        ``overall`` first, then each class.

    Raises:
        ValueError: The depth is below 5, a topic has two rows, or a rank lies beyond the depth.
    """
    if depth < HIT5:
        raise ValueError(f"a system that returns {depth} hits has no Hit@5")
    counted = scored(rows, left_out)
    beyond = [row.topic for row in counted if (row.rank or 0) > depth]
    if beyond:
        raise ValueError(f"topic {beyond[0]}: a rank beyond the depth of {depth}")
    found = [_class_scores(OVERALL, counted, depth, clusters)]
    found += [_class_scores(name, [r for r in counted if r.topic_class == name], depth, clusters) for name in classes]
    return tuple(found)


def ranks_of(rows: Sequence[TopicRow]) -> Ranks:
    """First relevant ranks of rows as an array; 0 where there is none."""
    return np.array([row.rank or 0 for row in rows], dtype=np.int64)


def _class_scores(name: str, rows: Sequence[TopicRow], depth: int, clusters: bool) -> ClassScores:
    counts = RankCounts.of(ranks_of(rows))
    stores = {row.topic: row.store for row in rows} if clusters else None
    hits = [row for row in rows if 0 < (row.rank or 0) <= CUTOFF]
    full = depth >= CUTOFF
    return ClassScores(
        topic_class=name,
        n=counts.n,
        hit1=_hit(name, rows, 1, stores),
        hit5=_hit(name, rows, HIT5, stores),
        hit10=_hit(name, rows, CUTOFF, stores) if full else None,
        mrr10=_mean(rows, counts.mrr, clusters) if full else None,
        mrr_conditional=_mean(hits, counts.mrr_conditional, clusters),
    )


def _mean(rows: Sequence[TopicRow], exact: Fraction | None, clusters: bool) -> Mean:
    if exact is None:
        return Mean(n=len(rows), value=None)
    stores = [row.store for row in rows] if clusters else None
    interval = mean_interval(reciprocal(ranks_of(rows)), clusters=stores)
    # The float nearest to the exact value, not rounded further: the exact one can be had back from it.
    return Mean(n=len(rows), value=float(exact), low=interval.low, high=interval.high, method=interval.method)


def _hit(name: str, rows: Sequence[TopicRow], k: int, stores: Mapping[str, str] | None) -> Proportion:
    return proportion(
        [row.topic for row in rows if 0 < (row.rank or 0) <= k],
        [row.topic for row in rows],
        name=f"Hit@{k}",
        of="answerable topics" if name == OVERALL else f"answerable topics of class {name}",
        clusters=stores,
        unit="stores",
    )
