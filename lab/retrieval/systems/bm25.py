"""Yardstick: plain BM25 of SQLite's FTS5, without anything of a memory system about it."""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Any

from lab.errors import EnvironmentUnusable, SystemFailed
from lab.retrieval.database import open_database, read_facts
from lab.retrieval.stopwords import folded, stopwords
from lab.retrieval.systems.base import SCORE_DIGITS, Hit, Ranking

_WORD = re.compile(r"[^\W_]+")


class Tokenizer(StrEnum):
    """How FTS5 cuts text into terms: as it is, or with English endings taken off."""

    UNICODE61 = "unicode61"
    PORTER = "porter"


class Match(StrEnum):
    """Whether a fact must hold one term of the query or all of them."""

    OR = "or"
    AND = "and"
    """A negative control: of a whole sentence hardly a fact holds all words, so most queries find nothing."""


def match_expression(query: str, dropped: frozenset[str], match: Match) -> str:
    """What FTS5 is asked for a query; empty where no term is left.

    Every run of letters and digits is a term, and the runs of one word that signs divide (``POL-358``, ``node.js``)
    are a phrase as well, so that an identifier scores above its parts. All are quoted: no sign of the query is syntax.

    Args:
        query: Any text.
        dropped: Folded words that are left out.
        match: How the terms are joined.
    """
    terms: dict[str, None] = {}
    for chunk in unicodedata.normalize("NFC", query).split():
        words = _WORD.findall(chunk)
        kept = [word for word in words if folded(word) not in dropped]
        terms |= dict.fromkeys(kept)
        # "it's" is no identifier: a phrase needs two runs that mean something.
        if match is Match.OR and len(kept) > 1:
            terms[" ".join(words)] = None
    return f" {match.upper()} ".join(f'"{term}"' for term in terms)


class Bm25:
    """BM25 over content and tags, k1 = 1.2 and b = 0.75 as FTS5 has them; the index is made in memory.

    Stated behaviour: a query without a term (empty, only signs, only stopwords) finds nothing; ``C++`` is asked as
    ``C``, because the tokenizer drops signs; a run of CJK signs is one term and is not found inside a longer one.

    Args:
        tokenizer: How text is cut.
        match: How the terms of a query are joined.
        languages: Whose stopwords are left out of queries.
        keywords: Whether the words that enrichment added are indexed beside a fact's own tags.
    """

    def __init__(
        self,
        tokenizer: Tokenizer = Tokenizer.PORTER,
        match: Match = Match.OR,
        languages: Sequence[str] = ("en", "pt"),
        *,
        keywords: bool = False,
    ) -> None:
        self._tokenizer = Tokenizer(tokenizer)
        self._match = Match(match)
        self._languages = tuple(languages)
        self._dropped = stopwords(languages)
        self._keywords = keywords
        self._connection: sqlite3.Connection | None = None

    @property
    def name(self) -> str:
        """``bm25-porter``, ``bm25-unicode61-and``, …; with ``-keywords`` where those are indexed."""
        parts = ["bm25", self._tokenizer]
        parts += ["and"] if self._match is Match.AND else []
        parts += ["keywords"] if self._keywords else []
        return "-".join(parts)

    def settings(self) -> Mapping[str, Any]:
        """Everything that decides its results beside the database."""
        return {
            "tokenizer": self._tokenize,
            "match": str(self._match),
            "stopwords": list(self._languages),
            "keywords": self._keywords,
            "columns": ["content", "tags"],
            "sqlite": sqlite3.sqlite_version,
        }

    def open(self, database: Path) -> None:
        """Reads the facts and indexes them; see ``System``."""
        self.close()
        with closing(open_database(database)) as source:
            facts = read_facts(source)
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE memory USING fts5(content, tags, content='', tokenize='{self._tokenize}')"
            )
        except sqlite3.OperationalError as error:
            connection.close()
            raise EnvironmentUnusable(
                f"this Python's SQLite has no full-text search: {error}", "take a Python whose SQLite has FTS5"
            ) from error
        rows = (
            (fact.fact_id, fact.content, " ".join(fact.tags + (fact.keywords if self._keywords else ())))
            for fact in facts
        )
        connection.executemany("INSERT INTO memory(rowid, content, tags) VALUES(?, ?, ?)", rows)
        self._connection = connection

    def search(self, query: str, k: int) -> Ranking:
        """Ranks by BM25; see ``System``."""
        if self._connection is None:
            raise SystemFailed("no database is open", "open one first")
        started = time.perf_counter()
        asked = match_expression(query, self._dropped, self._match)
        found: list[tuple[int, float]] = []
        if asked:
            try:
                # Rounded before it is ordered and cut, or a tie at the cut would be settled by what is rounded away.
                found = self._connection.execute(
                    f"SELECT rowid, round(-bm25(memory), {SCORE_DIGITS}) AS score FROM memory "  # noqa: S608
                    "WHERE memory MATCH ? ORDER BY score DESC, rowid LIMIT ?",
                    (asked, max(k, 0)),
                ).fetchall()
            except sqlite3.Error as error:
                raise SystemFailed(f"FTS5 could not answer: {error}") from error
        hits = tuple(Hit(fact_id, score, {"bm25": score}) for fact_id, score in found)
        return Ranking(hits, {"lexical": time.perf_counter() - started}, ("lexical",) if asked else ())

    def close(self) -> None:
        """Lets go of the index; may be called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _tokenize(self) -> str:
        base = "unicode61 remove_diacritics 2"
        return f"porter {base}" if self._tokenizer is Tokenizer.PORTER else base
