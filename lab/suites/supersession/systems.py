"""The memories that are asked: the graph, a store whose latest row wins, plain BM25, and BM25 behind the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lab.memories.relations.claim import Claim
from lab.memories.relations.graph import RelationGraph
from lab.retrieval.build_database import build_database
from lab.retrieval.database import open_database, read_labels
from lab.retrieval.systems.bm25 import Bm25, Tokenizer
from lab.retrieval.testset import Fact
from lab.suites.supersession.data import Question, Statement

DEPTH = 50
"""Hits among which the filtered text search looks for one that holds."""


class Memory(Protocol):
    """A memory that holds the statements of a set."""

    @property
    def name(self) -> str:
        """Short name."""
        ...

    def answer(self, question: Question) -> tuple[Claim, ...]:
        """Claims that it gives; none for silence.

        Raises:
            SystemFailed: It could not answer; an error of the question, and no result.
        """
        ...


def said(claim: Claim) -> tuple[Claim, ...]:
    """What a reader takes from a stored claim: nothing of a retraction."""
    return () if claim.valid_from == claim.valid_to else (claim,)


class Graph:
    """The bitemporal graph, asked with subject, kind and both moments."""

    name = "bitemporal graph"

    def __init__(self, claims: Sequence[Claim]) -> None:
        self.graph = RelationGraph()
        self.graph.append(*claims)

    def answer(self, question: Question) -> tuple[Claim, ...]:
        """See ``Memory``."""
        return self.graph.as_of(question.valid, question.known, subject=question.subject, kind=question.kind)

    def close(self) -> None:
        """Lets go of the graph."""
        self.graph.close()


class LatestRow:
    """One row for each subject and kind; what is ingested later overwrites it. It has no past to be asked about."""

    name = "latest row wins"

    def __init__(self, claims: Sequence[Claim]) -> None:
        ordered = sorted(claims, key=lambda claim: (claim.ingested_at, claim.id))
        self._rows = {(claim.subject, claim.kind): claim for claim in ordered}

    def answer(self, question: Question) -> tuple[Claim, ...]:
        """See ``Memory``."""
        return said(self._rows[question.subject, question.kind])


class Text:
    """BM25 over the sentences, asked with the question's words; the first hit is the answer.

    Args:
        statements: What it holds.
        folder: Empty folder for its database.
    """

    name = "BM25, first hit"

    def __init__(self, statements: Sequence[Statement], folder: Path) -> None:
        database = folder / "statements.db"
        build_database([Fact(id=one.id, text=one.text, language=one.language) for one in statements], database)
        connection = open_database(database)
        labels = read_labels(connection)
        connection.close()
        by_id = {statement.id: statement.claim() for statement in statements}
        self._rows = {row: by_id[names[0]] for row, names in labels.items()}
        self._search = Bm25(Tokenizer.UNICODE61)
        self._search.open(database)

    def close(self) -> None:
        """Lets go of the index."""
        self._search.close()

    def hits(self, question: Question, k: int) -> list[Claim]:
        """Claims in the order of the search."""
        return [self._rows[hit.fact_id] for hit in self._search.search(question.text, k).hits]

    def answer(self, question: Question) -> tuple[Claim, ...]:
        """See ``Memory``."""
        return next(map(said, self.hits(question, 1)), ())


class TextThenGraph:
    """BM25, of whose hits the first is the answer that holds by the graph at the two moments.

    It is told the moments, but neither subject nor kind: what the graph's times alone do for a text search.
    """

    name = "BM25, filtered by the graph's times"

    def __init__(self, text: Text, graph: RelationGraph) -> None:
        self._text, self._graph = text, graph

    def answer(self, question: Question) -> tuple[Claim, ...]:
        """See ``Memory``."""
        holding = {claim.id for claim in self._graph.as_of(question.valid, question.known)}
        return next(((hit,) for hit in self._text.hits(question, DEPTH) if hit.id in holding), ())
