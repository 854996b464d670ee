"""Labelled data of the suite: a stored copy of a fact, the three sources that it was made from, and what is true."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from lab.errors import InputError
from lab.records import Record
from lab.retrieval.data.lines import BrokenData
from lab.retrieval.testset import Purpose
from lab.suites.base import DataInfo
from lab.suites.labelled import PARTS, Labelled, Words, digest_of, labelled_lines, require_apart

GUIDE = "docs/agreement.md"
FILE = "cases.jsonl"


class Kind(StrEnum):
    """What is wrong with a copy, or why a sound one may look wrong."""

    SWAPPED = "digits swapped"
    DIGIT = "digit changed"
    LETTER = "letter for digit"
    HEARD = "misheard letter"
    DATE = "date"
    NAME = "name"
    WORD = "ordinary word"
    NEIGHBOUR = "value of the neighbour"
    FORM = "equal in another form"
    NEAR = "neighbour with a near value"
    DISSENT = "one source dissents"
    OTHERS = "other numbers beside it"

    @property
    def wrong(self) -> bool:
        """Whether the copy is wrong."""
        return self not in _SOUND


PLANTED = Kind.SWAPPED
"""The kind of the one wrong copy that is planted among sound ones."""
_SOUND = frozenset({Kind.FORM, Kind.NEAR, Kind.DISSENT, Kind.OTHERS})


def states(text: str, forms: Iterable[str]) -> bool:
    """Whether a text has a value in one of its forms, as words of its own and whatever its case."""
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text, re.IGNORECASE) for form in forms)


class Case(Labelled):
    """A line of ``cases.jsonl``.

    Attributes:
        id: Unique over all parts.
        language: ``en`` or ``pt-BR``.
        kind: What is wrong with the copy.
        question: Asks for the value.
        stored: The copy.
        value: The value in the copy, to the letter.
        true: The true value in the forms in which copy and sources have it; the first is the copy's own.
        sources: What the copy was made from: what was said, what was noted of it, a document. All three have the true
            value; of kind ``one source dissents`` two have.
    """

    language: Literal["en", "pt-BR"]
    kind: Kind
    question: Words
    stored: Words
    value: Words
    true: tuple[Words, ...] = Field(min_length=1)
    sources: tuple[Words, Words, Words]

    @model_validator(mode="after")
    def _as_labelled(self) -> Self:
        if self.stored.count(self.value) != 1:
            raise ValueError(f"the copy has {self.value} other than once")
        if states(self.stored, self.true) is self.kind.wrong:
            raise ValueError(f"the copy is {'right' if self.kind.wrong else 'wrong'}, which the kind denies")
        stating = sum(states(source, self.true) for source in self.sources)
        if stating != (wanted := 2 if self.kind is Kind.DISSENT else 3):
            raise ValueError(f"{stating} sources have the true value, not {wanted}")
        return self


class Copy(Record):
    """A copy as a memory holds it.

    Attributes:
        case: What it is of.
        text: What it says.
        wrong: Whether that is not what the sources say.
    """

    case: Case
    text: str
    wrong: bool


class Part(Record):
    """The cases of one folder.

    Attributes:
        purpose: Whether the rule may be written on it.
        cases: In the order of the file.
    """

    purpose: Purpose
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{FOLDER}-{self.purpose}"

    def faulty(self) -> tuple[Copy, ...]:
        """The copies as they are labelled."""
        return tuple(Copy(case=case, text=case.stored, wrong=case.kind.wrong) for case in self.cases)

    def repaired(self) -> tuple[Copy, ...]:
        """The same with the true value in every copy: each wrong copy's clean twin."""
        texts = (case.stored.replace(case.value, case.true[0]) for case in self.cases)
        return tuple(Copy(case=case, text=text, wrong=False) for case, text in zip(self.cases, texts, strict=True))

    def info(self) -> DataInfo:
        """What a result tells of it."""
        wrong = sum(case.kind.wrong for case in self.cases)
        return DataInfo(
            name=self.name,
            purpose=self.purpose,
            digest=digest_of(self.cases),
            counts={
                "cases": len(self.cases),
                "wrong copies": wrong,
                "clean twins": wrong,
                "sound copies that may look wrong": len(self.cases) - wrong,
                **dict(sorted(Counter(case.language for case in self.cases).items())),
            },
            source=_SOURCES[self.purpose],
        )


FOLDER = "agreement"
_SOURCES = {
    Purpose.DEVELOPMENT: "invented; the cross-check's rule was written on it",
    Purpose.HOLD_OUT: "invented; written after the cross-check's rule was fixed, by the same author",
}


def load(root: Path) -> tuple[Part, ...]:
    """Loads all parts whose folder is there; the development part must be.

    Raises:
        BrokenData: A line is no case, a question is there twice, or an id or a question is in both parts.
        InputError: The development part has no case of the kind that is planted.
    """
    parts = tuple(
        Part(purpose=purpose, cases=tuple(_cases(root / folder / FILE)))
        for folder, purpose in PARTS.items()
        if purpose is Purpose.DEVELOPMENT or (root / folder).exists()
    )
    require_apart(root, (FILE,), "question")
    if all(case.kind is not PLANTED for case in parts[0].cases):
        raise InputError(
            f"{root / next(iter(PARTS)) / FILE} has no case of the kind {PLANTED}", f"add one, see {GUIDE}"
        )
    return parts


def _cases(path: Path) -> Iterator[Case]:
    seen: dict[str, int] = {}
    for line, case in labelled_lines(path, Case, GUIDE):
        first = seen.setdefault(case.question, line)
        if first != line:
            raise BrokenData(path, line, f"the question {case.question} is in line {first}, too", "remove one of them")
        yield case
