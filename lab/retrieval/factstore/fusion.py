"""Joins rankings: reciprocal rank fusion, a weighted sum of normalised scores, and the ranking of authors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""
DIGITS = 6
"""Decimals to which scores are rounded before they are compared; equal ones are ordered by fact id."""


def ranked(scores: Mapping[int, float]) -> list[int]:
    """Fact ids, best score first, equal scores by id."""
    return sorted(scores, key=lambda fact_id: (-round(scores[fact_id], DIGITS), fact_id))


def reciprocal(rank: int) -> float:
    """What a rank, counted from 1, is worth in reciprocal rank fusion."""
    return 1.0 / (K + rank)


def reciprocal_ranks(ranking: Sequence[int]) -> dict[int, float]:
    """The same for each fact of a ranking."""
    return {fact_id: reciprocal(rank) for rank, fact_id in enumerate(ranking, start=1)}


def to_unit(scores: Mapping[int, float], floor: float = 0.0) -> dict[int, float]:
    """Scores scaled so that the floor is 0 and the best is 1; all 1 where none is above the floor."""
    top = max(scores.values(), default=floor)
    if top <= floor:
        return dict.fromkeys(scores, 1.0)
    return {fact_id: max(0.0, score - floor) / (top - floor) for fact_id, score in scores.items()}


def author_rank(author: str, priority: Sequence[str]) -> int:
    """Rank of a fact by its author, from 1: the author's place in the priority. Facts of one author share it.

    Ranks are not counted over the candidates. If they were (1, 1, 1, 4, as for shared medals), the best fact of a third
    party would come after every fact of the user's among fifty candidates, whatever was asked. As it is, author ranks
    span 1 to 4, which lets the best fact be overtaken by those two places below it (three in a tie), and no others.
    """
    return priority.index(author if author in priority else "unknown") + 1
