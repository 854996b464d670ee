"""Judges an answer: right, a part, of another time or matter, or missing; and on which axis the time is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from lab.memories.relations.claim import Claim
from lab.suites.supersession.data import Question


class Outcome(StrEnum):
    """What an answer is."""

    RIGHT = "right"
    """All that holds then and nothing else; where nothing does, silence."""
    PART = "part of the answer"
    """Nothing but what holds then, but not all of it: a contested matter that looks settled."""
    OTHER_TIME = "true at another time"
    """By what was known then it is believed, but it does not hold at the moment that is asked about."""
    OTHER_KNOWLEDGE = "known at another time"
    """It was not believed at the moment of knowledge: not yet, or no longer."""
    OTHER_MATTER = "another matter"
    """It is said of another subject, or another relation."""
    MISS = "miss"
    """Silence, although something holds."""

    @property
    def wrong_time(self) -> bool:
        """Whether the right matter was found at the wrong time."""
        return self in (Outcome.OTHER_TIME, Outcome.OTHER_KNOWLEDGE)


def believed(claims: Iterable[Claim], known: datetime) -> tuple[Claim, ...]:
    """Claims that are believed at a moment of knowledge, from the definition and without the graph."""
    there = [claim for claim in claims if claim.ingested_at <= known]
    replaced = {claim.supersedes for claim in there}
    return tuple(claim for claim in there if claim.id not in replaced)


def judge(question: Question, answer: Sequence[Claim], claims: Sequence[Claim]) -> Outcome:
    """What an answer is.

    Args:
        question: The question with its answers.
        answer: Claims that were given; none for silence.
        claims: All claims of the set.
    """
    if not answer:
        return Outcome.MISS if question.answers else Outcome.RIGHT
    if any((claim.subject, claim.kind) != (question.subject, question.kind) for claim in answer):
        return Outcome.OTHER_MATTER
    given = {claim.object for claim in answer}
    wrong = given - question.answers
    if not wrong:
        return Outcome.RIGHT if given == question.answers else Outcome.PART
    same = [claim for claim in claims if (claim.subject, claim.kind) == (question.subject, question.kind)]
    once = {claim.object for claim in believed(same, question.known)}
    return Outcome.OTHER_TIME if wrong & once else Outcome.OTHER_KNOWLEDGE
