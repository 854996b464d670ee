"""A reference cross-check without a model: values of a copy held against those that stand in its sources' same slots.

The rule, written on the development part:

1. A value is a date, a time, a number, an identifier (whatever has a digit and a letter, or parts joined by signs) or a
   capitalised name. It is compared in one form: ``1,450`` is ``1450``, ``14 March`` and ``2031-03-14`` agree.
2. A source of a copy is a text that has most of the copy's content words, values left out.
3. A source supports a value that it has. Where it lacks the value, its *rival* is a value of the same kind that the
   copy lacks and that is written nearly alike, or has the same word beside it.
4. A value is disputed if two or more sources have the same rival, and more than support the value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from lab.memories.hfea.lexicon import MONTHS
from lab.memories.hfea.values import holds, stems
from lab.retrieval.factstore.tokens import STOPWORDS, fold

LEAST_SHARED = 0.6
"""Least share of a copy's content words that a source has."""

MOST_SOURCES = 6
"""Most sources of one copy."""

LONGEST = 100
"""Letters of the longest value; what is longer is no value that a person would say or write down."""

MAJORITY = 2
"""Fewest sources that must agree on a rival."""


class Shape(StrEnum):
    """Kinds of values; only values of one kind are rivals."""

    DATE = "date"
    TIME = "time"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    NAME = "name"


@dataclass(frozen=True)
class Value:
    """A value in a text.

    Attributes:
        shape: Its kind.
        form: The form in which it is compared.
        beside: Content words next to it, folded.
        text: As it stands there.
        start: Where it begins there.
    """

    shape: Shape
    form: str
    beside: frozenset[str]
    text: str
    start: int


@dataclass(frozen=True)
class Dispute:
    """A value of a copy that the sources outvote.

    Attributes:
        stored: The value in the copy.
        sources: What the majority has in its place, as it stands there.
        votes: How many sources have that.
        support: How many have the copy's.
    """

    stored: str
    sources: str
    votes: int
    support: int


_MONTH_NAMES = (
    "january february march april may june july august september october november december "
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro"
)
_MONTH = {name: number % 12 + 1 for number, name in enumerate(_MONTH_NAMES.split())}
_NAMED = "|".join(_MONTH)
_ORDINAL = "(?:st|nd|rd|th|º)?"
_PATTERNS: tuple[tuple[Shape, re.Pattern[str]], ...] = (
    (Shape.DATE, re.compile(r"(?<!\d)(?:19|20)\d\d-(?P<m>\d\d)-(?P<d>\d\d)(?!\d)")),
    (Shape.DATE, re.compile(r"(?<![\d/])(?P<d>\d{1,2})/(?P<m>\d{1,2})(?:/(?:19|20)\d\d)?(?![\d/])")),
    (Shape.DATE, re.compile(rf"(?<!\w)(?P<d>\d{{1,2}}){_ORDINAL} (?:of |de )?(?P<n>{_NAMED})(?!\w)")),
    (Shape.DATE, re.compile(rf"(?<!\w)(?P<n>{_NAMED}) (?P<d>\d{{1,2}}){_ORDINAL}(?!\w)")),
    (Shape.TIME, re.compile(r"(?<!\w)(?P<h>\d{1,2})(?:h|:)(?P<min>\d\d)?(?!\w)")),
    # Two groups of capitals and digits apart: a licence plate.
    (Shape.IDENTIFIER, re.compile(r"(?<!\w)[a-z]{2,4} \d[a-z0-9]{2,3}(?!\w)")),
    (Shape.NUMBER, re.compile(r"(?<![\w.,/@-])\d{1,3}(?:[.,]\d{3})+(?![\w/@-])|(?<![\w.,/@-])\d+(?![\w/@-]|[.,]\d)")),
    (Shape.IDENTIFIER, re.compile(r"(?<!\w)\w+(?:[-.:/@+]\w+)+(?!\w)|(?<!\w)(?=\w*\d)(?=\w*[^\W\d_])\w+(?!\w)")),
)
_NAME = re.compile(r"[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*)*")
_WORD = re.compile(r"\w+")
_NEAR = 120
"""Letters within which the words beside a value are looked for."""
_OPENING = " \n\t\"'“‘«(-–—"
_ENDS = ("", ".", "!", "?", ":")
"""After one of these a sentence begins; the empty one is the beginning of the text."""


@lru_cache(maxsize=1 << 12)
def values(text: str) -> tuple[Value, ...]:
    """The values of a text, in the order of their kinds, then of the text."""
    # Folded letter by letter, so that places in it are places in the text.
    plain = "".join(folded if len(folded := fold(letter)) == 1 else letter for letter in text)
    taken = bytearray(len(plain))
    found = []
    for shape, pattern in _PATTERNS:
        for match in pattern.finditer(plain):
            if (
                len(match[0]) > LONGEST
                or any(taken[match.start() : match.end()])
                or (shape is Shape.IDENTIFIER and not _coded(text, match))
            ):
                continue
            taken[match.start() : match.end()] = b"\1" * len(match[0])
            found.append(_value(shape, _form(shape, match), text, plain, match.start(), match.end()))
    for start, end in _names(text, taken):
        found.append(_value(Shape.NAME, plain[start:end], text, plain, start, end))
    return tuple(found)


def disputes(copy: str, sources: Sequence[str]) -> tuple[Dispute, ...]:
    """The values of a copy that its sources outvote.

    Args:
        copy: What is stored.
        sources: Texts among which its sources are; what speaks of other things is left out by the rule.
    """
    own = [values(source) for source in sources_of(copy, sources)]
    mine = values(copy)
    there = {(value.shape, value.form) for value in mine}
    found = []
    for value in mine:
        support, rivals, shown = 0, Counter[str](), dict[str, str]()
        for theirs in own:
            if any(value.form == other.form for other in theirs):
                support += 1
                continue
            rival = _rival(value, [other for other in theirs if (other.shape, other.form) not in there])
            if rival is not None:
                rivals[rival.form] += 1
                shown.setdefault(rival.form, rival.text)
        best, votes = max(sorted(rivals.items()), key=lambda pair: pair[1], default=("", 0))
        if votes >= MAJORITY and votes > support:
            found.append(Dispute(value.text, shown[best], votes, support))
    return tuple(found)


def sources_of(copy: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The texts that speak of a copy's matter, best first, at most ``MOST_SOURCES``."""
    wanted = _content(copy)
    if not wanted:
        return ()
    shares = [(sum(holds(stems(text), word) for word in wanted) / len(wanted), text) for text in texts]
    ranked = sorted((pair for pair in shares if pair[0] >= LEAST_SHARED), key=lambda pair: (-pair[0], pair[1]))
    return tuple(text for _, text in ranked[:MOST_SOURCES])


def _content(text: str) -> frozenset[str]:
    """Content words outside of values; those of names are kept, for they say what the matter is."""
    rest = list(text)
    for value in values(text):
        if value.shape is not Shape.NAME:
            rest[value.start : value.start + len(value.text)] = " " * len(value.text)
    return frozenset(_WORD.findall(fold("".join(rest)))) - STOPWORDS


def _coded(text: str, match: re.Match[str]) -> bool:
    """Whether something joined or mixed is an identifier: it has a digit, an @, or two joining signs."""
    said = text[match.start() : match.end()]
    if " " in said:
        return said.split()[0].isupper()
    return bool(re.search(r"[\d@]", said)) or len(re.findall(r"[-.:/+]", said)) > 1


def _form(shape: Shape, match: re.Match[str]) -> str:
    parts = match.groupdict()
    if shape is Shape.DATE:
        return f"{int(parts['d']):02d}.{int(parts.get('m') or _MONTH[parts['n']]):02d}"
    if shape is Shape.TIME:
        return f"{int(parts['h']):02d}:{parts['min'] or '00'}"
    return re.sub(r"[\s.,_-]", "", match[0]) if shape is not Shape.NAME else match[0]


def _value(shape: Shape, form: str, text: str, plain: str, start: int, end: int) -> Value:
    before = [word for word in _WORD.findall(plain[max(0, start - _NEAR) : start]) if word not in STOPWORDS][-2:]
    after = [word for word in _WORD.findall(plain[end : end + _NEAR]) if word not in STOPWORDS][:1]
    return Value(shape, form, frozenset((*before, *after)), text[start:end], start)


def _names(text: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    """Runs of capitalised words, those that begin a sentence only with another one after them."""
    for run in _NAME.finditer(text):
        words = [(m.start() + run.start(), m.end() + run.start()) for m in re.finditer(r"\S+", run[0])]
        group: list[tuple[int, int]] = []
        for start, end in [*words, (len(text), len(text))]:
            capital = (
                text[start:end][:1].isupper() and fold(text[start:end]) not in MONTHS and not any(taken[start:end])
            )
            if capital:
                group.append((start, end))
                continue
            first = bool(group) and text[max(0, group[0][0] - _NEAR) : group[0][0]].rstrip(_OPENING)[-1:] in _ENDS
            if group and fold(text[slice(*group[0])]) in STOPWORDS:
                group.pop(0)
            elif first and len(group) == 1:
                group = []
            if group and group[-1][1] - group[0][0] <= LONGEST:
                yield group[0][0], group[-1][1]
            group = []


_ALIKE = str.maketrans("oilszb", "011528")
"""Letters that are taken for digits: they make no difference to whether one value may stand for another."""


def _rival(value: Value, others: Iterable[Value]) -> Value | None:
    """The nearest value of the same kind that may stand for it; the first of equally near ones."""
    near = [
        (distance(value.form, other.form), other)
        for other in others
        if other.shape is value.shape and _stands_for(value, other)
    ]
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _stands_for(value: Value, other: Value) -> bool:
    longest = max(len(value.form), len(other.form))
    apart = distance(value.form.translate(_ALIKE), other.form.translate(_ALIKE))
    if value.shape in (Shape.IDENTIFIER, Shape.NAME):
        return apart <= max(1, min(4, longest // 3))
    return bool(value.beside & other.beside) or (longest >= 4 and apart <= 2)


def distance(one: str, two: str) -> int:
    """Optimal string alignment: fewest letters inserted, deleted, changed or swapped with their neighbour."""
    rows = [list(range(len(two) + 1))]
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(two, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
