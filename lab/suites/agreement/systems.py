"""Who is asked: plain retrieval, the universal layer, the consolidation's scan, and the reference cross-check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from lab.memories.consolidation.contradictions import THRESHOLD, scan
from lab.memories.consolidation.kinds import Memory
from lab.memories.universal.records import Draft, Scope
from lab.memories.universal.search import Search
from lab.memories.universal.store import Store
from lab.retrieval.build_database import build_database
from lab.retrieval.database import open_database, read_labels
from lab.retrieval.systems.bm25 import Bm25, Tokenizer
from lab.retrieval.testset import Fact
from lab.suites.agreement.crosscheck import disputes
from lab.suites.agreement.data import Copy

DEPTH = 10
"""Hits that are looked at for a flag."""

_AGENT = "ana"
_SAID = datetime(2031, 3, 3, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Examined:
    """What a system made of a world.

    Attributes:
        first: Text of the first hit for each case's question, by id of the case; empty where nothing was found.
        own: Ids of the cases whose first hit speaks of the case: its copy, or one of its sources.
        flagged: Ids of the cases whose copy it says something against.
        named: The value that it gives in place of the copy's, by id of the case.
    """

    first: Mapping[str, str]
    own: frozenset[str]
    flagged: frozenset[str]
    named: Mapping[str, str] = field(default_factory=dict)


class Checker(Protocol):
    """A memory that holds copies and may hold their sources."""

    @property
    def name(self) -> str:
        """Short name."""
        ...

    def examine(self, copies: Sequence[Copy], folder: Path, /) -> Examined:
        """Stores the copies, asks every question, and notes every doubt.

        Args:
            copies: What is stored; their sources lie beside it.
            folder: An empty folder for its files.
        """
        ...


class Retrieval:
    """BM25 over the copies. Its answer is a ranking, in which nothing can say that a hit is doubtful."""

    name = "plain retrieval"

    def examine(self, copies: Sequence[Copy], folder: Path, /) -> Examined:
        """See ``Checker``."""
        database = folder / "copies.db"
        build_database(
            [Fact(id=copy.case.id, text=copy.text, language=copy.case.language) for copy in copies], database
        )
        with closing(open_database(database)) as connection:
            labels = read_labels(connection)
        texts = {copy.case.id: copy.text for copy in copies}
        first: dict[str, str] = {}
        own = set()
        with closing(Bm25(Tokenizer.PORTER)) as search:
            search.open(database)
            for copy in copies:
                hits = search.search(copy.case.question, 1).hits
                ids = labels[hits[0].fact_id] if hits else ()
                first[copy.case.id] = texts[ids[0]] if ids else ""
                if copy.case.id in ids:
                    own.add(copy.case.id)
        return Examined(first, frozenset(own), frozenset())


class Universal:
    """The universal layer with copies and sources as episodes: words and graph, contradictions flagged at retrieval."""

    name = "universal layer"

    def examine(self, copies: Sequence[Copy], folder: Path, /) -> Examined:
        """See ``Checker``. A copy is flagged if it is among the hits of its question and contradicted."""
        owner = {text: copy.case.id for copy in copies for text in (*copy.case.sources, copy.text)}
        said = {copy.text for copy in copies}
        first: dict[str, str] = {}
        own, flagged = set(), set()
        with Store(folder / "universal.db") as store:
            drafts = [Draft(content=text, agent_id=_AGENT, created_at=_SAID.timestamp()) for text in owner]
            texts = dict(zip(store.commit(store.stage(drafts)), owner, strict=True))
            search = Search(store)
            for copy in copies:
                found = search(copy.case.question, DEPTH, Scope(now=_SAID.timestamp())).found
                hits = [texts[hit.record_id] for hit in found]
                first[copy.case.id] = hits[0] if hits else ""
                if hits and owner[hits[0]] == copy.case.id:
                    own.add(copy.case.id)
                if any(hit.contradicted for hit in found if texts[hit.record_id] in said & {copy.text}):
                    flagged.add(copy.case.id)
        return Examined(first, frozenset(own), frozenset(flagged))


class Scan:
    """The consolidation's contradiction scan over copies and sources, beside plain retrieval.

    Args:
        name: Its name.
        threshold: Least score of a pair.
    """

    def __init__(self, name: str = "consolidation's scan", threshold: float = THRESHOLD) -> None:
        self.name, self._threshold = name, threshold

    def examine(self, copies: Sequence[Copy], folder: Path, /) -> Examined:
        """See ``Checker``. Sources and copy of a case lie within one day."""
        memories = []
        for copy in copies:
            for number, text in enumerate((*copy.case.sources, copy.text)):
                at = _SAID + timedelta(hours=number)
                name = copy.case.id if number == len(copy.case.sources) else f"{copy.case.id} source {number}"
                memories.append(Memory(name, text, copy.case.language, at))
        pairs = scan(memories, threshold=self._threshold)
        flagged = {copy.case.id for copy in copies} & {name for pair in pairs for name in (pair.first, pair.second)}
        plain = Retrieval().examine(copies, folder)
        return Examined(plain.first, plain.own, frozenset(flagged))


class CrossCheck:
    """The reference: every copy's values against those of its sources, which it has to find among all, by majority."""

    name = "reference cross-check"

    def examine(self, copies: Sequence[Copy], folder: Path, /) -> Examined:
        """See ``Checker``."""
        sources = sorted({text for copy in copies for text in copy.case.sources})
        found = {copy.case.id: disputes(copy.text, sources) for copy in copies}
        plain = Retrieval().examine(copies, folder)
        named = {case: told[0].sources for case, told in found.items() if told}
        return Examined(plain.first, plain.own, frozenset(named), named)
