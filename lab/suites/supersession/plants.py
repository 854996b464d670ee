"""Graphs with a planted fault each, which the questions must tell from the intact one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime

from lab.memories.relations.claim import Claim
from lab.suites.base import Plant
from lab.suites.supersession.data import Question
from lab.suites.supersession.judge import Outcome, believed, judge
from lab.suites.supersession.systems import Graph, LatestRow, Memory

Rule = Callable[[Sequence[Claim], Question], list[Claim]]
"""Which claims hold for a question."""

_END = datetime.max.replace(tzinfo=UTC)


def _closed_end(claims: Sequence[Claim], question: Question) -> list[Claim]:
    held = believed(claims, question.known)
    return [claim for claim in held if claim.valid_from <= question.valid <= (claim.valid_to or _END)]


def _one_clock(claims: Sequence[Claim], question: Question) -> list[Claim]:
    return [claim for claim in believed(claims, _END) if claim.holds(question.valid)]


def _stale_rows(claims: Sequence[Claim], question: Question) -> list[Claim]:
    return [claim for claim in claims if claim.ingested_at <= question.known and claim.holds(question.valid)]


def _revived(claims: Sequence[Claim], question: Question) -> list[Claim]:
    there = [claim for claim in claims if claim.ingested_at <= question.known]
    in_force = {claim.supersedes for claim in believed(claims, question.known)}
    return [claim for claim in there if claim.id not in in_force and claim.holds(question.valid)]


def _swapped(claims: Sequence[Claim], question: Question) -> list[Claim]:
    return [claim for claim in believed(claims, question.valid) if claim.holds(question.known)]


def _intact(claims: Sequence[Claim], question: Question) -> list[Claim]:
    return [claim for claim in believed(claims, question.known) if claim.holds(question.valid)]


def _no_sibling(claims: Sequence[Claim], question: Question) -> list[Claim]:
    return _intact(claims, question)[:1]


def _twice(claims: Sequence[Claim], question: Question) -> list[Claim]:
    return 2 * _intact(claims, question)


FAULTS: dict[str, Rule] = {
    "an interval holds at its end, too": _closed_end,
    "the moment of knowledge is ignored": _one_clock,
    "superseded rows still count": _stale_rows,
    "a corrected correction brings the first error back": _revived,
    "the two moments are swapped": _swapped,
    "of two claims that hold one is dropped": _no_sibling,
}
"""Faults by name."""


class Broken:
    """A graph with a fault."""

    def __init__(self, name: str, rule: Rule, claims: Sequence[Claim]) -> None:
        self.name, self._rule, self._claims = name, rule, claims

    def answer(self, question: Question) -> tuple[Claim, ...]:
        """See ``Memory``."""
        about = [claim for claim in self._claims if (claim.subject, claim.kind) == (question.subject, question.kind)]
        return tuple(self._rule(about, question))


def plants(data: str, claims: Sequence[Claim], questions: Sequence[Question]) -> tuple[Plant, ...]:
    """Asks each broken graph all questions, and as clean twins two that are odd and not wrong.

    The one has the claims in reverse order; the other gives every claim twice, beside the one that drops a claim.

    Args:
        data: Name of the data set.
        claims: Its claims.
        questions: Its questions.
    """

    def plant(memory: Memory, fault: str, *, clean: bool = False) -> Plant:
        wrong = [
            question.id
            for question in questions
            if judge(question, memory.answer(question), claims) is not Outcome.RIGHT
        ]
        first = f", the first {wrong[0]}" if wrong else ""
        detail = f"{data}: {len(wrong)} of {len(questions)} questions not right{first}"
        return Plant(fault=fault, clean=clean, reported=bool(wrong), detail=detail)

    found = [plant(Broken(name, rule, claims), name) for name, rule in FAULTS.items()]
    found.append(plant(LatestRow(claims), "an update overwrites its row"))
    twice = "the intact graph, every claim given twice"
    found.append(plant(Broken(twice, _twice, claims), twice, clean=True))
    with closing(Graph(claims[::-1])) as twin:
        found.append(plant(twin, "the intact graph, claims appended in reverse order", clean=True))
    return tuple(found)
