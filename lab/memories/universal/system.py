"""The universal layer as a system under test: a frozen database's facts become episodes of a store of its own."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.errors import InputError, LabError, SystemFailed
from lab.memories.universal.contradiction import SHARED
from lab.memories.universal.fusion import WEIGHTS, Fusion
from lab.memories.universal.graph import FRONTIER, HOPS
from lab.memories.universal.records import SCHEMA_VERSION, Draft, Scope
from lab.memories.universal.search import DEPTH, Answer, Search
from lab.memories.universal.store import Store
from lab.records import first_fault
from lab.retrieval.database import FactContext, StoredFact, open_database, read_context, read_facts
from lab.retrieval.systems.base import Hit, Ranking
from lab.retrieval.systems.factstore import Index

AGENT = "bench"
"""Agent whose memory the facts become."""

_NOW = 0.0
"""The time of every search: facts of a test set never expire."""


class UniversalSystem:
    """The universal layer with one fusion, with or without vectors.

    What a frozen database states goes in: content, tags (without those that enrichment added), trust, time, the
    entities that the agent's rules found in a fact, and the targets of the relations that its set states. Such a
    relation names no subject. It links the record with its target, one hop as a mention is, whatever its kind; a
    relation between two entities, which has both ends, is made of none.

    Args:
        fusion: How ranks are fused.
        index: Makes the channel of vectors; None for words and graph alone.
    """

    def __init__(self, fusion: Fusion, index: Index | None) -> None:
        self._fusion, self._index = fusion, index
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._store: Store | None = None
        self._search: Search | None = None
        self._facts: dict[int, int] = {}

    @property
    def name(self) -> str:
        """``universal``."""
        return "universal"

    def settings(self) -> Mapping[str, Any]:
        """Everything that decides its results beside the database and the model of the vectors."""
        return {
            "fusion": str(self._fusion),
            "fusion_k": self._fusion.k,
            "weights": dict(WEIGHTS),
            "embeddings": self._index is not None,
            "candidates": DEPTH,
            "hops": HOPS,
            "frontier": FRONTIER,
            "contradiction_shared": SHARED,
            "schema_version": SCHEMA_VERSION,
            "sqlite": sqlite3.sqlite_version,
        }

    def open(self, database: Path) -> None:
        """Takes the facts into a store in a temporary file; see ``System``.

        Raises:
            EmbeddingFailed: The facts could not be embedded.
        """
        self.close()
        with closing(open_database(database)) as source:
            facts, context = read_facts(source), read_context(source)
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="lab-universal-")
            self._store = Store(Path(self._folder.name) / "universal.db")
            drafts = [_draft(fact, context[fact.fact_id]) for fact in facts]
            records = self._store.commit(self._store.stage(drafts))
            self._facts = dict(zip(records, (fact.fact_id for fact in facts), strict=True))
            self._search = Search(self._store, self._fusion, self._index)
            self._search.prepare()
        except BaseException:
            self.close()
            raise

    def recall(self, query: str, k: int) -> Answer:
        """What ``search`` ranks, with the records that contradict each hit.

        Raises:
            SystemFailed: No database is open, or the store failed.
        """
        if self._search is None:
            raise SystemFailed("no database is open", "open one first")
        try:
            return self._search(query, k, Scope(now=_NOW))
        except LabError as error:
            raise SystemFailed(error.message, error.mend) from error

    def fact_id(self, record_id: int) -> int:
        """The fact that a record was made of."""
        return self._facts[record_id]

    def search(self, query: str, k: int) -> Ranking:
        """See ``System.search``."""
        answer = self.recall(query, k)
        return Ranking(
            tuple(Hit(self._facts[found.record_id], found.score, found.parts) for found in answer.found),
            answer.seconds,
            answer.legs,
            confidence=answer.confidence,
            fallback=answer.fallback,
        )

    def close(self) -> None:
        """Lets go of the store and removes its file; may be called twice."""
        self._search, self._facts = None, {}
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _draft(fact: StoredFact, context: FactContext) -> Draft:
    try:
        return Draft(
            content=fact.content,
            agent_id=AGENT,
            created_at=context.created_at,
            trust=fact.trust,
            tags=fact.tags,
            entities=(*context.entities, *(relation.target for relation in context.relations)),
        )
    except ValidationError as error:
        raise InputError(
            f"fact {fact.fact_id}: {first_fault(error)}", "mend the database and freeze it again"
        ) from error
