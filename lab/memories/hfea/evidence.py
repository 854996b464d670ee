"""Evidence without a model: when a text suffices to answer a question, and when two such texts contradict each other.

The rule. A text is evidence for a question if a window of at most ``WINDOW`` sentences of it
1. holds every anchor of the question: identifiers, numbers and names,
2. holds at least a share ``threshold`` of its other content words, stemmed, and
3. states something of the kind asked for that the question does not hold already: a time, a number, a name, an
   attitude, or else at least one further content word; a sentence that asks states nothing.
A question about an attitude also needs its holder: a sentence in the first person is its author's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lab.memories.hfea import lexicon
from lab.memories.hfea.values import SENTENCE, Values, holds, names, stem, stems, values
from lab.retrieval.factstore.tokens import terms, words

WINDOW = 3
"""Most sentences of a text that may answer a question together."""
THRESHOLD = 0.65
"""Least share of the content words; chosen on the development topics of the suite ``fallback``."""


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
    values: Values
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
    named = names(text, inner=True)
    anchors = frozenset(term for term in wanted if any(map(str.isdigit, term)) or term in named)
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
    spans = [found.span() for found in SENTENCE.finditer(statement.text) if found[0].strip()]
    windows = (spans[at : at + length] for length in range(1, WINDOW + 1) for at in range(len(spans) - length + 1))
    judged = (seen for window in windows if (seen := _judged(asked, statement, window, threshold)))
    return max(judged, key=lambda seen: seen.share, default=None)


def _judged(
    asked: Question, statement: Statement, window: Sequence[tuple[int, int]], threshold: float
) -> Evidence | None:
    sentences = [statement.text[start:end] for start, end in window]
    said = " ".join(sentence for sentence in sentences if not sentence.rstrip().endswith("?"))
    held = stems(" ".join((*sentences, statement.author)))
    if not all(holds(held, anchor) for anchor in asked.anchors):
        return None
    found = sum(holds(held, term) for term in asked.content)
    share = found / len(asked.content) if asked.content else 1.0
    stated = values(said, frozenset(words(asked.text)))
    if share < threshold or not _states(asked, statement, said, dict(stated)):
        return None
    start, end = window[0][0], window[-1][1]
    start += len(sentences[0]) - len(sentences[0].lstrip())
    told = set(words(said))
    return Evidence(
        statement, start, end, share, stated, bool(told & lexicon.NEGATIONS), bool(told & lexicon.REVISIONS)
    )


def _states(asked: Question, statement: Statement, said: str, stated: dict[str, frozenset[str]]) -> bool:
    """Whether something of the kind asked for is stated."""
    if asked.kind in (Kind.TASTE, Kind.FEELING):
        return _states_attitude(asked, statement, said)
    if asked.kind is Kind.ANY:
        known = stems(asked.text)
        return any(known.isdisjoint(stem(term)) for term in terms(said) if term not in lexicon.FRAMING)
    return any(stated.get(name) for name in _COMPARED[asked.kind])


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
