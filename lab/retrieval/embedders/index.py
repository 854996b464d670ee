"""Exact nearest facts of a query: one matrix of vectors per database, one matrix product per query."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.errors import EmbeddingFailed
from lab.retrieval.embedders.base import Embedder, Kind, Vectors
from lab.retrieval.embedders.sidecar import Progress, SealedVectors, Sidecar
from lab.retrieval.systems.base import SCORE_DIGITS

QUERY_SECONDS = 10.0
"""Default time limit of a query's embedding."""

SILENT_AFTER, SHORTENED = 3, 0.1
"""After so many timeouts in a row a query gets only this share of its limit, until one is answered in time.

Every query still asks, so a server that comes back is found again; one that hangs no longer holds up every topic for
the whole limit. It is counted in queries, not in seconds: the same answers of the server give the same run.
"""


@dataclass(frozen=True)
class Neighbours:
    """The facts nearest to a query.

    Attributes:
        pairs: Fact id and cosine, rounded to 6 decimals; best first, equal ones by ascending id.
        seconds: Wall time of ``embed`` (the query's vector) and ``dense`` (the comparison).
    """

    pairs: tuple[tuple[int, float], ...]
    seconds: Mapping[str, float]


class DenseIndex:
    """Vectors of a database's facts and the model that a query is embedded with.

    Args:
        fact_ids: Row ids, in the order of the vectors.
        vectors: Their vectors.
        embedder: The model.
        timeout: Seconds that a query's embedding may take; None for no limit.
    """

    def __init__(
        self,
        fact_ids: Sequence[int],
        vectors: SealedVectors,
        embedder: Embedder,
        timeout: float | None = QUERY_SECONDS,
    ) -> None:
        self.fact_ids = np.asarray(fact_ids, dtype=np.int64)
        self.vectors = vectors
        self.embedder = embedder
        self._timeout = timeout
        self._timeouts = 0

    def nearest(self, query: str, limit: int) -> Neighbours:
        """The facts whose vectors are nearest to a query's, exactly: ties at the cut are settled by id, too.

        Args:
            query: Any text. One without a character that shows has no meaning to compare: it is near to nothing.
            limit: Most facts wanted.

        Raises:
            EmbeddingFailed: The query could not be embedded.
        """
        if limit < 1 or not len(self.fact_ids) or not query.strip():
            return Neighbours((), {})
        started = time.perf_counter()
        vector = self.embed_query(query)
        embedded = time.perf_counter()
        cosines = np.round((self.vectors.matrix @ vector[0]).astype(np.float64), SCORE_DIGITS)
        chosen = np.arange(len(cosines))
        if limit < len(cosines):
            # All that are as good as the last one of the cut, and only then the order.
            cut = np.partition(cosines, len(cosines) - limit)[len(cosines) - limit]
            chosen = np.flatnonzero(cosines >= cut)
        order = chosen[np.lexsort((self.fact_ids[chosen], -cosines[chosen]))][:limit]
        # Adding zero makes a negative zero positive.
        pairs = tuple((int(self.fact_ids[row]), float(cosines[row]) + 0.0) for row in order)
        return Neighbours(pairs, {"embed": embedded - started, "dense": time.perf_counter() - embedded})

    def embed_query(self, query: str) -> Vectors:
        """The vector of a query, shape (1, dimensions), within the time limit; see ``SILENT_AFTER``.

        Raises:
            EmbeddingFailed: The query could not be embedded.
        """
        limit = self._timeout
        if limit is not None and self._timeouts >= SILENT_AFTER:
            limit *= SHORTENED
        try:
            found = self.embedder.embed([query], Kind.QUERY, limit)
        except EmbeddingFailed as error:
            self._timeouts = self._timeouts + 1 if error.cause == "timeout" else 0
            raise
        self._timeouts = 0
        return found


def rows_with_text(rows: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The rows (fact id, content) that get a vector: those with a character that shows."""
    return [(fact_id, content) for fact_id, content in rows if content.strip()]


@dataclass(frozen=True)
class DenseIndexes:
    """Makes an index for a database's facts; vectors that the sidecar has are not computed again.

    Attributes:
        embedder: The model.
        sidecar: File of vectors.
        timeout: Seconds that a query's embedding may take; None for no limit.
        progress: Told how many facts are embedded.
    """

    embedder: Embedder
    sidecar: Path
    timeout: float | None = QUERY_SECONDS
    progress: Progress | None = None

    def __call__(self, rows: Sequence[tuple[int, str]]) -> DenseIndex:
        """Makes the index.

        Args:
            rows: Fact id and content. A content without a character that shows has no vector and is never found.

        Raises:
            EmbeddingFailed: The facts could not be embedded.
            InputError: The sidecar is damaged.
            EnvironmentUnusable: The sidecar cannot be written.
        """
        told = rows_with_text(rows)
        texts = [content for _, content in told]
        vectors = Sidecar(self.sidecar).vectors(self.embedder, texts, Kind.DOCUMENT, self.progress)
        return DenseIndex([fact_id for fact_id, _ in told], vectors, self.embedder, self.timeout)
