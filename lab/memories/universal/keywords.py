"""The leg of words: BM25 over the records, with identifiers told apart and a literal look where no word is left."""

from __future__ import annotations

import re
import sqlite3

from lab.memories.universal.records import Scope
from lab.memories.universal.scope import IN_SCOPE, scope_values
from lab.retrieval.factstore.tokens import indexed, pieces, terms
from lab.retrieval.systems.base import SCORE_DIGITS

# FTS5's tokeniser drops signs, so that C, C++ and C# would be one word: a sign that ends a word becomes a word itself,
# by the same rule as in ``tokens.words``.
_SIGN = re.compile(r"(?<=\w)(\+\+|#|\+(?!\w))")

_SEARCH = f"""
SELECT record_id, round(-bm25(words), {SCORE_DIGITS}) AS score FROM words JOIN records r ON record_id = words.rowid
WHERE words MATCH :asked AND {IN_SCOPE} ORDER BY score DESC, record_id LIMIT :limit
"""  # noqa: S608 - no value stands in it
_LITERAL = f"""
SELECT record_id, 1.0 FROM words JOIN records r ON record_id = words.rowid
WHERE (instr(words.content, :asked) OR instr(words.tags, :asked)) AND {IN_SCOPE} ORDER BY record_id LIMIT :limit
"""  # noqa: S608


def searchable(text: str) -> str:
    """The form in which a text is indexed and asked: folded, emoji and word-ending signs as words of their own."""
    return indexed(_SIGN.sub(lambda match: "".join(f" u{ord(sign):x} " for sign in match[0]), text))


def match_expression(query: str) -> str:
    """What FTS5 is asked: any of the query's content terms, each a quoted phrase of its pieces; empty without any."""
    phrases = [f'"{" ".join(found)}"' for term in terms(query) if (found := pieces(searchable(term)))]
    return " OR ".join(dict.fromkeys(phrases))


def find_words(connection: sqlite3.Connection, query: str, limit: int, scope: Scope) -> list[tuple[int, float]]:
    """Records by BM25; where that finds none, those that hold the query literally.

    The second look costs a pass over all texts. It is what finds a query of stopwords or signs alone (``The Who``,
    ``=>``), and a part of a longer word.

    Args:
        connection: The store.
        query: Any text.
        limit: Most records wanted.
        scope: Which records.

    Returns:
        Record ids with scores, best first, equal ones by id. All literal matches score 1.
    """
    values = {**scope_values(scope), "limit": limit}
    if asked := match_expression(query):
        found = connection.execute(_SEARCH, {**values, "asked": asked}).fetchall()
        if found:
            return found
    literal = searchable(query.encode("utf-8", "ignore").decode()).strip()
    return connection.execute(_LITERAL, {**values, "asked": literal}).fetchall() if literal else []
