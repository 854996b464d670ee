"""The fact store's stopwords for other systems, by language, and the folding in which words are compared with them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from lab.errors import InputError
from lab.retrieval.factstore.stopwords import ENGLISH, PORTUGUESE


def folded(word: str) -> str:
    """A word without case and accents: ``São`` and ``sao`` are one."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


STOPWORDS = {"en": ENGLISH, "pt": PORTUGUESE}
"""Folded words by language."""


def stopwords(languages: Iterable[str]) -> frozenset[str]:
    """The folded stopwords of languages together.

    Args:
        languages: Of ``STOPWORDS``; none for no stopwords.

    Raises:
        InputError: There is no list for one of them.
    """
    found: frozenset[str] = frozenset()
    for language in languages:
        if language not in STOPWORDS:
            raise InputError(f"no stopwords are known for {language!r}", f"take some of {', '.join(STOPWORDS)}")
        found |= STOPWORDS[language]
    return found
