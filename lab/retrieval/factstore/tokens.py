"""Words of a text as retrieval sees them: folded, with identifiers such as ``POL-358`` or ``C++`` kept whole."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .stopwords import ENGLISH, PORTUGUESE

STOPWORDS = ENGLISH | PORTUGUESE
"""Both apply to every text: stores mix the languages."""

MAX_TERMS = 64
"""Most content terms of a query that are searched; a query of 10 kB is an upload, not a question."""

# A run of word characters, joined by single connectors, with the suffixes that tell C from C++ and C#.
_WORD = re.compile(r"\w+(?:[-.:@+]\w+)*(?:\+{1,2}|#)?")
_PIECE = re.compile(r"[^\W_]+")
# Scripts without spaces between words: each character is a word of its own, and a word is a phrase of them.
_UNSPACED = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")

# The full-text tokeniser knows no emoji, so they go by their code point.
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")


def fold(text: str) -> str:
    """Lower case without diacritics, the same for composed (NFC) and decomposed (NFD) text; emoji become words.

    NUL becomes a space: full-text queries end at it.
    """
    if text.isascii():
        return text.lower().replace("\0", " ")
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c)).replace("\0", " ")
    return _EMOJI.sub(lambda match: f" u{ord(match[0]):x} ", plain)


def indexed(text: str) -> str:
    """The form of a text in which the full-text index gets it."""
    return _UNSPACED.sub(r" \1 ", fold(text))


def words(text: str) -> tuple[str, ...]:
    """All words in their order, identifiers whole."""
    return tuple(_WORD.findall(fold(text)))


def terms(text: str) -> tuple[str, ...]:
    """Content terms of a query: its distinct words without stopwords, in their order, at most ``MAX_TERMS``."""
    found = dict.fromkeys(word for word in words(text) if word not in STOPWORDS and _PIECE.search(word))
    return tuple(found)[:MAX_TERMS]


def pieces(term: str) -> tuple[str, ...]:
    """What the full-text tokeniser makes of a term: ``node.js`` has two pieces, which stand side by side in a text."""
    return tuple(_PIECE.findall(_UNSPACED.sub(r" \1 ", term)))


@lru_cache(maxsize=1 << 13)
def vocabulary(text: str) -> frozenset[str]:
    """Everything by which a document can be met: its words whole, and the pieces of the compound ones."""
    return frozenset(words(text)).union(_PIECE.findall(indexed(text)))


def share_found(wanted: tuple[str, ...], document: frozenset[str]) -> float:
    """Share of a query's content terms that a document has; 0 for a query without any.

    A term of an unspaced script is found when all its characters are: no dictionary cuts such a run into words.
    """
    if not wanted:
        return 0.0
    return sum(term in document or _in_characters(term, document) for term in wanted) / len(wanted)


def _in_characters(term: str, document: frozenset[str]) -> bool:
    return bool(_UNSPACED.search(term)) and document.issuperset(pieces(term))
