"""Evidence without a model: when a text suffices to answer a question, and when two such texts contradict each other.

The rule. A text is evidence for a question if a window of at most ``WINDOW`` sentences of it
1. holds every anchor of the question: identifiers, numbers and names,
2. holds at least a share ``threshold`` of its other content words, stemmed, and
3. states something of the kind asked for that the question does not hold already: a time, a number, a name, an
   attitude, or else at least one further content word; a sentence that asks states nothing.
A question about an attitude also needs its holder: a sentence in the first person is its author's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]  # it comes without types

from lab.memories.hfea import lexicon
from lab.retrieval.factstore.tokens import STOPWORDS, fold, terms, words

WINDOW = 3
"""Most sentences of a text that may answer a question together."""
THRESHOLD = 0.65
"""Least share of the content words; chosen on the development topics of the suite ``fallback``."""

_SENTENCE = re.compile(r"(?:[^.!?…\n]|(?<=\w)[.!?](?=\w))+[.!?…]*|\n|[.!?…]+")
_RAW_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CLOCK = re.compile(r"\d{1,2}(?::\d\d|h\d{0,2}|am|pm)")
_DAY = re.compile(r"(?P<number>[0-3]?\d)(?P<ordinal>st|nd|rd|th)?|(?P<iso>\d{4}-\d\d-\d\d)")
_LANGUAGES = ("english", "portuguese")


class Kind(StrEnum):
    """What a question asks for."""

    TIME = "time"
    NUMBER = "number"
    NAME = "name"
    TASTE = "taste"
    FEELING = "feeling"
    ANY = "anything"


_ASKING: dict[Kind, frozenset[str]] = {
    Kind.TIME: lexicon.WHEN | lexicon.WHEN_NOUNS,
    Kind.NUMBER: lexicon.HOW_MANY | lexicon.QUANTITY_NOUNS,
    Kind.NAME: lexicon.WHO,
    Kind.TASTE: lexicon.TASTES,
    Kind.FEELING: lexicon.FEELINGS,
    Kind.ANY: frozenset(),
}
"""Words of a question of a kind that its answer need not repeat; for an attitude, those one of which it must hold."""


@dataclass(frozen=True)
class Question:
    """What a question needs.

    Attributes:
        text: The question.
        terms: All its content words, folded; what is searched for.
        anchors: Those of them that evidence must hold.
        content: The others, of which it must hold a share.
        kind: What is asked for.
        own: Whether it is about who asks.
    """

    text: str
    terms: tuple[str, ...]
    anchors: frozenset[str]
    content: tuple[str, ...]
    kind: Kind
    own: bool


@dataclass(frozen=True)
class Statement:
    """A text that may be evidence.

    Attributes:
        text: What is said.
        author: Who said it; empty where it is not known.
        own: Whether its author is who asks.
        time: When, in any form that sorts; empty where it is not known.
    """

    text: str
    author: str = ""
    own: bool = False
    time: str = ""


@dataclass(frozen=True)
class Evidence:
    """A window of a statement that suffices.

    Attributes:
        statement: The statement.
        start: First character of the window.
        end: The character after its last.
        share: Share of the question's words that it holds.
        values: What it states beyond the question, by kind of value.
        negated: Whether it is a denial.
        revises: Whether it says that it replaces something earlier.
    """

    statement: Statement
    start: int
    end: int
    share: float
    values: tuple[tuple[str, frozenset[str]], ...]
    negated: bool
    revises: bool

    @property
    def text(self) -> str:
        """The window."""
        return self.statement.text[self.start : self.end]


def question(text: str) -> Question:
    """Reads a question."""
    asked = words(text)
    wanted = tuple(term for term in terms(text) if term not in lexicon.FRAMING)
    kind = _kind(asked)
    names = _names(text, inner=True)
    anchors = frozenset(term for term in wanted if any(map(str.isdigit, term)) or term in names)
    rest = tuple(term for term in wanted if term not in anchors)
    # A name alone is no evidence: where nothing else is left, the words that ask must be held as well.
    content = tuple(term for term in rest if term not in _ASKING[kind]) or rest
    return Question(text, wanted, anchors, content, kind, bool(lexicon.FIRST_PERSON.intersection(asked)))


def _kind(asked: Sequence[str]) -> Kind:
    found = set(asked)
    which = bool(found & lexicon.WHICH)
    for attitude in (Kind.TASTE, Kind.FEELING):
        if found & _ASKING[attitude]:
            return attitude
    if found & lexicon.WHEN or (which and found & lexicon.WHEN_NOUNS):
        return Kind.TIME
    if found & lexicon.HOW_MANY or (which and found & lexicon.QUANTITY_NOUNS):
        return Kind.NUMBER
    return Kind.NAME if found & lexicon.WHO else Kind.ANY


def evidence(asked: Question, statement: Statement, threshold: float = THRESHOLD) -> Evidence | None:
    """The window of a statement that suffices with the greatest share, the shortest and first of equals.

    Args:
        asked: The question.
        statement: The statement.
        threshold: Least share of the content words, 0 to 1.

    Returns:
        The window; None where none suffices.
    """
    if not asked.anchors and not asked.content:
        return None
    spans = [found.span() for found in _SENTENCE.finditer(statement.text) if found[0].strip()]
    windows = (spans[at : at + length] for length in range(1, WINDOW + 1) for at in range(len(spans) - length + 1))
    judged = (seen for window in windows if (seen := _judged(asked, statement, window, threshold)))
    return max(judged, key=lambda seen: seen.share, default=None)


_Values = tuple[tuple[str, frozenset[str]], ...]


def _judged(
    asked: Question, statement: Statement, window: Sequence[tuple[int, int]], threshold: float
) -> Evidence | None:
    sentences = [statement.text[start:end] for start, end in window]
    said = " ".join(sentence for sentence in sentences if not sentence.rstrip().endswith("?"))
    held = _stems(" ".join((*sentences, statement.author)))
    if not all(_held(anchor, held) for anchor in asked.anchors):
        return None
    found = sum(_held(term, held) for term in asked.content)
    share = found / len(asked.content) if asked.content else 1.0
    values = _values(said, asked)
    if share < threshold or not _states(asked, statement, said, dict(values)):
        return None
    start, end = window[0][0], window[-1][1]
    start += len(sentences[0]) - len(sentences[0].lstrip())
    told = set(words(said))
    return Evidence(
        statement, start, end, share, values, bool(told & lexicon.NEGATIONS), bool(told & lexicon.REVISIONS)
    )


def _states(asked: Question, statement: Statement, said: str, values: dict[str, frozenset[str]]) -> bool:
    """Whether something of the kind asked for is stated."""
    if asked.kind in (Kind.TASTE, Kind.FEELING):
        return _states_attitude(asked, statement, said)
    if asked.kind is Kind.ANY:
        known = {stem for term in words(asked.text) for stem in _stem(term)}
        return any(known.isdisjoint(_stem(term)) for term in terms(said) if term not in lexicon.FRAMING)
    return any(values.get(name) for name in _COMPARED[asked.kind])


def _states_attitude(asked: Question, statement: Statement, said: str) -> bool:
    told = set(words(said))
    if not told & _ASKING[asked.kind]:
        return False
    if told & lexicon.FIRST_PERSON:
        if asked.own:
            return statement.own
        return bool(asked.anchors & set(words(statement.author)))
    return not asked.own


_COMPARED: dict[Kind, tuple[str, ...]] = {
    Kind.TIME: ("year", "month", "day", "weekday", "clock", "relative"),
    Kind.NUMBER: ("number", "clock", "year"),
    Kind.NAME: ("name",),
    Kind.TASTE: (),
    Kind.FEELING: (),
    Kind.ANY: ("number", "clock", "name", "month", "weekday"),
}
"""Values that answer a question of a kind, and in which two answers to it can differ."""


def _values(said: str, asked: Question) -> _Values:
    """What is said beyond the question, by kind of value."""
    known = set(words(asked.text))
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
        "name": _names(said, inner=False) - known - lexicon.MONTHS - weekdays,
    }
    return tuple((name, frozenset(values)) for name, values in found.items() if values)


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


def contradict(first: Evidence, second: Evidence, kind: Kind) -> bool:
    """Whether two texts that both answer a question answer it differently.

    They do if exactly one of them denies, or if both state values of a kind asked for and have none of them in common.
    """
    if first.negated is not second.negated:
        return True
    mine, other = dict(first.values), dict(second.values)
    both = [name for name in _COMPARED[kind] if name in mine and name in other]
    return any(mine[name].isdisjoint(other[name]) for name in both)


def settled(found: Sequence[Evidence], kind: Kind) -> tuple[tuple[Evidence, ...], bool]:
    """Keeps what holds the question's words best, and of that leaves out what a later statement says it replaces.

    Args:
        found: Evidence, best first.
        kind: What the question asks for.

    Returns:
        The evidence that stands, in its order, and whether a contradiction is left in it.
    """
    most = max((each.share for each in found), default=0.0)
    best = [each for each in found if each.share == most]
    replaced = {
        index
        for index, older in enumerate(best)
        for newer in best
        if newer.revises and newer.statement.time > older.statement.time and contradict(older, newer, kind)
    }
    left = tuple(each for index, each in enumerate(best) if index not in replaced)
    return left, any(contradict(a, b, kind) for i, a in enumerate(left) for b in left[i + 1 :])


def _names(text: str, *, inner: bool) -> frozenset[str]:
    """Capitalised words, folded; with ``inner`` those at the start of a sentence are left out, which all have one."""
    found = set()
    for sentence in _SENTENCE.findall(text):
        for index, match in enumerate(_RAW_WORD.finditer(sentence)):
            word = match[0].removesuffix("'s").removesuffix("’s")
            if word[:1].isupper() and not (inner and index == 0):
                found.add(fold(word))
    return frozenset(word for word in found if word not in STOPWORDS and word not in lexicon.FRAMING)


@lru_cache(maxsize=1 << 15)
def _stem(word: str) -> frozenset[str]:
    if any(map(str.isdigit, word)):
        return frozenset((word,))
    # Made anew: a stemmer keeps the word that it works on in itself, and threads may ask.
    return frozenset(snowballstemmer.stemmer(language).stemWord(word) for language in _LANGUAGES)


@lru_cache(maxsize=1 << 11)
def _stems(text: str) -> frozenset[str]:
    split = {piece for word in words(text) for piece in (word, *re.findall(r"[^\W_]+", word))}
    return frozenset(stem for word in split for stem in _stem(word))


def _held(term: str, held: frozenset[str]) -> bool:
    return not held.isdisjoint(_stem(term))
