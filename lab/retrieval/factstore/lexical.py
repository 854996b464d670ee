"""The lexical channel: a full-text index of its own over the facts, and the words that a fact shares with a query.

The index is a temporary table of the connection. It thus fits the arm (with or without keywords) on one and the same
database, leaves nothing in the file, and cannot be stale: triggers follow our own writes, and writes of others, the
real plugin's for instance, are seen by ``PRAGMA data_version`` and lead to a new index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .tokens import indexed, pieces

_DOCUMENT = "indexed({0}.content), indexed(searched_tags({0}.tags, {0}.keywords))"
_INDEX = f"""
DROP TABLE IF EXISTS temp.factstore_index;
CREATE VIRTUAL TABLE temp.factstore_index
    USING fts5(content, tags, content='', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO factstore_index(rowid, content, tags) SELECT fact_id, {_DOCUMENT.format("facts")} FROM main.facts;
"""  # noqa: S608
_FOLLOW = f"""
CREATE TEMP TRIGGER factstore_insert AFTER INSERT ON main.facts BEGIN
    INSERT INTO factstore_index(rowid, content, tags) VALUES (new.fact_id, {_DOCUMENT.format("new")});
END;
CREATE TEMP TRIGGER factstore_delete AFTER DELETE ON main.facts BEGIN
    INSERT INTO factstore_index(factstore_index, rowid, content, tags)
        VALUES ('delete', old.fact_id, {_DOCUMENT.format("old")});
END;
CREATE TEMP TRIGGER factstore_update AFTER UPDATE OF content, tags, keywords ON main.facts BEGIN
    INSERT INTO factstore_index(factstore_index, rowid, content, tags)
        VALUES ('delete', old.fact_id, {_DOCUMENT.format("old")});
    INSERT INTO factstore_index(rowid, content, tags) VALUES (new.fact_id, {_DOCUMENT.format("new")});
END;
"""  # noqa: S608
_COLUMNS = "f.fact_id, f.content, searched_tags(f.tags, f.keywords), f.author, f.trust_score, f.hrr_vector"
# Sorted by score alone first: the columns, an 8 kB vector among them, are fetched for the best rows only.
_SEARCH = f"""
WITH best AS (
    SELECT facts.fact_id, -bm25(factstore_index) AS score
    FROM factstore_index JOIN main.facts ON facts.fact_id = factstore_index.rowid
    WHERE factstore_index MATCH ? AND facts.trust_score >= ?
    ORDER BY score DESC, facts.fact_id LIMIT ?
)
SELECT {_COLUMNS}, score FROM best JOIN main.facts f USING (fact_id) ORDER BY score DESC, fact_id
"""  # noqa: S608


@dataclass(frozen=True)
class Candidate:
    """A fact that came into question.

    Attributes:
        fact_id: Row id.
        content: Text.
        tags: The tags that are searched, comma-separated.
        author: As stored.
        trust: 0 to 1.
        hrr_vector: As stored.
        bm25: Full-text score, the higher the better; 0 where it was not found by its words.
    """

    fact_id: int
    content: str
    tags: str
    author: str
    trust: float
    hrr_vector: bytes | None
    bm25: float = 0.0


def own_tags(tags: str | None, keywords: str | None) -> str:
    """The tags of a fact without those that keyword enrichment added."""
    added = {word.strip() for word in (keywords or "").split(",")}
    return ",".join(word for part in (tags or "").split(",") if (word := part.strip()) and word not in added)


class LexicalIndex:
    """The full-text index over the facts of an open store.

    Args:
        connection: The store; its file is only read.
        keywords: Whether words that enrichment added to the tags are searched.
    """

    def __init__(self, connection: sqlite3.Connection, *, keywords: bool) -> None:
        self._connection = connection
        searched = (lambda tags, _: tags or "") if keywords else own_tags
        connection.create_function("searched_tags", 2, searched, deterministic=True)
        connection.create_function("indexed", 1, indexed, deterministic=True)
        self._seen = self._version()
        connection.executescript(_INDEX + _FOLLOW)

    def refresh(self) -> bool:
        """Makes the index anew where another connection has written since; tells whether it had to."""
        version = self._version()
        if version == self._seen:
            return False
        self._connection.executescript(_INDEX)
        self._seen = version
        return True

    def search(self, terms: Sequence[str], limit: int, min_trust: float) -> list[Candidate]:
        """Facts with any of the terms, best BM25 first, equal ones by id.

        A term that the tokeniser splits is searched as a phrase: ``POL-358`` is ``"pol 358"``, not two words.
        """
        phrases = [f'"{" ".join(found)}"' for term in terms if (found := pieces(term))]
        if not phrases:
            return []
        rows = self._connection.execute(_SEARCH, (" OR ".join(phrases), min_trust, limit))
        return [Candidate(*row) for row in rows]

    def facts(self, fact_ids: Collection[int], min_trust: float) -> dict[int, Candidate]:
        """Facts by id that another channel found; those of less trust, or gone, are left out."""
        marks = ",".join("?" * len(fact_ids))
        query = f"SELECT {_COLUMNS} FROM main.facts f WHERE f.fact_id IN ({marks}) AND f.trust_score >= ?"  # noqa: S608
        return {row[0]: Candidate(*row) for row in self._connection.execute(query, (*fact_ids, min_trust))}

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA main.data_version").fetchone()[0])
