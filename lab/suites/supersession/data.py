"""Labelled data of the suite: statements with both times, and questions as of two moments with their answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import model_validator

from lab.memories.relations.claim import Claim, Instant, Name
from lab.retrieval.data.lines import BrokenData
from lab.retrieval.testset import Purpose
from lab.suites.base import DataInfo
from lab.suites.labelled import PARTS, Labelled, Words, digest_of, labelled_lines, require_apart

GUIDE = "docs/time.md"
STATEMENTS, QUESTIONS = "statements.jsonl", "questions.jsonl"


class Aspect(StrEnum):
    """What a question probes."""

    CURRENT = "current"
    """What holds now; something older stands in the way."""
    PAST = "past"
    """What held at an earlier time, by what is known now."""
    BELIEVED = "believed"
    """What was believed at an earlier moment of knowledge about that moment."""
    TWO_CLOCKS = "two clocks"
    """What was believed at one moment about another: both axes differ from now and from each other."""
    DECISION = "superseded decision"
    """A decision that was taken back or replaced."""
    RETROACTIVE = "retroactive"
    """What became known later than it became true."""
    CORRECTED = "corrected"
    """An error, its correction, or the correction of a correction."""
    BOUNDARY = "boundary"
    """The very moment of a change, on one axis or the other."""
    NOTHING = "nothing holds"
    """A gap, a time before or after, or a claim that was taken back: silence is the answer."""
    CONTESTED = "contested"
    """Two claims hold at once: both are the answer."""


class Statement(Labelled):
    """A sentence as a memory would store it, with the claim that it makes.

    Attributes:
        id: Id of the claim.
        world: The small world that it belongs to; the unit of which intervals are made.
        language: ``en`` or ``pt-BR``.
        text: The sentence; unique in its set.
        subject: Of whom or what; the fields from here on are those of a claim.
        kind: Which relation.
        object: To whom or what.
        valid_from: When it begins to be true.
        valid_to: When it ceases to be true.
        ingested_at: When it became known.
        supersedes: Id of the statement whose place it takes.
    """

    world: Words
    language: str
    text: Words
    subject: Name
    kind: Name
    object: Name
    valid_from: Instant
    valid_to: Instant | None = None
    ingested_at: Instant
    supersedes: str | None = None

    @model_validator(mode="after")
    def _is_a_claim(self) -> Self:
        self.claim()
        return self

    def claim(self) -> Claim:
        """What it says."""
        return Claim.model_validate(self.model_dump(include=set(Claim.model_fields)))


class Question(Labelled):
    """A question as of two moments.

    Attributes:
        world: As for statements.
        language: As for statements.
        aspect: What it probes.
        text: The question with its times in words, as a text search gets it.
        subject: Whom or what it is about, as the graph is asked.
        kind: Which relation.
        valid: The moment that is asked about.
        known: The moment of knowledge.
        answers: Objects that hold then; empty where nothing does.
    """

    world: Words
    language: str
    aspect: Aspect
    text: Words
    subject: Name
    kind: Name
    valid: Instant
    known: Instant
    answers: frozenset[Name]


@dataclass(frozen=True)
class Worlds:
    """One data set.

    Attributes:
        info: Its name, digest and counts.
        statements: In the order of their file.
        questions: The same.
    """

    info: DataInfo
    statements: tuple[Statement, ...]
    questions: tuple[Question, ...]


def load(folder: Path) -> tuple[Worlds, ...]:
    """Reads the development part and the hold-out.

    Args:
        folder: ``scenarios/suites/supersession``.

    Raises:
        BrokenData: A file is missing or broken, or a line cannot be, or stands in both parts.
    """
    parts = tuple(_part(folder / part, part, purpose) for part, purpose in PARTS.items())
    require_apart(folder, (STATEMENTS, QUESTIONS), "text")
    return parts


def _part(folder: Path, part: str, purpose: Purpose) -> Worlds:
    statements = _statements(folder / STATEMENTS)
    questions = _questions(folder / QUESTIONS, statements)
    counts = {
        "worlds": len({question.world for question in questions}),
        "statements": len(statements),
        "questions": len(questions),
    }
    info = DataInfo(
        name=part,
        purpose=purpose,
        digest=digest_of(statements, questions),
        counts=counts,
        source="invented; written and labelled by hand by the authors of the suite",
    )
    return Worlds(info, statements, questions)


def _statements(path: Path) -> tuple[Statement, ...]:
    found = list(labelled_lines(path, Statement, GUIDE))
    ids = {statement.id: statement for _, statement in found}
    texts: set[str] = set()
    for line, statement in found:
        older = ids.get(statement.supersedes) if statement.supersedes else None
        if statement.supersedes and older is None:
            raise BrokenData(path, line, f"supersedes {statement.supersedes}, which there is not", "mend the id")
        if older and older.ingested_at >= statement.ingested_at:
            raise BrokenData(
                path, line, f"became known no later than {older.id}, which it supersedes", "mend the times"
            )
        if statement.text in texts:
            raise BrokenData(path, line, "the same text is there already", "word it differently")
        texts.add(statement.text)
    return tuple(statement for _, statement in found)


def _questions(path: Path, statements: tuple[Statement, ...]) -> tuple[Question, ...]:
    objects: dict[tuple[str, str, str], set[str]] = {}
    for statement in statements:
        objects.setdefault((statement.world, statement.subject, statement.kind), set()).add(statement.object)
    found = list(labelled_lines(path, Question, GUIDE))
    for line, question in found:
        there = objects.get((question.world, question.subject, question.kind))
        if there is None:
            raise BrokenData(path, line, "no statement of its world has its subject and kind", "mend the names")
        if unknown := sorted(question.answers - there):
            raise BrokenData(path, line, f"no statement has the answer {unknown[0]}", "mend the answer")
    return tuple(question for _, question in found)
