"""Interval of a proportion whose trials are nested in clusters, as repeats in scenarios: a seeded bootstrap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

RESAMPLES = 4000
"""Bootstrap resamples; the Monte Carlo error of a 2.5 % quantile is then well under one percentage point."""

SEED = 20260720
"""Fixed, so that the same evidence gives the same report."""


@dataclass(frozen=True)
class ClusterInterval:
    """An interval over clusters.

    Attributes:
        low: Lower bound, 0 to 1.
        high: Upper bound, 0 to 1.
        method: How it was made, in words.
    """

    low: float
    high: float
    method: str


@cache
def wilson(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval without continuity correction.

    Source: E. B. Wilson (1927), JASA 22:209-212; computed by ``scipy.stats.binomtest``.

    Args:
        count: Successes.
        total: Trials, at least 1.
        level: Confidence level.

    Returns:
        Lower and upper bound, 0 to 1.
    """
    # Loading scipy takes most of a second, which only those should pay who compute something.
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # noqa: PLC0415

    ci = binomtest(count, total).proportion_ci(confidence_level=level, method="wilson")
    return float(ci.low), float(ci.high)


def cluster_interval(
    counts: Mapping[str, tuple[int, int]],
    level: float = 0.95,
    *,
    unit: str = "scenarios",
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> ClusterInterval:
    """Interval of the pooled proportion when the clusters, not the trials, are the sample.

    Whole clusters are drawn with replacement and the ratio of the sums is taken (A. C. Davison and D. V.
    Hinkley, *Bootstrap Methods and their Application*, 1997, §3.8); bounds are percentiles. Two repairs,
    both only ever widening:

    * The bootstrap cannot see beyond its sample: when every cluster has the same rate (0/n and n/n among
      them) it collapses to a point. The Wilson interval with the clusters as n is used then.
    * With few clusters or rare events a percentile interval may come out narrower than pooled trials would
      allow. The result is therefore the hull with the pooled Wilson interval.

    Args:
        counts: Successes and trials of each cluster; every cluster has at least one trial.
        level: Confidence level.
        unit: What the clusters are, in the plural, for the method's name.
        seed: Seed of the generator.
        resamples: Number of resamples.

    Returns:
        Interval and the method's name.

    Raises:
        ValueError: There is no cluster, or one is empty.
    """
    if not counts or any(n < 1 or not 0 <= k <= n for k, n in counts.values()):
        raise ValueError("every cluster needs at least one trial and no more successes than trials")
    ordered = [counts[key] for key in sorted(counts)]  # the draw must not depend on the order of arrival
    hits = np.array([k for k, _ in ordered], dtype=np.int64)
    sizes = np.array([n for _, n in ordered], dtype=np.int64)
    clusters = len(ordered)
    if len({k / n for k, n in ordered}) == 1:
        rate = int(hits.sum()) / int(sizes.sum())
        low = wilson(math.floor(rate * clusters + 1e-9), clusters, level)[0]
        high = wilson(math.ceil(rate * clusters - 1e-9), clusters, level)[1]
        return ClusterInterval(low, high, f"wilson over {clusters} {unit} (all alike, repeats nested)")
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, clusters, size=(resamples, clusters))
    rates = hits[draws].sum(axis=1) / sizes[draws].sum(axis=1)
    tail = (1 - level) / 2
    low, high = (float(q) for q in np.quantile(rates, [tail, 1 - tail]))
    pooled_low, pooled_high = wilson(int(hits.sum()), int(sizes.sum()), level)
    method = f"cluster bootstrap over {clusters} {unit} ({resamples} resamples, seed {seed}), hull with wilson"
    return ClusterInterval(min(low, pooled_low), max(high, pooled_high), method)
