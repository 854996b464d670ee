"""The two legs of the archive's search over a database's facts: by words and by vectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from lab.errors import InputError
from lab.memories.archive.episodic import EpisodicIndex
from lab.memories.archive.logs import Message, write_log
from lab.memories.archive.vectors import VectorStore
from lab.retrieval.database import StoredFact
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.testset import Author

SESSION = "facts"
"""The session that a database's facts are written to."""

_ROLES = {Author.AGENT: "assistant"}

Scores = Mapping[int, float]
"""Score by fact id."""


class Leg(Protocol):
    """One way of searching."""

    def scores(self, query: str, limit: int, seconds: dict[str, float]) -> Scores | None:
        """Scores of the best facts, with all that are as good as the last one.

        Args:
            query: Any text.
            limit: Most facts wanted, ties at the cut apart.
            seconds: Gets the wall time by stage.

        Returns:
            None where the query has nothing that this leg could compare.

        Raises:
            EmbeddingFailed: The query could not be embedded.
            InputError: The index is damaged.
        """
        ...

    def close(self) -> None:
        """Lets go of its files; may be called twice."""
        ...


class Words:
    """The facts as a session log under an episodic index.

    Args:
        place: An empty folder for both.
        facts: The facts.

    Raises:
        InputError: A fact cannot be put into a log.
        EnvironmentUnusable: The disk is full, or this SQLite has no FTS5.
        OSError: The log cannot be written.
    """

    def __init__(self, place: Path, facts: Sequence[StoredFact]) -> None:
        messages = [as_message(fact) for fact in facts]
        self._facts = {message.point: fact.fact_id for message, fact in zip(messages, facts, strict=True)}
        logs = place / "logs"
        logs.mkdir()
        write_log(logs / f"{SESSION}.jsonl", messages)
        self._index = EpisodicIndex(place / "episodes.sqlite")
        try:
            report = self._index.index(logs)
            if report.messages != len(facts):
                first = report.skipped[0]
                what = f"{len(facts) - report.messages} facts cannot be put into a session log: {first.reason}"
                raise InputError(f"{what}: {first.detail}", "take them out of the database")
        except BaseException:
            self._index.close()
            raise

    def scores(self, query: str, limit: int, seconds: dict[str, float]) -> Scores | None:
        """BM25; see ``Leg``."""
        if not self._index.expression(query):
            return None
        started = time.perf_counter()
        found = {self._facts[episode.point]: episode.score for episode in self._index.search(query, limit)}
        seconds["lexical"] = time.perf_counter() - started
        return found

    def close(self) -> None:
        """Closes the index."""
        self._index.close()


class Meaning:
    """The facts' vectors in a vector store, under the same point ids as their messages.

    Args:
        place: A folder for the store.
        facts: The facts.
        indexes: Gives their vectors, from the sidecar where it has them.

    Raises:
        EmbeddingFailed: The facts could not be embedded.
        EnvironmentUnusable: LanceDB is not installed, or the disk is full.
    """

    def __init__(self, place: Path, facts: Sequence[StoredFact], indexes: DenseIndexes) -> None:
        self._facts = {as_message(fact).point: fact.fact_id for fact in facts}
        self._dense = indexes([(fact.fact_id, fact.content) for fact in facts])
        self._store = VectorStore(place / "vectors", self._dense.embedder.identity.dimensions)
        points = {fact_id: point for point, fact_id in self._facts.items()}
        vectors = self._dense.vectors
        self._store.sync([points[fact] for fact in self._dense.fact_ids.tolist()], vectors.matrix, vectors.seals)

    def scores(self, query: str, limit: int, seconds: dict[str, float]) -> Scores | None:
        """Cosines; see ``Leg``. A query without a character that shows has no meaning to compare."""
        if not query.strip():
            return None
        started = time.perf_counter()
        vector = self._dense.embed_query(query)[0]
        embedded = time.perf_counter()
        found = {self._facts[point]: cosine for point, cosine in self._store.nearest(vector, limit)}
        seconds |= {"embed": embedded - started, "dense": time.perf_counter() - embedded}
        return found

    def close(self) -> None:
        """Nothing is held open between queries."""


def as_message(fact: StoredFact) -> Message:
    """A fact as somebody said it. Its tags and keywords have no place in a log of what was said."""
    role = _ROLES.get(fact.author, "user")
    return Message(id=str(fact.fact_id), session=SESSION, role=role, author=fact.author.value, text=fact.content)
