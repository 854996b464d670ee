"""Writes a test set's facts as a memory database: what the real plugin would store, and our columns beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lab.errors import EnvironmentUnusable, InputError
from lab.retrieval.factstore import entities, hrr
from lab.retrieval.factstore.schema import migrate
from lab.retrieval.testset import Fact

LAYOUT = 3
"""Version of what is written for equal facts; raised when that changes."""

_LABELS = "CREATE TABLE fact_labels (label TEXT PRIMARY KEY, fact_id INTEGER NOT NULL REFERENCES facts(fact_id))"

RELATIONS_TABLE = (
    "CREATE TABLE fact_relations (fact_id INTEGER NOT NULL REFERENCES facts(fact_id), kind TEXT NOT NULL, "
    "target TEXT NOT NULL, PRIMARY KEY (fact_id, kind, target)) WITHOUT ROWID"
)


def build_database(facts: Sequence[Fact], path: Path) -> None:
    """Writes a database of upstream's shape with authors, keywords, labels and stated relations.

    Entities, their links and the HRR vectors are made by upstream's rules from the texts, so the vectors are the bytes
    that the real plugin's ``add_fact`` stores. Keywords stand in ``tags`` after the fact's own tags, and in
    ``keywords``; one that is a tag already is left out: it would take the tag along where keywords are off.

    Times come from the facts and are NULL where a fact has none; nothing comes from the clock, so the same facts give
    the same bytes.

    A store holds a text once, as upstream's does: a fact whose text is there already shares the row of the first,
    ``fact_labels`` names both, and ``fact_relations`` holds what either states.

    Args:
        facts: The facts of one store.
        path: The database; nothing may be there yet.

    Raises:
        InputError: Something is there; a time is no time; a tag or keyword has a comma.
        EnvironmentUnusable: The file cannot be written.
    """
    if path.exists():
        raise InputError(f"{path} is there already", "remove it, or name another")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            migrate(connection)
            connection.execute("BEGIN")
            connection.execute(_LABELS)
            connection.execute(RELATIONS_TABLE)
            for fact in facts:
                _write(connection, fact)
            _write_banks(connection)
            connection.execute("COMMIT")
    except (sqlite3.Error, InputError) as error:
        path.unlink(missing_ok=True)
        if isinstance(error, InputError):
            raise
        raise EnvironmentUnusable(
            f"{path} cannot be written: {error}", "look at the folder and the disk's free space"
        ) from error


def _write(connection: sqlite3.Connection, fact: Fact) -> None:
    content = fact.text.strip()
    row = connection.execute("SELECT fact_id FROM facts WHERE content = ?", (content,)).fetchone()
    fact_id = int(row[0]) if row else _insert(connection, fact, content)
    connection.execute("INSERT INTO fact_labels (label, fact_id) VALUES (?, ?)", (fact.id, fact_id))
    state_relations(connection, fact_id, fact)


def state_relations(connection: sqlite3.Connection, fact_id: int, fact: Fact) -> None:
    """Writes what a fact states, into the row that holds it."""
    connection.executemany(
        "INSERT OR IGNORE INTO fact_relations (fact_id, kind, target) VALUES (?, ?, ?)",
        ((fact_id, relation.kind, relation.target) for relation in fact.relations),
    )


def _insert(connection: sqlite3.Connection, fact: Fact, content: str) -> int:
    created_at = _stored_time(fact)
    for word in (*fact.tags, *fact.keywords):
        if "," in word:
            raise InputError(f"fact {fact.id}: the tag {word!r} has a comma, which parts tags", "write two tags")
    own = {tag.casefold() for tag in fact.tags}
    keywords = [word for word in fact.keywords if word.casefold() not in own]
    columns = {
        "content": content,
        "category": fact.category,
        "tags": ",".join((*fact.tags, *keywords)),
        "trust_score": fact.trust,
        "created_at": created_at,
        "updated_at": created_at,
        "author": fact.author.value,
        "keywords": ",".join(keywords),
    }
    marks = ", ".join("?" * len(columns))
    cursor = connection.execute(
        f"INSERT INTO facts ({', '.join(columns)}) VALUES ({marks})",  # noqa: S608 - the names stand above
        tuple(columns.values()),
    )
    fact_id = int(cursor.lastrowid or 0)
    names = entities.link(connection, fact_id, content, created_at)
    vector = hrr.to_bytes(hrr.encode_fact(content, names))
    connection.execute("UPDATE facts SET hrr_vector = ? WHERE fact_id = ?", (vector, fact_id))
    return fact_id


def _write_banks(connection: sqlite3.Connection) -> None:
    """Upstream's bundle of all facts of a category."""
    for (category,) in connection.execute("SELECT DISTINCT category FROM facts ORDER BY category").fetchall():
        rows = connection.execute(
            "SELECT hrr_vector, updated_at FROM facts WHERE category = ? ORDER BY fact_id", (category,)
        ).fetchall()
        vector = hrr.to_bytes(hrr.bundle(np.frombuffer(row[0], dtype=np.float64) for row in rows))
        latest = max((row[1] for row in rows if row[1]), default=None)
        connection.execute(
            "INSERT INTO memory_banks (bank_name, vector, dim, fact_count, updated_at) VALUES (?, ?, ?, ?, ?)",
            (f"cat:{category}", vector, hrr.DIMENSIONS, len(rows), latest),
        )


def _stored_time(fact: Fact) -> str | None:
    """A fact's time in the form of SQLite's ``CURRENT_TIMESTAMP``; a time without a zone is taken as UTC."""
    if not fact.created_at:
        return None
    try:
        time = datetime.fromisoformat(fact.created_at)
    except ValueError as error:
        raise InputError(f"fact {fact.id}: {fact.created_at!r} is no time", "write ISO 8601") from error
    return (time if time.tzinfo is None else time.astimezone(UTC)).strftime("%Y-%m-%d %H:%M:%S")
