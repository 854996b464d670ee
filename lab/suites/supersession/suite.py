"""Runs the suite: every memory is asked every question, and wrong times are counted apart from misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from lab.errors import SystemFailed
from lab.memories.relations.claim import Claim
from lab.suites.base import Plant, Rate, SuiteContext, SuiteResult
from lab.suites.rates import rate
from lab.suites.supersession.data import Aspect, Question, Worlds, load
from lab.suites.supersession.judge import Outcome, judge
from lab.suites.supersession.plants import plants
from lab.suites.supersession.systems import DEPTH, Graph, LatestRow, Memory, Text, TextThenGraph

NAME = "supersession"
TITLE = "Time and supersession"
QUESTION = "Does a memory tell what was true then, by what was known then, and keep silent where nothing was?"

NOTES = (
    "The graph and the latest-row store are asked with subject, kind and both moments: finding these in a question's "
    "words is not tested. BM25 gets the words alone. The graph's figures say that it keeps its definition, no more.",
    "A wrong time is an answer on the right matter that does not hold then; worse than a miss, for it looks right.",
    "A text search is right with any row on the matter whose object is right, though the row may be an old one.",
    "Where two claims hold only both are right; one of them is a part. A memory that gives one row never gives both.",
    "Questions of one world share statements: intervals are over worlds.",
    "The hold-out was written after the code was done, by the same author; nothing was chosen on it.",
)


@dataclass(frozen=True)
class Asked:
    """A question, what a memory answered, and what that is."""

    question: Question
    answer: tuple[Claim, ...]
    outcome: Outcome


def run(context: SuiteContext) -> SuiteResult:
    """Runs it; see ``lab.suites.base.Suite``."""
    parts = load(context.data / NAME)
    total = sum(len(part.questions) for part in parts)
    done, rates, planted = 0, list[Rate](), list[Plant]()
    errors = Counter[str]()
    for part in parts:
        claims = [statement.claim() for statement in part.statements]
        folder = context.work / part.info.name
        folder.mkdir()
        with closing(Graph(claims)) as graph, closing(Text(part.statements, folder)) as text:
            memories: list[Memory] = [graph, LatestRow(claims), text, TextThenGraph(text, graph.graph)]
            asked: dict[str, list[Asked]] = {memory.name: [] for memory in memories}
            for question in part.questions:
                for memory in memories:
                    try:
                        answer = memory.answer(question)
                    except SystemFailed as error:
                        errors[f"{memory.name}: {error.message}"] += 1
                    else:
                        asked[memory.name].append(Asked(question, answer, judge(question, answer, claims)))
                done += 1
                context.progress(done, total)
        for name, answered in asked.items():
            rates += _rates(name, part, answered)
        planted += plants(part.info.name, claims, part.questions)
    return SuiteResult(
        suite=NAME,
        title=TITLE,
        question=QUESTION,
        data=tuple(part.info for part in parts),
        rates=tuple(rates),
        plants=tuple(planted),
        errors=dict(errors),
        notes=NOTES,
        settings={"text search": "BM25 of FTS5, words as they are", "depth of the filtered search": DEPTH},
    )


def _rates(system: str, part: Worlds, asked: Sequence[Asked]) -> list[Rate]:
    """Shares of one memory on one data set; questions that ended in an error are in none."""
    worlds = {question.id: question.world for question in part.questions}

    def share(measure: str, better: str, of: str, below: Sequence[Asked], above: Sequence[Asked], **group: str) -> Rate:
        return rate(
            measure,
            system=system,
            data=part.info.name,
            counted=[one.question.id for one in above],
            among=[one.question.id for one in below],
            of=of,
            better=better,
            clusters=worlds,
            unit="worlds",
            group=group,
        )

    everything = "as-of questions"
    by_outcome = {outcome: [one for one in asked if one.outcome is outcome] for outcome in Outcome}
    answerable = [one for one in asked if one.question.answers]
    silent = [one for one in asked if not one.question.answers]
    contested = [one for one in asked if len(one.question.answers) > 1]
    found = [
        share("right", "high", everything, asked, by_outcome[Outcome.RIGHT]),
        share("wrong time", "low", everything, asked, [one for one in asked if one.outcome.wrong_time]),
        share("wrong time", "low", everything, asked, by_outcome[Outcome.OTHER_TIME], axis="valid"),
        share("wrong time", "low", everything, asked, by_outcome[Outcome.OTHER_KNOWLEDGE], axis="known"),
        share("another matter", "low", everything, asked, by_outcome[Outcome.OTHER_MATTER]),
        share("part of the answer", "low", "questions on which two claims hold", contested, by_outcome[Outcome.PART]),
        share("miss", "low", "questions with an answer", answerable, by_outcome[Outcome.MISS]),
        share(
            "answered although nothing holds",
            "low",
            "questions where nothing holds",
            silent,
            [one for one in silent if one.answer],
        ),
        share(
            "both sides shown",
            "high",
            "questions on which two claims hold",
            contested,
            [one for one in contested if {claim.object for claim in one.answer} == one.question.answers],
        ),
    ]
    for aspect in Aspect:
        below = [one for one in asked if one.question.aspect is aspect]
        above = [one for one in below if one.outcome is Outcome.RIGHT]
        found.append(share("right", "high", f"questions of the aspect {aspect}", below, above, aspect=aspect.value))
    return found
