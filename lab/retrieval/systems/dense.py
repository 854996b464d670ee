"""Yardstick: embeddings alone, exact nearest facts by cosine over their content."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lab.errors import EmbeddingFailed, SystemFailed
from lab.retrieval.database import open_database, read_facts
from lab.retrieval.embedders.index import DenseIndex, DenseIndexes
from lab.retrieval.systems.base import Hit, Ranking


class Dense:
    """Ranks by cosine. There is nothing to fall back to: a query that cannot be embedded is an error.

    Args:
        indexes: Makes the index of a database.
    """

    def __init__(self, indexes: DenseIndexes) -> None:
        self._indexes = indexes
        self._index: DenseIndex | None = None

    @property
    def name(self) -> str:
        """``dense``."""
        return "dense"

    def settings(self) -> Mapping[str, Any]:
        """The model and the time limit of a query."""
        model = dataclasses.asdict(self._indexes.embedder.identity)
        return {"embedder": {**model, "prefixes": dict(model["prefixes"])}, "timeout": self._indexes.timeout}

    def open(self, database: Path) -> None:
        """Reads the facts and their vectors; see ``System``.

        Raises:
            EmbeddingFailed: The facts could not be embedded.
        """
        with closing(open_database(database)) as source:
            facts = read_facts(source)
        self._index = self._indexes([(fact.fact_id, fact.content) for fact in facts])

    def search(self, query: str, k: int) -> Ranking:
        """Ranks by cosine; see ``System``. A query without a character that shows finds nothing."""
        if self._index is None:
            raise SystemFailed("no database is open", "open one first")
        try:
            found = self._index.nearest(query, k)
        except EmbeddingFailed as error:
            raise SystemFailed(f"{error.cause}: {error.message}", error.mend) from error
        hits = tuple(Hit(fact_id, cosine, {"dense": cosine}) for fact_id, cosine in found.pairs)
        return Ranking(
            hits,
            found.seconds,
            channels=("dense",) if found.seconds else (),
            confidence=hits[0].score if hits else None,
        )

    def close(self) -> None:
        """Lets go of the index; the embedder stays open for others."""
        self._index = None
