"""Interval of a mean whose values may be nested in clusters: a seeded percentile bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab.statistics.cluster import RESAMPLES, SEED, wilson
from lab.statistics.proportions import LEVEL, PLACES


@dataclass(frozen=True)
class MeanInterval:
    """Interval of a mean.

    Attributes:
        low: Lower bound, in the unit of the values.
        high: Upper bound.
        method: How it was made, in words.
    """

    low: float
    high: float
    method: str


def mean_interval(
    values: ArrayLike,
    *,
    clusters: Sequence[str] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    level: float = LEVEL,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> MeanInterval:
    """Percentile bootstrap of a mean (A. C. Davison and D. V. Hinkley, *Bootstrap Methods*, 1997, §5.3 and §3.8).

    With clusters, whole clusters are drawn and the ratio of the sums is taken; as for proportions the result is the
    hull with the interval of independent values, so that few clusters can only widen it.

    The bootstrap cannot see beyond its sample: where all values (or the means of all clusters) are the same it gives
    a point. Then the upper Wilson bound u of 0 in n says what share of the population may yet be different, and the
    interval is what the mean becomes if that share lies at either limit of the scale. For values that are all 1 on
    the scale from 0 to 1 this is Wilson's interval of n/n.

    Args:
        values: At least one value; each within the limits.
        clusters: Cluster of each value; None, or no cluster with two values, for independent ones.
        limits: Ends of the scale on which the values lie.
        level: Confidence level.
        seed: Seed of the generator.
        resamples: Number of resamples.

    Returns:
        Bounds, rounded to six decimals, and the method's name.

    Raises:
        ValueError: There is no value, one is outside the limits or not a number, or a value has no cluster.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not x.size or not ((x >= limits[0]) & (x <= limits[1])).all():
        raise ValueError(f"a mean needs a row of values within {limits}")
    # Equal values are drawn together: reciprocal ranks have 11 of them, whatever the number of topics.
    distinct, count = np.unique(x, return_counts=True)
    alone = _percentiles(distinct, np.ones(len(distinct)), count, limits, level, seed, resamples)
    words = f"{resamples} resamples, seed {seed}"
    if clusters is not None and len(clusters) != x.size:
        raise ValueError("every value needs a cluster")
    names, member = np.unique(np.asarray(clusters if clusters is not None else range(x.size)), return_inverse=True)
    if len(names) == x.size:
        low, high = alone
        method = f"bootstrap ({words})"
    else:
        sums, sizes = np.bincount(member, weights=x), np.bincount(member)
        nested = _percentiles(sums, sizes, np.ones(len(names)), limits, level, seed, resamples)
        low, high = min(alone[0], nested[0]), max(alone[1], nested[1])
        method = f"cluster bootstrap over {len(names)} clusters ({words}), hull with the bootstrap over values"
    return MeanInterval(round(low, PLACES), round(high, PLACES), method)


def _percentiles(
    sums: NDArray[Any],
    sizes: NDArray[Any],
    count: NDArray[Any],
    limits: tuple[float, float],
    level: float,
    seed: int,
    resamples: int,
) -> tuple[float, float]:
    """Interval of Σ sums / Σ sizes when units are drawn; ``count`` units share each pair of sum and size.

    The arrays are of one length and hold integers or floats alike, hence ``Any``.
    """
    units = int(count.sum())
    means = sums / sizes
    if np.ptp(means) < 10.0**-PLACES:  # sums of equal values differ in their last bits
        unseen = wilson(0, units, level)[1]
        centre = float((sums * count).sum() / (sizes * count).sum())
        low, high = ((1 - unseen) * centre + unseen * limit for limit in limits)
        return low, high
    draws = np.random.default_rng(seed).multinomial(units, count / units, size=resamples)
    tail = (1 - level) / 2
    low, high = np.quantile(draws @ sums / (draws @ sizes), [tail, 1 - tail])
    return float(low), float(high)
