"""Writing facts: add, remove, list, and enrichment with keywords, which must not make a fact look younger."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from . import entities
from .secrets import find_secret
from .settings import AUTHORS

_AGE = "created_at, updated_at, trust_score, retrieval_count, helpful_count"


class FactRefused(ValueError):
    """A fact or a keyword that is not stored; the message says why and never repeats a secret."""


@dataclass(frozen=True)
class ListedFact:
    """A row as it is shown to the agent."""

    fact_id: int
    content: str
    category: str
    tags: str
    author: str
    trust: float

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


class FactStore:
    """Writes to an open store.

    Args:
        connection: The store, in autocommit mode.
        default_trust: Trust of a new fact.
    """

    def __init__(self, connection: sqlite3.Connection, default_trust: float = 0.5) -> None:
        self._connection = connection
        self._default_trust = default_trust

    def add(self, content: str, *, author: str = "unknown", category: str = "general", tags: str = "") -> int:
        """Stores a fact and links its entities; a text that is there already keeps its row.

        The vector that upstream stores beside it is written where numpy is there. The bundles of whole categories
        (``memory_banks``) are not kept up: they cost a pass over all facts for each one, and nothing here reads them.

        Raises:
            FactRefused: It is empty, or its author is none of the known ones.
        """
        text = content.replace("\0", " ").strip()
        if not text:
            raise FactRefused("a fact needs a text")
        if author not in AUTHORS:
            raise FactRefused(f"author is one of {', '.join(AUTHORS)}")
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            row = self._connection.execute("SELECT fact_id FROM facts WHERE content = ?", (text,)).fetchone()
            if row is not None:
                return int(row[0])
            fact_id, created_at = self._connection.execute(
                "INSERT INTO facts (content, category, tags, trust_score, author) VALUES (?, ?, ?, ?, ?)"
                " RETURNING fact_id, created_at",
                (text, category, tags, self._default_trust, author),
            ).fetchone()
            names = entities.link(self._connection, fact_id, text, created_at)
            if vector := _upstream_vector(text, names):
                self._connection.execute("UPDATE facts SET hrr_vector = ? WHERE fact_id = ?", (vector, fact_id))
        return int(fact_id)

    def remove(self, fact_id: int) -> bool:
        """Deletes a fact and its links; tells whether it was there."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM fact_entities WHERE fact_id = ?", (fact_id,))
            return self._connection.execute("DELETE FROM facts WHERE fact_id = ?", (fact_id,)).rowcount > 0

    def find(self, part: str) -> int | None:
        """Id of the one fact whose text holds this part; None where there is none, or more than one."""
        rows = self._connection.execute("SELECT fact_id FROM facts WHERE instr(content, ?) LIMIT 2", (part,)).fetchall()
        return int(rows[0][0]) if len(rows) == 1 else None

    def list(self, limit: int = 50) -> list[ListedFact]:
        """Facts by falling trust, then by id."""
        rows = self._connection.execute(
            "SELECT fact_id, content, category, tags, author, trust_score FROM facts"
            " ORDER BY trust_score DESC, fact_id LIMIT ?",
            (limit,),
        )
        return [ListedFact(*row) for row in rows]


def enrich(connection: sqlite3.Connection, fact_id: int, keywords: Sequence[str]) -> tuple[str, ...]:
    """Adds keywords to a fact's tags and notes in ``keywords`` which they are.

    The fact keeps its age and trust: that a machine found better words for it is no news about the world. A trigger of
    somebody else's that would change them takes the whole step back.

    Args:
        connection: The store, in autocommit mode.
        fact_id: The fact.
        keywords: Words or phrases; those that are tags already are left out.

    Returns:
        The keywords that were added.

    Raises:
        FactRefused: There is no such fact; the fact or a keyword holds a secret; a keyword has a comma; or the fact's
            age would change.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute("SELECT content, tags, keywords FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()
        if row is None:
            raise FactRefused(f"there is no fact {fact_id}")
        content, tags, known = row
        _refuse_secrets(fact_id, content, keywords)
        present = {word.strip().casefold() for word in (tags or "").split(",")}
        added = []
        for keyword in (" ".join(word.split()) for word in keywords):
            if keyword and keyword.casefold() not in present:
                present.add(keyword.casefold())
                added.append(keyword)
        if added:
            before = connection.execute(f"SELECT {_AGE} FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()  # noqa: S608
            connection.execute(
                "UPDATE facts SET tags = ?, keywords = ? WHERE fact_id = ?",
                (_joined(tags, added), _joined(known, added), fact_id),
            )
            after = connection.execute(f"SELECT {_AGE} FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()  # noqa: S608
            if tuple(before) != tuple(after):
                raise FactRefused(f"a trigger of this database changes the age or trust of fact {fact_id}")
    return tuple(added)


def _refuse_secrets(fact_id: int, content: str, keywords: Sequence[str]) -> None:
    for place, text in ((f"fact {fact_id}", content), *(("a keyword", keyword) for keyword in keywords)):
        if kind := find_secret(text):
            raise FactRefused(f"{place} holds a secret ({kind})")
    if any("," in keyword for keyword in keywords):
        raise FactRefused("a keyword has no comma")


def _joined(present: str | None, added: Sequence[str]) -> str:
    return ",".join([present, *added] if present else added)


def _upstream_vector(text: str, names: Sequence[str]) -> bytes | None:
    try:
        # By name: the agent's loader leaves a module that could not be loaded in place, empty.
        from .hrr import encode_fact, to_bytes  # noqa: PLC0415 - numpy, which an agent's environment may not have
    except ImportError:
        return None
    return to_bytes(encode_fact(text, names))
