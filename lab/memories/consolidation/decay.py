"""How a memory's strength falls with its age, by its type: a Weibull survival function."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lab.memories.consolidation.kinds import MemoryType

SCALE_HOURS: Mapping[MemoryType, float] = {MemoryType.OBSERVATION: 336.0, MemoryType.WORKING_FACT: 2160.0}
"""Age at which the strength is 1/e, at every shape: 14 and 90 days. Types that are not named are exempt."""

SHAPE = 1.0
"""Shape of the curve. The design states none. At 1 the loss is the same in every hour, whatever the age; below 1 old
memories fade slowly, above 1 they fall off a cliff."""

FLOOR = 0.1
"""Strength below which a memory is archived. The design states none."""


def strength(kind: MemoryType, age_hours: float, *, shape: float = SHAPE) -> float:
    """Strength of a memory: ``exp(-(age / scale) ** shape)``, 1 for exempt types.

    Source: W. Weibull, *A Statistical Distribution Function of Wide Applicability*, J. Appl. Mech. 18 (1951) 293-297.

    Args:
        kind: Its type.
        age_hours: Hours since it was made or last confirmed; a negative age (a clock that is behind) counts as 0.
        shape: Shape of the curve, above 0.

    Returns:
        0 to 1.

    Raises:
        ValueError: The age is no number, or the shape is not above 0.
    """
    if math.isnan(age_hours) or not shape > 0:
        raise ValueError("the age is no number, or the shape is not above 0")
    if kind not in SCALE_HOURS:
        return 1.0
    return math.exp(-((max(age_hours, 0.0) / SCALE_HOURS[kind]) ** shape))


def lifetime(kind: MemoryType, *, shape: float = SHAPE, floor: float = FLOOR) -> float:
    """Hours until a memory falls to the floor; infinite for exempt types.

    Args:
        kind: Its type.
        shape: Shape of the curve, above 0.
        floor: Strength, above 0 and at most 1.

    Raises:
        ValueError: The floor or the shape is out of bounds.
    """
    if not 0 < floor <= 1 or not shape > 0:
        raise ValueError("the floor is above 0 and at most 1, the shape above 0")
    return SCALE_HOURS[kind] * (-math.log(floor)) ** (1 / shape) if kind in SCALE_HOURS else math.inf


def is_archived(kind: MemoryType, age_hours: float, *, shape: float = SHAPE, floor: float = FLOOR) -> bool:
    """Whether a memory has fallen below the floor. It is moved to the archive, never deleted.

    Raises:
        ValueError: As ``strength``.
    """
    return strength(kind, age_hours, shape=shape) < floor
