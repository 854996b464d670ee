"""What is measured: two floors without lab code, every arm of the lab, and the write paths of two stores."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np

from lab.errors import InputError
from lab.memories.arms import ALL_KINDS
from lab.retrieval.arms import Tools
from lab.retrieval.database import open_database, read_facts
from lab.retrieval.embedders.base import Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.factstore.schema import open_store
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.factstore.store import FactStore
from lab.retrieval.systems.base import System
from lab.retrieval.systems.factstore import FactstoreSystem
from lab.retrieval.systems.holographic import HolographicPlugin, plugin_program

from .data import Inputs, Question

K = 10
"""Hits asked for."""

BY_VECTORS = frozenset({"dense", "vector"})
"""What the channels that compare vectors are called."""

SANDBOX = "bwrap"
"""A container would be no descendant of the measurement: neither its memory would be seen, nor would it end with it."""

_ADDED_AT_ONCE = 50
Progress = Callable[[int], None]
"""Told how many facts are in."""


class Contestant(Protocol):
    """Something that takes facts in and answers questions."""

    def ingest(self, tell: Progress) -> None:
        """Everything from the input to the moment when it can answer."""
        ...

    def search(self, question: Question) -> tuple[int, tuple[str, ...]]:
        """Number of hits, and the channels that ran."""
        ...

    def close(self) -> None:
        """Lets go of everything."""
        ...


class Fts5Floor:
    """Plain FTS5: the texts inserted into a table in a file, in one transaction, and MATCH."""

    def __init__(self, inputs: Inputs, folder: Path) -> None:
        self._source = inputs.database
        self._connection = sqlite3.connect(folder / "fts5.db", isolation_level=None)

    def ingest(self, tell: Progress) -> None:  # noqa: ARG002
        """Copies id and text."""
        self._connection.execute("CREATE VIRTUAL TABLE texts USING fts5(content)")
        with closing(sqlite3.connect(f"{self._source.resolve().as_uri()}?mode=ro", uri=True)) as source:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT INTO texts(rowid, content) VALUES (?, ?)", source.execute("SELECT fact_id, content FROM facts")
            )
            self._connection.execute("COMMIT")

    def search(self, question: Question) -> tuple[int, tuple[str, ...]]:
        """The best by FTS5's own rank."""
        if not question.terms:
            return 0, ()
        query = "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return len(self._connection.execute(query, (question.terms, K)).fetchall()), ("lexical",)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()


class MatrixFloor:
    """Plain matrix product: the vectors read into memory, written to a file, multiplied, the best ten picked."""

    def __init__(self, inputs: Inputs, folder: Path) -> None:
        self._source, self._target = inputs.matrix, folder / "matrix.npy"
        self._matrix: Vectors | None = None

    def ingest(self, tell: Progress) -> None:  # noqa: ARG002
        """Reads all and writes all."""
        self._matrix = np.load(self._source)
        np.save(self._target, self._matrix)

    def search(self, question: Question) -> tuple[int, tuple[str, ...]]:
        """The best by cosine."""
        assert self._matrix is not None
        cosines = self._matrix @ question.vector
        best = np.argpartition(cosines, -K)[-K:] if len(cosines) > K else np.arange(len(cosines))
        return len(best[np.argsort(-cosines[best])]), ("dense",)

    def close(self) -> None:
        """Lets go of the matrix."""
        self._matrix = None


class Opened:
    """A system of the lab, opened on a private copy of the database: that is when it takes the facts in."""

    def __init__(self, system: System, database: Path) -> None:
        self._system, self._database = system, database

    def ingest(self, tell: Progress) -> None:  # noqa: ARG002
        """Opens it."""
        self._system.open(self._database)

    def search(self, question: Question) -> tuple[int, tuple[str, ...]]:
        """Asks it."""
        ranking = self._system.search(question.text, K)
        if ranking.fallback:
            raise InputError(f"a channel did not answer: {ranking.fallback}", "prepare the input again")
        return len(ranking.hits), ranking.channels

    def close(self) -> None:
        """Closes it."""
        self._system.close()


class AddedToStore(Opened):
    """The fact store filled through its own ``add``, a transaction for each fact, as the agent fills it."""

    def __init__(self, inputs: Inputs, folder: Path) -> None:
        super().__init__(FactstoreSystem(FactstoreSettings(keywords=False)), folder / "added.db")
        self._source = inputs.database

    def ingest(self, tell: Progress) -> None:
        """Adds every fact, and opens the store."""
        with closing(open_database(self._source)) as source:
            facts = read_facts(source)
        with closing(open_store(self._database)) as connection:
            store = FactStore(connection)
            for number, fact in enumerate(facts, 1):
                store.add(fact.content, author=fact.author.value, tags=",".join(fact.tags))
                tell(number)
        super().ingest(tell)


class AddedToPlugin(Opened):
    """The agent's real plugin filled through its own ``add_fact``."""

    def __init__(self, inputs: Inputs, folder: Path) -> None:
        self._plugin = HolographicPlugin(program=plugin_program(SANDBOX))
        super().__init__(self._plugin, folder / "added.db")
        self._source = inputs.database

    def ingest(self, tell: Progress) -> None:
        """Opens an empty database and adds every fact."""
        with closing(open_database(self._source)) as source:
            facts = [{"content": fact.content, "tags": ",".join(fact.tags)} for fact in read_facts(source)]
        open_store(self._database).close()
        super().ingest(tell)
        for start in range(0, len(facts), _ADDED_AT_ONCE):
            self._plugin.add(facts[start : start + _ADDED_AT_ONCE])
            tell(min(start + _ADDED_AT_ONCE, len(facts)))


FLOORS: Mapping[str, Callable[[Inputs, Path], Contestant]] = {"fts5": Fts5Floor, "matrix": MatrixFloor}
"""The floors by name."""

_OWN: Mapping[str, Callable[[Inputs, Path], Contestant]] = {
    **FLOORS,
    "plain-add": AddedToStore,
    "hermes-add": AddedToPlugin,
}

NAMES = (*_OWN, *ALL_KINDS)
"""All that can be measured."""

DEFAULT = (
    *("plain", "plain-add", "universal-words", "universal", "archive-words", "archive-vectors", "bm25", "dense"),
    *("hermes", "hermes-add"),
)
"""What is measured where nothing is named, beside the floors."""


def floors_of(channels: frozenset[str]) -> tuple[str, ...]:
    """The floors of a system by what it did: plain FTS5 for words, the matrix product for vectors, or both."""
    words = ("fts5",) if channels - BY_VECTORS else ()
    return (*words, *(("matrix",) if channels & BY_VECTORS else ()))


def contestant(name: str, inputs: Inputs, folder: Path) -> tuple[Contestant, int]:
    """Makes one, ready to take facts in.

    Args:
        name: Of ``NAMES``.
        inputs: What it takes in.
        folder: Its own, for all that it writes.

    Returns:
        It, and the bytes of those input files that it goes on needing.

    Raises:
        EnvironmentUnusable: It lacks something on this machine.
    """
    if name in _OWN:
        return _OWN[name](inputs, folder), 0
    database = folder / "facts.db"
    shutil.copyfile(inputs.database, database)
    if name == "hermes":
        # The bulk database has no vectors of the plugin's: it makes them by its own means.
        return Opened(HolographicPlugin(program=plugin_program(SANDBOX), rebuild=True), database), 0
    tools = Tools(lambda: DenseIndexes(inputs.embedder(), inputs.sidecar), SANDBOX)
    made = Opened(ALL_KINDS[name].make(tools), database)
    return made, inputs.sidecar.stat().st_size if tools.embeds else 0
