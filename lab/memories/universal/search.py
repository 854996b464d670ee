"""The search of the universal layer: three legs, one fused ranking, and a flag on hits that others contradict."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.errors import EmbeddingFailed
from lab.memories.universal.contradiction import Reason, contradiction
from lab.memories.universal.fusion import Fusion, fuse
from lab.memories.universal.graph import find_related
from lab.memories.universal.keywords import find_words
from lab.memories.universal.records import Scope
from lab.memories.universal.schema import told
from lab.memories.universal.scope import IN_SCOPE, scope_values
from lab.memories.universal.store import Store
from lab.retrieval.factstore.channel import Channel
from lab.retrieval.systems.factstore import Index

DEPTH = 50
"""Candidates of each leg; more where more hits are wanted."""

Leg = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Contradicted:
    """By which record a hit is contradicted, and why."""

    record_id: int
    reason: Reason


@dataclass(frozen=True)
class Found:
    """A hit.

    Attributes:
        record_id: The record.
        score: Fused score, the higher the better.
        parts: What each leg gave to it.
        contradicted: The other candidates of the query that contradict it, by ascending id; empty where none does.
    """

    record_id: int
    score: float
    parts: Mapping[str, float]
    contradicted: tuple[Contradicted, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a search found.

    Attributes:
        found: Best first, equal scores by id.
        seconds: Wall time by stage.
        legs: The legs that found something.
        confidence: Best cosine in scope; None where no vector was compared.
        fallback: Why the vectors were not compared although there are some: a cause of ``EmbeddingFailed``.
    """

    found: tuple[Found, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    legs: tuple[str, ...] = ()
    confidence: float | None = None
    fallback: str = ""


class Search:
    """Searches a store; writes nothing, so the same search gives the same answer.

    Whoever uses what was found says so with ``Store.touch``.

    Args:
        store: The store.
        fusion: How ranks are fused.
        index: Makes the channel of vectors over rows ``(record id, content)``; made anew when the live records have
            changed. None for a search without vectors.
    """

    def __init__(self, store: Store, fusion: Fusion = Fusion.PUBLISHED, index: Index | None = None) -> None:
        self._store, self._fusion, self._index = store, fusion, index
        self._channel: Channel | None = None
        self._generation = -1

    def prepare(self) -> None:
        """Makes the channel of vectors for the records that are live now, if it is not there yet.

        Raises:
            EmbeddingFailed: They could not be embedded.
        """
        if self._index is None or (generation := self._store.generation()) == self._generation:
            return
        self._channel = self._index([(record.record_id, record.content) for record in self._store.live()])
        self._generation = generation

    def __call__(self, query: str, k: int, scope: Scope) -> Answer:
        """Ranks records for a query.

        Args:
            query: Any text.
            k: Most hits wanted.
            scope: Which records.

        Raises:
            InputError: The store is damaged.
        """
        if k < 1:
            return Answer(())
        limit = max(k, DEPTH)
        legs: dict[str, Leg] = {}
        seconds: dict[str, float] = {}
        fallback = ""
        try:
            legs["vector"] = self._nearest(query, limit, scope, seconds)
        except EmbeddingFailed as error:
            fallback = error.cause
        with told(self._store.path):
            for name, leg in (("keyword", find_words), ("graph", find_related)):
                started = time.perf_counter()
                legs[name] = leg(self._store.connection, query, limit, scope)
                seconds[name] = time.perf_counter() - started
        started = time.perf_counter()
        fused = fuse(legs, self._fusion)
        found = self._flagged(fused, k)
        seconds["fuse"] = time.perf_counter() - started
        best = legs.get("vector")
        return Answer(
            found, seconds, tuple(name for name, leg in legs.items() if leg), best[0][1] if best else None, fallback
        )

    def _nearest(self, query: str, limit: int, scope: Scope, seconds: dict[str, float]) -> Leg:
        self.prepare()
        if self._channel is None:
            return ()
        answer = self._channel.nearest(query, limit)
        seconds.update(answer.seconds)
        found = self._in_scope(answer.pairs, scope)
        if len(found) < len(answer.pairs):
            # What is out of scope has taken places of what is in it: all are looked at.
            found = self._in_scope(self._channel.nearest(query, len(self._store.live())).pairs, scope)
        return found[:limit]

    def _in_scope(self, pairs: Leg, scope: Scope) -> Leg:
        with told(self._store.path):
            rows = self._store.connection.execute(
                "SELECT record_id FROM records r WHERE record_id IN (SELECT value FROM json_each(:ids)) "  # noqa: S608
                f"AND {IN_SCOPE}",
                {**scope_values(scope), "ids": json.dumps([record_id for record_id, _ in pairs])},
            )
            allowed = {row[0] for row in rows}
        return [pair for pair in pairs if pair[0] in allowed]

    def _flagged(self, fused: list[tuple[int, float, dict[str, float]]], k: int) -> tuple[Found, ...]:
        """The best hits, each compared with every candidate of the query, not with the whole store."""
        said = self._store.statements([record_id for record_id, _, _ in fused])
        found = []
        for record_id, score, parts in fused[:k]:
            against = (
                Contradicted(other, reason)
                for other in sorted(said)
                if other != record_id and (reason := contradiction(said[record_id], said[other]))
            )
            found.append(Found(record_id, score, parts, tuple(against)))
        return tuple(found)
