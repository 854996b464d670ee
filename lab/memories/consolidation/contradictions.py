"""Scan for contradictions without a model: four weighted signals between two texts of one matter and one week."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from lab.memories.consolidation.kinds import Memory
from lab.memories.consolidation.lexicon import ANTONYMS, CHANGES, NEGATIONS, TIMES
from lab.retrieval.stopwords import folded, stopwords


class Signal(StrEnum):
    """By what two texts may contradict each other."""

    NEGATION = "negation"
    """One denies, the other does not."""
    ANTONYM = "antonym"
    """Each has one word of a pair of opposites."""
    NUMERIC = "numeric"
    """Each has a number that the other lacks. Numbers within times are temporal."""
    TEMPORAL = "temporal"
    """Each names a time that the other does not, or one puts it into the past."""


WEIGHTS: Mapping[Signal, float] = {
    Signal.NEGATION: 0.35,
    Signal.ANTONYM: 0.25,
    Signal.NUMERIC: 0.25,
    Signal.TEMPORAL: 0.15,
}
"""As the design has them. No single one reaches the threshold, every two together do."""

THRESHOLD = 0.40
"""Score from which a pair is flagged, as the design has it."""

WINDOW = timedelta(days=7)
"""Longest distance in time of a pair, inclusive, as the design has it."""

OVERLAP = 0.5
"""Share of the smaller text's content words that both must have to be of one matter. The design states no bound."""

_MONTH = "jan|feb|fev|mar|apr|abr|may|mai|jun|jul|aug|ago|sep|set|oct|out|nov|dec|dez"
_TIME = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?|\d{1,2}/\d{1,2}(?:/\d{2,4})?"  # dates
    r"|\d{1,2}:\d\d|\d{1,2}h(?:\d\d)?\b|\d{1,2} ?(?:am|pm)\b"  # times of day
    rf"|\b(?:19|20)\d\d\b|\b\d{{1,2}}(?= (?:de )?(?:{_MONTH})[a-z]*\b)"  # years, days of a month
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_]+")
_APOSTROPHE = re.compile(r"(?<=n)['’](?=t\b)")
_CHANGED = {tongue: re.compile(rf"\b(?:{phrases})\b") for tongue, phrases in CHANGES.items()}
_COUNTS = {
    word: str(number)
    for words in (
        "zero - two three four five six seven eight nine ten eleven twelve",
        "zero - dois tres quatro cinco seis sete oito nove dez onze doze",
        "zero - duas tres quatro cinco seis sete oito nove dez onze doze",
    )
    for number, word in enumerate(words.split())
    if word != "-"
}
"""Number words; *one* is left out, for in both languages it is an article or a pronoun as often."""


class Pair(NamedTuple):
    """Two memories that are flagged.

    Attributes:
        first: Id of the earlier one.
        second: Id of the other.
        signals: What speaks for a contradiction.
        score: Sum of their weights.
    """

    first: str
    second: str
    signals: frozenset[Signal]
    score: float


class _Read(NamedTuple):
    """What the scan sees of a text."""

    content: frozenset[str]
    words: frozenset[str]
    numbers: frozenset[str]
    times: frozenset[str]
    denies: bool
    past: bool


def _tongue(language: str) -> str:
    """The part of a language's tag that the lexicon goes by: ``pt`` of ``pt-BR``."""
    return language.partition("-")[0]


def _read(text: str, language: str) -> _Read:
    own = _tongue(language)
    plain = _APOSTROPHE.sub("", folded(text))
    times = frozenset(found.group().replace(" ", "") for found in _TIME.finditer(plain))
    rest = _TIME.sub(" ", plain)
    words = frozenset(_WORD.findall(rest))
    counted = frozenset(_COUNTS[word] for word in words if word in _COUNTS)
    # "1.800" and "1,800" are one number.
    numbers = frozenset(re.sub("[.,]", "", found) for found in _NUMBER.findall(rest)) | counted
    denials, named = NEGATIONS.get(own, frozenset()), TIMES.get(own, frozenset())
    opposites = {word for pair in ANTONYMS.get(own, frozenset()) for word in pair}
    # What decides a signal must not decide whether the matter is the same.
    content = words - stopwords([own] if own in NEGATIONS else []) - denials - named - opposites - set(_COUNTS)
    spaced = " ".join(_WORD.findall(plain))
    return _Read(
        content=frozenset(map(_stem, content)),
        words=words,
        numbers=numbers,
        times=times | (words & named),
        denies=bool(words & denials),
        past=own in _CHANGED and bool(_CHANGED[own].search(spaced)),
    )


def _stem(word: str) -> str:
    """A word without the ending that its number, gender or person gives it; crude, and the same for both texts."""
    return re.sub(r"(?<=\w{3})(?:ing|ed|es|[aeiou]s|[aeious])$", "", word)


def same_matter(first: str, second: str, language: str) -> bool:
    """Whether two texts share enough content words to be of one matter."""
    return _one_matter(_read(first, language), _read(second, language))


def signals(first: str, second: str, language: str) -> frozenset[Signal]:
    """The signals between two texts, whether or not they are of one matter.

    Args:
        first: A text.
        second: Another, in the same language.
        language: ``en``, ``pt-BR``, ….
    """
    return _between(_read(first, language), _read(second, language), language)


def score(found: Iterable[Signal]) -> float:
    """Sum of the weights, to two decimals: 0.25 + 0.15 must reach 0.40 on every machine."""
    return round(sum(WEIGHTS[signal] for signal in found), 2)


def scan(memories: Iterable[Memory], *, threshold: float = THRESHOLD, window: timedelta = WINDOW) -> tuple[Pair, ...]:
    """Pairs of one matter, one language and one window whose signals reach the threshold.

    Args:
        memories: In any order.
        threshold: Least score.
        window: Longest distance in time, inclusive.

    Returns:
        Pairs by time of the first, then of the second.
    """
    ordered = [
        (memory, _read(memory.text, memory.language))
        for memory in sorted(memories, key=lambda memory: (memory.at, memory.id))
    ]
    found = []
    for position, (one, read) in enumerate(ordered):
        for two, other in ordered[position + 1 :]:
            if two.at - one.at > window:
                break
            if one.language == two.language and _one_matter(read, other):
                seen = _between(read, other, one.language)
                if score(seen) >= threshold:
                    found.append(Pair(one.id, two.id, seen, score(seen)))
    return tuple(found)


def _one_matter(one: _Read, two: _Read) -> bool:
    least = min(len(one.content), len(two.content))
    return least > 0 and len(one.content & two.content) / least >= OVERLAP


def _between(one: _Read, two: _Read, language: str) -> frozenset[Signal]:
    only_one, only_two = one.words - two.words, two.words - one.words
    pairs = ANTONYMS.get(_tongue(language), frozenset())
    seen = {
        Signal.NEGATION: one.denies != two.denies,
        Signal.ANTONYM: any(frozenset((a, b)) in pairs for a in only_one for b in only_two),
        Signal.NUMERIC: bool(one.numbers - two.numbers and two.numbers - one.numbers),
        Signal.TEMPORAL: bool(one.times - two.times and two.times - one.times) or one.past != two.past,
    }
    return frozenset(signal for signal, fires in seen.items() if fires)
