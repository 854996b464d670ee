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

WINDOW = 2
"""Most sentences of a text that may answer a question together."""
THRESHOLD = 0.6
"""Least share of the content words; chosen on the development topics of the suite ``fallback``."""

_SENTENCE = re.compile(r"(?:[^.!?…\n]|(?<=\w)[.!?](?=\w))+[.!?…]*|\n|[.!?…]+")
_RAW_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CLOCK = re.compile(r"\d{1,2}(?::\d\d|h\d{0,2}|am|pm)")
_LANGUAGES = ("english", "portuguese")


class Kind(StrEnum):
    """What a question asks for."""

    TIME = "time"
    NUMBER = "number"
    NAME = "name"
    ATTITUDE = "attitude"
    ANY = "anything"


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
    asking = lexicon.HOW_MANY | lexicon.WHEN | lexicon.WHO
    if kind is Kind.TIME:
        asking |= lexicon.WHEN_NOUNS
    elif kind is Kind.NUMBER:
        asking |= lexicon.QUANTITY_NOUNS
    elif kind is Kind.ATTITUDE:
        asking |= lexicon.ATTITUDES
    content = tuple(term for term in wanted if term not in anchors and term not in asking)
    return Question(text, wanted, anchors, content, kind, bool(lexicon.FIRST_PERSON.intersection(asked)))


def _kind(asked: Sequence[str]) -> Kind:
    found = set(asked)
    which = bool(found & lexicon.WHICH)
    if found & lexicon.ATTITUDES:
        return Kind.ATTITUDE
    if found & lexicon.WHEN or (which and found & lexicon.WHEN_NOUNS):
        return Kind.TIME
    if found & lexicon.HOW_MANY or (which and found & lexicon.QUANTITY_NOUNS):
        return Kind.NUMBER
    return Kind.NAME if found & lexicon.WHO else Kind.ANY


def evidence(asked: Question, statement: Statement, threshold: float = THRESHOLD) -> Evidence | None:
    """The shortest window of a statement that suffices, the first of equals; None where none does.

    Args:
        asked: The question.
        statement: The statement.
        threshold: Least share of the content words, 0 to 1.
    """
    if not asked.anchors and not asked.content:
        return None
    sentences = [found.span() for found in _SENTENCE.finditer(statement.text) if found[0].strip()]
    for length in range(1, WINDOW + 1):
        for at in range(len(sentences) - length + 1):
            window = [statement.text[start:end] for start, end in sentences[at : at + length]]
            if (judged := _judged(asked, statement, window, threshold)) is not None:
                share, values, said = judged
                start = sentences[at][0]
                start += len(statement.text[start:]) - len(statement.text[start:].lstrip())
                end = sentences[at + length - 1][1]
                told = set(words(said))
                denies, revises = bool(told & lexicon.NEGATIONS), bool(told & lexicon.REVISIONS)
                return Evidence(statement, start, end, share, values, denies, revises)
    return None


_Values = tuple[tuple[str, frozenset[str]], ...]


def _judged(
    asked: Question, statement: Statement, window: Sequence[str], threshold: float
) -> tuple[float, _Values, str] | None:
    said = " ".join(sentence for sentence in window if not sentence.rstrip().endswith("?"))
    if not said:
        return None
    held = _stems(" ".join((*window, statement.author)))
    if not all(_held(anchor, held) for anchor in asked.anchors):
        return None
    found = sum(_held(term, held) for term in asked.content)
    share = found / len(asked.content) if asked.content else 1.0
    values = _values(said, asked)
    if share < threshold or not _states(asked, statement, said, dict(values)):
        return None
    return share, values, said


def _states(asked: Question, statement: Statement, said: str, values: dict[str, frozenset[str]]) -> bool:
    """Whether something of the kind asked for is stated."""
    if asked.kind is Kind.ATTITUDE:
        return _states_attitude(asked, statement, said)
    if asked.kind is Kind.ANY:
        known = {stem for term in words(asked.text) for stem in _stem(term)}
        return any(known.isdisjoint(_stem(term)) for term in terms(said) if term not in lexicon.FRAMING)
    return any(values.get(name) for name in _COMPARED[asked.kind])


def _states_attitude(asked: Question, statement: Statement, said: str) -> bool:
    told = set(words(said))
    if not told & lexicon.ATTITUDES:
        return False
    if told & (lexicon.FIRST_PERSON | lexicon.FIRST_PERSON_ATTITUDES):
        if asked.own:
            return statement.own
        return bool(asked.anchors & set(words(statement.author)))
    return not asked.own


_COMPARED: dict[Kind, tuple[str, ...]] = {
    Kind.TIME: ("year", "month", "weekday", "clock", "relative", "number"),
    Kind.NUMBER: ("number", "clock", "year"),
    Kind.NAME: ("name",),
    Kind.ATTITUDE: (),
    Kind.ANY: ("number", "clock", "name", "month", "weekday"),
}
"""Values that answer a question of a kind, and in which two answers to it can differ."""


def _values(said: str, asked: Question) -> _Values:
    """What is said beyond the question, by kind of value."""
    known = set(words(asked.text))
    told = [word for word in words(said) if word not in known]
    clocks = {word for word in told if _CLOCK.fullmatch(word)}
    years = {word for word in told if _YEAR.fullmatch(word)}
    found = {
        "clock": clocks,
        "year": years,
        "number": {w for w in told if w in lexicon.NUMBERS or any(map(str.isdigit, w))} - clocks - years,
        "month": set(told) & lexicon.MONTHS,
        "weekday": {word.removesuffix("-feira") for word in told if word in lexicon.WEEKDAYS},
        "relative": set(told) & lexicon.RELATIVE_TIMES,
        "name": _names(said, inner=False) - known - lexicon.MONTHS - lexicon.WEEKDAYS,
    }
    return tuple((name, frozenset(values)) for name, values in found.items() if values)


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
    """Leaves out what a later statement says that it replaces.

    Args:
        found: Evidence, best first.
        kind: What the question asks for.

    Returns:
        The evidence that stands, in its order, and whether a contradiction is left in it.
    """
    replaced = {
        index
        for index, older in enumerate(found)
        for newer in found
        if newer.revises and newer.statement.time > older.statement.time and contradict(older, newer, kind)
    }
    left = tuple(each for index, each in enumerate(found) if index not in replaced)
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
