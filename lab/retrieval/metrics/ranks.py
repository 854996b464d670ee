"""Rank of the first relevant hit of each topic, over arrays; and the exact measures that follow from these ranks."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

CUTOFF = 10
"""Deepest rank that counts: Hit@10, MRR@10."""

Ranks = NDArray[np.int64]
"""Rank of the first relevant hit of each topic, from 1; 0 where there is none."""

Id = TypeVar("Id", int, str)


def first_relevant_ranks(rankings: Sequence[Sequence[Id]], relevant: Sequence[AbstractSet[Id]]) -> Ranks:
    """Rank of the first relevant hit of each topic.

    All rankings are laid end to end in one flat array of judgements (a ragged array), so rankings of different length
    and empty ones need no padding. A topic that is missing from a run must be given as an empty ranking: it then
    counts 0, as it should.

    Args:
        rankings: Ids of the hits of each topic, best first.
        relevant: Ids that are relevant to each topic, in the same order of topics.

    Returns:
        Array of shape (topics,).

    Raises:
        ValueError: There are more topics on one side than on the other.
    """
    if len(rankings) != len(relevant):
        raise ValueError(f"{len(rankings)} rankings, but judgements for {len(relevant)} topics")
    lengths = np.fromiter(map(len, rankings), np.int64, len(rankings))
    ends = lengths.cumsum()
    starts = ends - lengths
    judged = chain.from_iterable(map(map, [ids.__contains__ for ids in relevant], rankings))
    found = np.flatnonzero(np.fromiter(judged, np.bool_, int(lengths.sum())))
    # The first relevant hit at or behind the start of each ranking; it may lie in a later ranking, or nowhere.
    found = np.append(found, lengths.sum())
    nearest = found[np.searchsorted(found, starts)]
    return np.where(nearest < ends, nearest - starts + 1, 0)


def reciprocal(ranks: Ranks) -> NDArray[np.float64]:
    """Reciprocal of each rank; 0 where there is none within the cutoff."""
    counts = (ranks > 0) & (ranks <= CUTOFF)
    return np.where(counts, 1.0 / np.maximum(ranks, 1), 0.0)


@dataclass(frozen=True)
class RankCounts:
    """How many topics have their first relevant hit at each rank: all that the measures depend on.

    Attributes:
        n: Topics.
        at: Topics by rank, 1 to 10.
    """

    n: int
    at: tuple[int, ...]

    @classmethod
    def of(cls, ranks: Ranks) -> RankCounts:
        """Counts ranks; those beyond the cutoff are misses."""
        within = ranks[(ranks > 0) & (ranks <= CUTOFF)]
        counts = np.bincount(within, minlength=CUTOFF + 1)
        return cls(len(ranks), tuple(int(count) for count in counts[1:]))

    def hits(self, k: int) -> int:
        """Topics with a relevant hit among the first k."""
        return sum(self.at[:k])

    @property
    def reciprocal_sum(self) -> Fraction:
        """Sum of the reciprocal ranks, misses being 0."""
        return sum((Fraction(count, rank) for rank, count in enumerate(self.at, 1)), Fraction())

    @property
    def mrr(self) -> Fraction | None:
        """Mean reciprocal rank over all topics; None without a topic."""
        return self.reciprocal_sum / self.n if self.n else None

    @property
    def mrr_conditional(self) -> Fraction | None:
        """Mean reciprocal rank over topics with a hit; None without a hit."""
        hits = self.hits(CUTOFF)
        return self.reciprocal_sum / hits if hits else None
