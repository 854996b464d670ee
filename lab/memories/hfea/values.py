"""What a sentence states: its stems, and the times, numbers and names in it."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]  # it comes without types

from lab.memories.hfea import lexicon
from lab.retrieval.factstore.tokens import STOPWORDS, fold, words

Values = tuple[tuple[str, frozenset[str]], ...]
"""Values by kind: ``day``, ``month``, ``year``, ``weekday``, ``clock``, ``relative``, ``number``, ``name``."""

SENTENCE = re.compile(r"(?:[^.!?…\n]|(?<=\w)[.!?](?=\w))+[.!?…]*|\n|[.!?…]+")
"""A sentence; a sign within a word or number ends none."""
_RAW_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CLOCK = re.compile(r"\d{1,2}(?::\d\d|h\d{0,2}|am|pm)")
_DAY = re.compile(r"(?P<number>[0-3]?\d)(?P<ordinal>st|nd|rd|th)?|(?P<iso>\d{4}-\d\d-\d\d)")
_LANGUAGES = ("english", "portuguese")


def values(said: str, known: Set[str]) -> Values:
    """The values in a text, those left out that are known.

    Args:
        said: The text.
        known: Words, folded.
    """
    told = [word for word in words(said) if word not in known]
    clocks = {word for word in told if _CLOCK.fullmatch(word)}
    years = {word for word in told if _YEAR.fullmatch(word)}
    weekdays = {day["name"] or day["nome"] for word in told if (day := lexicon.WEEKDAY.fullmatch(word))}
    found = {
        "clock": clocks,
        "year": years,
        "number": {w for w in told if w in lexicon.NUMBERS or any(map(str.isdigit, w))} - clocks - years,
        "month": set(told) & lexicon.MONTHS,
        "day": _days(words(said)) - known,
        "weekday": weekdays,
        "relative": set(told) & lexicon.RELATIVE_TIMES,
        "name": names(said, inner=False) - known - lexicon.MONTHS - weekdays,
    }
    return tuple((name, frozenset(those)) for name, those in found.items() if those)


def _days(told: Sequence[str]) -> set[str]:
    """Numbers that are days of a month: ``dia 8``, ``the 29th``, ``19 de março``, ``2 to 6 April``, ``2026-03-19``."""
    found = set()
    for at, word in enumerate(told):
        day = _DAY.fullmatch(word)
        if day is None:
            continue
        after = (other for other in told[at + 1 :] if other not in lexicon.DAY_LINKS and not _DAY.fullmatch(other))
        before = told[at - 1] if at else ""
        if day["ordinal"] or day["iso"] or before in lexicon.DAY_BEFORE | lexicon.MONTHS:
            found.add(day["iso"] or day["number"])
        elif next(after, "") in lexicon.MONTHS:
            found.add(day["number"])
    return found


def names(text: str, *, inner: bool) -> frozenset[str]:
    """Capitalised words, folded; with ``inner`` those at the start of a sentence are left out, which all have one."""
    found = set()
    for sentence in SENTENCE.findall(text):
        for index, match in enumerate(_RAW_WORD.finditer(sentence)):
            word = match[0].removesuffix("'s").removesuffix("’s")
            if word[:1].isupper() and not (inner and index == 0):
                found.add(fold(word))
    return frozenset(word for word in found if word not in STOPWORDS and word not in lexicon.FRAMING)


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> frozenset[str]:
    """Stems of a folded word, English and Portuguese; of one with a digit, itself."""
    if any(map(str.isdigit, word)):
        return frozenset((word,))
    # Made anew: a stemmer keeps the word that it works on in itself, and threads may ask.
    return frozenset(snowballstemmer.stemmer(language).stemWord(word) for language in _LANGUAGES)


@lru_cache(maxsize=1 << 11)
def stems(text: str) -> frozenset[str]:
    """Stems of all words of a text, and of the pieces of its compound ones."""
    split = {piece for word in words(text) for piece in (word, *re.findall(r"[^\W_]+", word))}
    return frozenset().union(*map(stem, split))


def holds(held: Set[str], term: str) -> bool:
    """Whether stems hold a word in one of its forms."""
    return not stem(term).isdisjoint(held)
