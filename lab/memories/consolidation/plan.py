"""One round of consolidation, as a proposal: what would be merged, what archived, what contradicts what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lab.memories.consolidation.contradictions import Pair, scan
from lab.memories.consolidation.decay import is_archived
from lab.memories.consolidation.duplicates import THRESHOLD, duplicate_clusters
from lab.memories.consolidation.kinds import Memory

_SECONDS_AN_HOUR = 3600


@dataclass(frozen=True)
class Plan:
    """What a round proposes. It changes nothing by itself.

    Attributes:
        merged: Clusters of duplicates.
        disputed: Clusters that hold a flagged pair: to merge them would settle the contradiction by accident.
        archived: Ids whose strength has fallen below the floor.
        contradictions: Flagged pairs.
    """

    merged: tuple[tuple[str, ...], ...]
    disputed: tuple[tuple[str, ...], ...]
    archived: tuple[str, ...]
    contradictions: tuple[Pair, ...]


def consolidate(
    memories: Sequence[Memory], vectors: NDArray[np.float32], now: datetime, *, threshold: float = THRESHOLD
) -> Plan:
    """Proposes a round of consolidation.

    Args:
        memories: All memories, each id once.
        vectors: Shape (memories, dimensions), rows of unit length, in the same order.
        now: The moment to which ages are counted.
        threshold: Least cosine of duplicates.

    Raises:
        InputError: Memories and vectors do not fit each other.
    """
    clusters = duplicate_clusters([memory.id for memory in memories], vectors, threshold)
    contradictions = scan(memories)
    place = {name: cluster for cluster in clusters for name in cluster}
    disputed = {
        place[pair.first]
        for pair in contradictions
        if pair.first in place and place[pair.first] == place.get(pair.second)
    }
    return Plan(
        merged=tuple(cluster for cluster in clusters if cluster not in disputed),
        disputed=tuple(cluster for cluster in clusters if cluster in disputed),
        archived=tuple(
            memory.id
            for memory in memories
            if is_archived(memory.kind, (now - memory.at).total_seconds() / _SECONDS_AN_HOUR)
        ),
        contradictions=contradictions,
    )
