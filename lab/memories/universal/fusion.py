"""Joins the rankings of the legs: a weighted sum of reciprocal ranks, by the published formula or as RRF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from lab.retrieval.systems.base import SCORE_DIGITS

WEIGHTS: Mapping[str, float] = {"vector": 0.5, "keyword": 0.3, "graph": 0.2}
"""Weights of the legs as the design was published."""


class Fusion(StrEnum):
    """What a rank is worth."""

    PUBLISHED = "published"
    """1 / (rank + 1), ranks from 0: the second place is worth half of the first."""
    RRF = "rrf"
    """1 / (60 + rank), ranks from 1 (Cormack, Clarke and Buettcher 2009): the second is worth 61/62 of the first."""

    @property
    def k(self) -> int:
        """The constant of ``1 / (k + rank)`` with ranks from 1, of which both are cases."""
        return 60 if self is Fusion.RRF else 0


def places(found: Sequence[tuple[int, float]]) -> dict[int, int]:
    """Places in a ranking, from 1; records with the same score share one, which counts all that are better.

    A leg that cannot tell two records apart makes no order between them: otherwise the lower id would be worth up to
    twice the other under the published formula.

    Args:
        found: Record ids with scores, best first.
    """
    held: dict[int, int] = {}
    place, last = 0, None
    for number, (record_id, score) in enumerate(found, 1):
        if score != last:
            place, last = number, score
        held[record_id] = place
    return held


def fuse(legs: Mapping[str, Sequence[tuple[int, float]]], fusion: Fusion) -> list[tuple[int, float, dict[str, float]]]:
    """Fuses rankings: the score of a record is the sum over the legs of ``weight / (k + place)``.

    A leg that did not run or found nothing gives nothing; the weights of the others stay what they are, which changes
    no order.

    Args:
        legs: Rankings by the name of their leg (``WEIGHTS``): record ids with scores, best first.
        fusion: The formula.

    Returns:
        Record ids with their score and what each leg gave, best first, equal ones by id.
    """
    parts: dict[int, dict[str, float]] = {}
    for leg, found in legs.items():
        for record_id, place in places(found).items():
            parts.setdefault(record_id, {})[leg] = WEIGHTS[leg] / (fusion.k + place)
    fused = [(record_id, round(sum(given.values()), SCORE_DIGITS), given) for record_id, given in parts.items()]
    return sorted(fused, key=lambda row: (-row[1], row[0]))
