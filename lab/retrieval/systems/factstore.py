"""Our fact store as a system under test: the plugin's own retrieval, in process, on a private copy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.errors import EmbeddingFailed, InputError, SystemFailed
from lab.retrieval.factstore.channel import Channel, ChannelFailed, Neighbours
from lab.retrieval.factstore.fusion import K
from lab.retrieval.factstore.gate import TOP
from lab.retrieval.factstore.retriever import Retriever
from lab.retrieval.factstore.schema import VERSION, StoreUnreadable, open_store
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.systems.base import Hit, Ranking

Index = Callable[[Sequence[tuple[int, str]]], Channel]
"""Makes an embedding channel of rows ``(fact_id, content)``. It, or what it makes, may raise ``EmbeddingFailed``."""


class FactstoreSystem:
    """``factstore`` with one set of settings.

    Args:
        settings: What decides the ranking.
        index: Makes the embedding channel when a database is opened; None for an arm without embeddings.
    """

    def __init__(self, settings: FactstoreSettings, index: Index | None = None) -> None:
        self._settings = settings
        self._index = index
        self._connection: sqlite3.Connection | None = None
        self._retriever: Retriever | None = None

    @property
    def name(self) -> str:
        """Short name."""
        return "factstore"

    def settings(self) -> Mapping[str, Any]:
        """All settings, whether there is a channel, and the constants of gate and fusion."""
        own = {"embeddings": self._index is not None, "store_version": VERSION, "rrf_k": K, "gate_top": TOP}
        return {**asdict(self._settings), **own}

    def open(self, database: Path) -> None:
        """See ``System.open``. An upstream database gets our columns, so it must be a private copy.

        Raises:
            InputError: There is no database, or not one that this system reads.
            EmbeddingFailed: The index cannot be made.
        """
        self.close()
        if not database.is_file():
            raise InputError(f"no database at {database}", "freeze one: lab snapshot freeze")
        try:
            self._connection = open_store(database)
            channel = None
            if self._index is not None:
                rows = self._connection.execute("SELECT fact_id, content FROM facts ORDER BY fact_id")
                channel = _Translated(self._index([(row[0], row[1]) for row in rows]))
            self._retriever = Retriever(self._connection, self._settings, channel)
        except EmbeddingFailed:
            self.close()
            raise
        except (StoreUnreadable, sqlite3.Error) as error:
            self.close()
            raise InputError(str(error), "freeze the database again") from error

    def search(self, query: str, k: int) -> Ranking:
        """See ``System.search``."""
        if self._retriever is None:
            raise SystemFailed("factstore is asked before a database is open", "open one first")
        try:
            answer = self._retriever.search(query, k)
        except sqlite3.Error as error:
            raise SystemFailed(f"factstore cannot search: {error}", "freeze the database again") from error
        return Ranking(
            hits=tuple(Hit(found.fact_id, found.score, found.parts) for found in answer.found),
            seconds=answer.seconds,
            channels=answer.channels,
            coverage=answer.coverage,
            confidence=answer.confidence,
            fallback=answer.fallback,
        )

    def close(self) -> None:
        """See ``System.close``."""
        self._retriever = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Translated:
    """A channel of the lab's as the plugin knows channels: the plugin must not import the lab's errors."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def nearest(self, query: str, limit: int) -> Neighbours:
        """See ``Channel.nearest``."""
        try:
            return self._channel.nearest(query, limit)
        except EmbeddingFailed as error:
            raise ChannelFailed(error.cause, error.message) from error
