"""Interval of the difference of two independent estimates, from the interval of each."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Attributes:
        value: Point estimate.
        low: Lower bound.
        high: Upper bound.
    """

    value: float
    low: float
    high: float


def difference(first: Estimate, second: Estimate) -> Estimate:
    """First minus second, by the method of variance estimates recovery.

    It needs no assumption on either interval's shape, so the two may be of any kind at the same level.

    Source: G. Y. Zou and A. Donner, *Construction of confidence limits about effect measures: a general approach*,
    Statistics in Medicine 27 (2008) 1693-1702, equation 2.

    Args:
        first: An estimate.
        second: One from another sample.
    """
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, value - below, value + above)
