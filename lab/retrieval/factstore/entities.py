"""Names that a fact speaks of, found and linked by upstream's rules, since a fact's HRR vector is made of them."""

from __future__ import annotations

import re
import sqlite3

# Upstream's four patterns. They take "Ana Souza" but not "Ana", and any word before "aka": what they find is not the
# point here, only that we store what the real plugin would store.
_PATTERNS = (
    re.compile(r"\b([A-Z][a-z]+(?:\s+[A-Z][a-z]+)+)\b"),
    re.compile(r'"([^"]+)"'),
    re.compile(r"'([^']+)'"),
    re.compile(r"(\w+(?:\s+\w+)*)\s+(?:aka|also known as)\s+(\w+(?:\s+\w+)*)", re.IGNORECASE),
)
# Without these words the last pattern finds nothing, and takes minutes to do so in a text of some 100 kB without
# punctuation: its time grows with the square of the length.
_ALIAS = re.compile("aka|also known as", re.IGNORECASE)


def names_in(text: str) -> tuple[str, ...]:
    """Candidate names in the order of the patterns, each once whatever its case."""
    found: dict[str, str] = {}
    for pattern in _PATTERNS if _ALIAS.search(text) else _PATTERNS[:-1]:
        for match in pattern.finditer(text):
            for name in map(str.strip, match.groups()):
                if name:
                    found.setdefault(name.lower(), name)
    return tuple(found.values())


def link(connection: sqlite3.Connection, fact_id: int, text: str, created_at: str | None) -> tuple[str, ...]:
    """Links a fact to the entities that its text names, making those that are not there yet.

    Args:
        connection: The store.
        fact_id: The fact.
        text: Its content.
        created_at: Time for entities that are made; None where it is not known.

    Returns:
        Names of the entities as stored, in the order in which upstream reads them back.
    """
    for name in names_in(text):
        entity = _find(connection, name)
        if entity is None:
            entity = _make(connection, name, created_at)
        connection.execute("INSERT OR IGNORE INTO fact_entities (fact_id, entity_id) VALUES (?, ?)", (fact_id, entity))
    rows = connection.execute(
        "SELECT name FROM fact_entities JOIN entities USING (entity_id) WHERE fact_id = ? ORDER BY entity_id",
        (fact_id,),
    )
    return tuple(row[0] for row in rows)


def _find(connection: sqlite3.Connection, name: str) -> int | None:
    """By name, then by alias, as upstream does: with LIKE, so case does not count and ``%`` and ``_`` are wild."""
    for condition in ("name LIKE ?", "',' || aliases || ',' LIKE '%,' || ? || ',%'"):
        row = connection.execute(f"SELECT entity_id FROM entities WHERE {condition}", (name,)).fetchone()  # noqa: S608
        if row is not None:
            return int(row[0])
    return None


def _make(connection: sqlite3.Connection, name: str, created_at: str | None) -> int:
    row = connection.execute(
        "INSERT INTO entities (name, created_at) VALUES (?, ?) RETURNING entity_id", (name, created_at)
    ).fetchone()
    return int(row[0])
