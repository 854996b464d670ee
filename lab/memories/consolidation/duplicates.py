"""Clusters of memories whose vectors are near to each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

from lab.errors import InputError
from lab.retrieval.systems.base import SCORE_DIGITS

THRESHOLD = 0.70
"""Cosine from which two memories count as duplicates, as the design has it."""

_BLOCK = 1024
_UNIT = 1e-3


def duplicate_clusters(
    ids: Sequence[str], vectors: NDArray[np.float32], threshold: float = THRESHOLD
) -> tuple[tuple[str, ...], ...]:
    """Groups of memories that are linked by pairs at or above a cosine (single linkage).

    Links chain: two members of a cluster may be farther from each other than the threshold. Cosines are rounded to
    6 decimals before they are compared.

    Args:
        ids: Names of the memories, each once.
        vectors: Shape (memories, dimensions), rows of unit length.
        threshold: Least cosine of a link.

    Returns:
        Clusters of two or more, members in the order given, clusters in the order of their first member.

    Raises:
        InputError: Names and vectors do not fit each other, or a row has no unit length: its cosines would be none.
    """
    if len(set(ids)) != len(ids) or vectors.ndim != 2 or len(vectors) != len(ids):
        raise InputError(f"{len(ids)} memories do not fit vectors of shape {vectors.shape}", "embed them again")
    lengths = np.linalg.norm(vectors, axis=1)
    if faulty := [name for name, length in zip(ids, lengths, strict=True) if not abs(length - 1) < _UNIT]:
        raise InputError(f"the vector of {faulty[0]} has no unit length", "embed it again")
    linked = [
        csr_array(np.round((vectors[start : start + _BLOCK] @ vectors.T).astype(np.float64), SCORE_DIGITS) >= threshold)
        for start in range(0, len(ids), _BLOCK)
    ]
    members: dict[int, list[str]] = {}
    if linked:
        _, groups = connected_components(vstack(linked), directed=False)
        for name, group in zip(ids, groups.tolist(), strict=True):
            members.setdefault(group, []).append(name)
    return tuple(tuple(names) for names in members.values() if len(names) > 1)
