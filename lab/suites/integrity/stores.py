"""The stores that faults are done to: each made, written and read by its own code, with a text as the unit of loss."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from lab.memories.archive.episodic import EpisodicIndex
from lab.memories.archive.logs import Message, write_log
from lab.memories.hfea.archive import create_archive, open_archive
from lab.memories.hfea.index import ArchiveSearch
from lab.memories.hfea.nightly import run_nightly
from lab.memories.relations.claim import Claim
from lab.memories.relations.graph import RelationGraph
from lab.memories.universal.records import Draft, Scope
from lab.memories.universal.search import Search
from lab.memories.universal.store import Store
from lab.records import digest
from lab.retrieval.database import read_facts
from lab.retrieval.factstore.schema import UPSTREAM, open_store
from lab.retrieval.factstore.store import FactStore

WORD = "memo"
"""Every text has it, so that one query finds them all."""

AGENT = "ana"
_MOMENT = datetime(2026, 3, 4, 12, tzinfo=UTC)
_ALL = 1_000_000
_WORDS = ("binder", "harbour", "violet", "ledger", "orchard", "copper", "lantern", "estuary", "cobalt", "thistle")


def texts(first: int, count: int = 12) -> tuple[str, ...]:
    """Texts by number; some 600 characters each, so that a dozen fill several pages of a database."""

    def text(number: int) -> str:
        draw = random.Random(number)  # noqa: S311
        return f"{WORD} {number:04d}: " + " ".join(f"{draw.choice(_WORDS)}{draw.randrange(9999)}" for _ in range(55))

    return tuple(text(number) for number in range(first, first + count))


class Handle(Protocol):
    """An open store."""

    def add(self, texts: Sequence[str]) -> None:
        """Writes texts; they are acknowledged when this returns."""
        ...

    def close(self) -> None:
        """Lets go of it."""
        ...


@dataclass(frozen=True)
class StoreKind:
    """A store that texts can be written to and read from.

    Attributes:
        name: Its name in results.
        file: Its file or folder, relative to the place that is its own.
        open: Opens it at a place, or makes it; the second argument names the writer.
        read: Reads all texts by the store's own code; raises what the store raises.
        sqlite: Whether it is one SQLite file.
        wal: Whether that file has a write-ahead log.
    """

    name: str
    file: str
    open: Callable[[Path, str], Handle]
    read: Callable[[Path], frozenset[str]]
    sqlite: bool = True
    wal: bool = False


# As upstream's own search does: the index of words gives row ids, by which the table is asked.
_AGENT_SEARCH = "SELECT f.content FROM facts_fts JOIN facts f ON f.fact_id = facts_fts.rowid WHERE facts_fts MATCH ?"


class _AgentDatabase:
    """Upstream's layout in WAL mode, as the agent keeps it."""

    def __init__(self, place: Path, _writer: str) -> None:
        self._connection = sqlite3.connect(place / AGENT_DATABASE.file, isolation_level=None, timeout=10)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(UPSTREAM)

    def add(self, texts: Sequence[str]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO facts (content) VALUES (?)", [(text,) for text in texts])
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def _read_agent(place: Path) -> frozenset[str]:
    """Facts that are there and that the agent's full-text index finds."""
    with closing(sqlite3.connect(place / AGENT_DATABASE.file)) as connection:
        there = {fact.content for fact in read_facts(connection)}
        found = connection.execute(_AGENT_SEARCH, (WORD,)).fetchall()
    return frozenset(text for (text,) in found if text in there)


class _Facts:
    def __init__(self, place: Path, _writer: str) -> None:
        self._connection = open_store(place / FACT_STORE.file)

    def add(self, texts: Sequence[str]) -> None:
        store = FactStore(self._connection)
        for text in texts:
            store.add(text)

    def close(self) -> None:
        self._connection.close()


def _read_facts(place: Path) -> frozenset[str]:
    with closing(open_store(place / FACT_STORE.file)) as connection:
        return frozenset(fact.content for fact in FactStore(connection).list(_ALL))


class _Universal:
    def __init__(self, place: Path, _writer: str) -> None:
        self._store = Store(place / UNIVERSAL.file)

    def add(self, texts: Sequence[str]) -> None:
        self._store.commit(self._store.stage([Draft(content=text, agent_id=AGENT, created_at=0.0) for text in texts]))

    def close(self) -> None:
        self._store.close()


def _read_universal(place: Path) -> frozenset[str]:
    """Records that are there, that a search by words finds, and that are given by their ids."""
    with Store(place / UNIVERSAL.file) as store:
        there = {record.content for record in store.live()}
        found = {store.get(hit.record_id).content for hit in Search(store)(WORD, _ALL, Scope(now=1.0)).found}
    return frozenset(there & found)


class _Relations:
    def __init__(self, place: Path, _writer: str) -> None:
        self._graph = RelationGraph(place / RELATIONS.file)

    def add(self, texts: Sequence[str]) -> None:
        self._graph.append(
            *(
                Claim(id=digest(t), subject=WORD, kind="says", object=t, valid_from=_MOMENT, ingested_at=_MOMENT)
                for t in texts
            )
        )

    def close(self) -> None:
        self._graph.close()


def _read_relations(place: Path) -> frozenset[str]:
    with RelationGraph(place / RELATIONS.file) as graph:
        return frozenset(claim.object for claim in graph.as_of(_MOMENT, _MOMENT, subject=WORD))


def _messages(texts: Sequence[str], session: str) -> list[Message]:
    return [
        Message(id=t[:9], session=session, role="user", author=AGENT, text=t, time=_MOMENT.isoformat()) for t in texts
    ]


def _append(log: Path, texts: Sequence[str]) -> None:
    """As an agent does: lines at the end of its session's log."""
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as stream:
        for message in _messages(texts, log.stem):
            stream.write(message.model_dump_json().encode() + b"\n")


class _Episodes:
    def __init__(self, place: Path, writer: str) -> None:
        self._logs, self._log = place / "logs", place / "logs" / f"{writer}.jsonl"
        self._index = EpisodicIndex(place / EPISODES.file)

    def add(self, texts: Sequence[str]) -> None:
        _append(self._log, texts)
        self._index.index(self._logs)

    def close(self) -> None:
        self._index.close()


def _read_episodes(place: Path) -> frozenset[str]:
    with EpisodicIndex(place / EPISODES.file) as index:
        return frozenset(episode.message.text for episode in index.search(WORD, _ALL))


class _Chronicles:
    def __init__(self, place: Path, writer: str) -> None:
        self._logs, self._log = place / "logs", place / "logs" / f"{writer}.jsonl"
        folder = place / CHRONICLES.file
        self._archive = open_archive(folder, AGENT) if folder.exists() else create_archive(folder, AGENT)

    def add(self, texts: Sequence[str]) -> None:
        _append(self._log, texts)
        run_nightly(self._archive, self._logs)

    def close(self) -> None:
        pass


def _read_chronicles(place: Path) -> frozenset[str]:
    search = ArchiveSearch(open_archive(place / CHRONICLES.file, AGENT))
    return frozenset(found.line.message.text for found in search.search([WORD], _ALL))


class _WholeFile:
    """A baseline: one log that is written anew with every change, in place."""

    def __init__(self, place: Path, _writer: str) -> None:
        self._path = place / REWRITTEN.file

    def add(self, texts: Sequence[str]) -> None:
        known = self._path.read_bytes().splitlines() if self._path.exists() else []
        lines = [*known, *(text.encode() for text in texts)]
        with self._path.open("wb") as stream:
            for number, line in enumerate(lines):
                if number == len(known) // 2:
                    stream.flush()
                    os.fsync(stream.fileno())
                stream.write(line + b"\n")

    def close(self) -> None:
        pass


def _read_lines(place: Path) -> frozenset[str]:
    return frozenset((place / REWRITTEN.file).read_text().splitlines())


class _InOneStep:
    """Its twin: the lab's own ``write_log``."""

    def __init__(self, place: Path, _writer: str) -> None:
        self._path, self._known = place / REPLACED.file, list[str]()

    def add(self, texts: Sequence[str]) -> None:
        self._known += texts
        write_log(self._path, _messages(self._known, "log"))

    def close(self) -> None:
        pass


def _read_messages(place: Path) -> frozenset[str]:
    lines = (place / REPLACED.file).read_bytes().splitlines()
    return frozenset(Message.model_validate_json(line).text for line in lines)


AGENT_DATABASE = StoreKind("agent's database", "memory_store.db", _AgentDatabase, _read_agent, wal=True)
FACT_STORE = StoreKind("fact store", "facts.db", _Facts, _read_facts)
UNIVERSAL = StoreKind("universal layer", "universal.db", _Universal, _read_universal, wal=True)
RELATIONS = StoreKind("relation graph", "relations.db", _Relations, _read_relations)
EPISODES = StoreKind("episodic index", "episodes.db", _Episodes, _read_episodes)
CHRONICLES = StoreKind("HFEA chronicles", "archive", _Chronicles, _read_chronicles, sqlite=False)
REWRITTEN = StoreKind("log rewritten in place", "log.txt", _WholeFile, _read_lines, sqlite=False)
REPLACED = StoreKind("log replaced in one step", "log.jsonl", _InOneStep, _read_messages, sqlite=False)

STORES = (AGENT_DATABASE, FACT_STORE, UNIVERSAL, RELATIONS, EPISODES, CHRONICLES)
"""The stores of the lab that are written in place."""

KINDS = {kind.name: kind for kind in (*STORES, REWRITTEN, REPLACED)}
"""All that a writer can be asked to open."""
