"""Difference of two paired rates: a score interval, what nesting costs, and how many pairs a verdict needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import norm  # type: ignore[import-untyped]

from lab.statistics.proportions import LEVEL

POWER = 0.8
"""Probability with which the number of pairs that is called needed gives a verdict."""

_NEAR = 1e-9


def score_interval(gained: float, lost: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Score interval of the difference of two paired rates, second minus first.

    It is the interval that belongs to McNemar's test: it inverts the score test of any difference, and so stays wide
    where few pairs or none differ. The counts need not be whole: see ``design_effect``.

    Source: T. Tango, *Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design*, Statistics in Medicine 17 (1998) 891-908.

    Args:
        gained: Pairs in which the second alone succeeded.
        lost: Pairs in which the first alone did.
        n: All pairs, more than 0.
        level: Confidence level.

    Returns:
        Lower and upper bound, −1 to 1.

    Raises:
        ValueError: There is no pair, or more pairs differ than there are.
    """
    if n <= 0 or min(gained, lost) < 0 or gained + lost > n * (1 + _NEAR):
        raise ValueError(f"{gained} and {lost} of {n} pairs differ")
    z = float(norm.isf((1 - level) / 2))
    value = (gained - lost) / n

    def excess(difference: float) -> float:
        """Squared distance of the counts from a difference, less what z standard errors allow."""
        return (gained - lost - n * difference) ** 2 - z * z * n * _spread(gained, lost, n, difference)

    low = -1.0 if value <= -1 + _NEAR else float(brentq(excess, -1.0, value - _NEAR, xtol=1e-12))
    high = 1.0 if value >= 1 - _NEAR else float(brentq(excess, value + _NEAR, 1.0, xtol=1e-12))
    return low, high


def _spread(gained: float, lost: float, n: float, difference: float) -> float:
    """Variance of one pair's change under a difference: what Tango's test divides by."""
    b = (2 * n - gained + lost) * difference - gained - lost
    root = math.sqrt(max(0.0, b * b + 8 * n * lost * difference * (1 - difference)))
    only_first = (root - b) / (4 * n)  # its probability, most likely under that difference
    return max(0.0, 2 * only_first + difference * (1 - difference))


def design_effect(differences: ArrayLike, units: Sequence[str]) -> float:
    """By how much pairs of one unit tell less than as many independent ones: 1 where each unit has one pair.

    Counts and n divided by it may be treated as if they were independent. Where all differences are equal nothing can
    be estimated, and the pairs of a unit count as one (all alike); that is also the most it can be.

    Source: J. N. K. Rao and A. J. Scott, *A simple method for the analysis of clustered binary data*, Biometrics 48
    (1992) 577-585.

    Args:
        differences: −1, 0 or 1 of each pair.
        units: Unit of each pair, over which the pairs are nested.
    """
    values = np.asarray(differences, dtype=np.float64)
    names, member = np.unique(np.asarray(units), return_inverse=True)
    sizes, sums = np.bincount(member), np.bincount(member, weights=values)
    most = float((sizes**2).sum() / sizes.sum())
    alone = float(((values - values.mean()) ** 2).sum())
    if len(names) == 1 or alone == 0:
        return most
    nested = float(((sums - sizes * values.mean()) ** 2).sum()) * len(names) / (len(names) - 1)
    return min(max(nested / alone, 1.0), most)


def pairs_needed(gained: float, lost: float, n: float, *, margin: float, alpha: float, power: float = POWER) -> int:
    """Pairs with which the observed fractions, were they the truth, would give a verdict.

    There are two ways to one, of which the shorter is told: to show the difference by McNemar's test at ``alpha``
    (R. J. Connor, *Sample size for testing differences in proportions for the paired-sample design*, Biometrics 43
    (1987) 207-211; and no fewer than an exact test needs to reach ``alpha`` at all), or to show by the score interval
    that it is smaller than the margin (J. Nam, *Establishing equivalence of two treatments and sample size
    requirements in matched-pairs design*, Biometrics 53 (1997) 1422-1430, for two one-sided tests).

    Args:
        gained: Pairs in which the second alone succeeded.
        lost: Pairs in which the first alone did.
        n: All pairs, more than 0.
        margin: Largest difference that is taken for none, above 0.
        alpha: Level of the test.
        power: Probability of the verdict.

    Returns:
        Number of pairs, at least one more than there are: these have not sufficed.
    """
    differing, value = (gained + lost) / n, abs(gained - lost) / n
    variance = max(0.0, differing - value**2)
    ways = []
    if value > 0:
        shown = (norm.isf(alpha / 2) * math.sqrt(differing) + norm.isf(1 - power) * math.sqrt(variance)) ** 2 / value**2
        fewest = math.floor(1 - math.log2(alpha)) + 1  # 2^(1-k) < alpha with k differing pairs, all one way
        ways.append(max(shown, fewest / differing))
    if value < margin:
        limit = norm.isf((1 - LEVEL) / 2) * math.sqrt(_spread(max(gained, lost), min(gained, lost), n, margin))
        ways.append((limit + norm.isf((1 - power) / 2) * math.sqrt(variance)) ** 2 / (margin - value) ** 2)
    return max(math.ceil(float(min(ways)) - _NEAR), math.floor(n) + 1)
