"""Reads a memory database of the agent's shape: upstream's own, and ours with authors, keywords, relations, labels.

Ours has everything that upstream's has, under the same names, so that the real plugin opens it unchanged. Beside that:

* ``facts.author``: who said it (``user | agent | third_party | unknown``);
* ``facts.keywords``: those of the comma-separated words in ``facts.tags`` that keyword enrichment added;
* ``fact_relations(fact_id, kind, target)``: the relations that the fact's set states. A set does not name a relation's
  subject and none is guessed: a row links the *fact* with the target, an entity, by a kind (``works_at``, …);
* ``fact_labels(label, fact_id)``: the fact's name in its test set, which no system under test may look at.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.retrieval.testset import Author
from lab.snapshots.sqlite import open_frozen

_ENTITIES = "SELECT fact_id, name FROM fact_entities JOIN entities USING (entity_id) ORDER BY fact_id, entity_id"
_RELATIONS = "SELECT fact_id, kind, target FROM fact_relations ORDER BY fact_id, kind, target"


@dataclass(frozen=True)
class StoredFact:
    """A row of ``facts``.

    Attributes:
        fact_id: Row id.
        content: Text.
        tags: Its tags without those that enrichment added.
        keywords: Tags that enrichment added.
        author: Who said it; ``unknown`` in an upstream database.
        trust: Trust score, 0 to 1.
    """

    fact_id: int
    content: str
    tags: tuple[str, ...]
    keywords: tuple[str, ...]
    author: Author
    trust: float


def split_words(joined: str | None) -> tuple[str, ...]:
    """The words of a comma-separated column, in their order, without empty ones."""
    return tuple(word for part in (joined or "").split(",") if (word := part.strip()))


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Names of a table's columns; empty where there is no such table."""
    return frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def read_facts(connection: sqlite3.Connection) -> tuple[StoredFact, ...]:
    """All facts of a database, upstream's or ours, by ascending id.

    Raises:
        InputError: It has no table of facts of the known shape, or cannot be read.
    """
    try:
        known = columns(connection, "facts")
        if not {"fact_id", "content", "tags", "trust_score"} <= known:
            raise InputError("the database has no table of facts", "give a memory_store.db or a snapshot of one")
        author = "author" if "author" in known else "NULL"
        keywords = "keywords" if "keywords" in known else "''"
        query = f"SELECT fact_id, content, tags, {keywords}, {author}, trust_score FROM facts ORDER BY fact_id"  # noqa: S608
        rows = connection.execute(query).fetchall()
    except sqlite3.DatabaseError as error:
        raise InputError(f"the facts cannot be read: {error}", "freeze the database again") from error
    found = []
    for fact_id, content, tags, added, who, trust in rows:
        enriched = split_words(added)
        own = tuple(word for word in split_words(tags) if word not in enriched)
        known_author = who in set(Author)
        found.append(
            StoredFact(fact_id, content, own, enriched, Author(who) if known_author else Author.UNKNOWN, trust)
        )
    return tuple(found)


@dataclass(frozen=True)
class StoredRelation:
    """A stated link from a fact, not from one of its entities, to an entity.

    Attributes:
        kind: ``works_at``, ``sibling_of``, …
        target: Name of the entity.
    """

    kind: str
    target: str


@dataclass(frozen=True)
class FactContext:
    """What a database knows of a fact beside its text.

    Attributes:
        created_at: When, in seconds since 1970; the database's times are UTC. None where it is not known or no time.
        entities: Names of the entities that the agent's rules found in the fact, by ascending id of the entity. There
            are no links between two entities in a database of this shape.
        relations: Links that its set states, by kind and target; empty in an upstream database and in one that was
            frozen before there was a table of them.
    """

    created_at: float | None = None
    entities: tuple[str, ...] = ()
    relations: tuple[StoredRelation, ...] = ()


def read_context(connection: sqlite3.Connection) -> dict[int, FactContext]:
    """Times, entities and relations of all facts of a database, by row id; what an old or foreign one lacks is empty.

    Raises:
        InputError: It cannot be read.
    """
    try:
        times = "CAST(strftime('%s', created_at) AS REAL)" if "created_at" in columns(connection, "facts") else "NULL"
        found = {row[0]: FactContext(row[1]) for row in connection.execute(f"SELECT fact_id, {times} FROM facts")}  # noqa: S608
        for fact_id, name in _rows(connection, _ENTITIES, "fact_entities", "entities"):
            if fact_id in found:
                found[fact_id] = replace(found[fact_id], entities=(*found[fact_id].entities, name))
        for fact_id, kind, target in _rows(connection, _RELATIONS, "fact_relations"):
            if fact_id in found:
                stated = StoredRelation(kind, target)
                found[fact_id] = replace(found[fact_id], relations=(*found[fact_id].relations, stated))
    except sqlite3.DatabaseError as error:
        raise InputError(f"the facts cannot be read: {error}", "freeze the database again") from error
    return found


def _rows(connection: sqlite3.Connection, query: str, *tables: str) -> list[Any]:
    """Rows of a query, of the types that SQLite finds; none where the database lacks a table that it reads."""
    return connection.execute(query).fetchall() if all(columns(connection, table) for table in tables) else []


def read_labels(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """Names of the facts in their test set by row id; the row ids themselves where the database has none.

    A store holds a text once, so facts of a set with the same text share a row, which then has several names.
    """
    if not columns(connection, "fact_labels"):
        return {fact.fact_id: (str(fact.fact_id),) for fact in read_facts(connection)}
    labels: dict[int, tuple[str, ...]] = {}
    for fact_id, label in connection.execute("SELECT fact_id, label FROM fact_labels ORDER BY fact_id, label"):
        labels[fact_id] = (*labels.get(fact_id, ()), label)
    return labels


def open_database(path: Path) -> sqlite3.Connection:
    """Opens a copy of a database that nobody changes, for reading.

    Raises:
        InputError: There is none.
    """
    if not path.is_file():
        raise InputError(f"no database at {path}", "freeze one: lab snapshot freeze")
    return open_frozen(path)
