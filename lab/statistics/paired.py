"""Comparisons of two systems on the same topics: exact McNemar, paired bootstrap, Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest  # type: ignore[import-untyped]

from lab.statistics.cluster import RESAMPLES, SEED
from lab.statistics.means import MeanInterval, mean_interval
from lab.statistics.proportions import LEVEL


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact test that successes of the first alone are as frequent as those of the second alone.

    Source: Q. McNemar (1947), Psychometrika 12:153-157; the exact form is a sign test on the discordant pairs.

    Args:
        only_first: Pairs in which the first alone succeeded.
        only_second: Pairs in which the second alone did.

    Returns:
        The p-value; 1 where no pair is discordant.
    """
    discordant = only_first + only_second
    return float(binomtest(only_first, discordant).pvalue) if discordant else 1.0


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    clusters: Sequence[str] | None = None,
    level: float = LEVEL,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> MeanInterval:
    """Interval of the mean of first minus second; pairs are drawn together, and whole clusters where there are some.

    Args:
        first: Values from 0 to 1, one a topic.
        second: The same for the other system, in the same order of topics.
        clusters: Cluster of each topic; None for independent topics.
        level: Confidence level.
        seed: Seed of the generator.
        resamples: Number of resamples.

    Raises:
        ValueError: There is no pair, or one side has more values than the other.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError("values are not paired")
    # Differences of equal fractions must be equal: the last bits would make them distinct values of the sample.
    difference = np.round(a - b, 12)
    return mean_interval(difference, clusters=clusters, limits=(-1.0, 1.0), level=level, seed=seed, resamples=resamples)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values of Holm's step-down procedure, in the order given.

    Source: S. Holm (1979), Scandinavian Journal of Statistics 6:65-70. The family-wise error rate is kept whatever
    the dependence between the tests.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return tuple(float(value) for value in adjusted)
