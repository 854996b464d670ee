"""The suite of contradicting sources: does anything flag the one stored copy that its sources outvote?"""

from __future__ import annotations

import sqlite3

from lab.memories.consolidation.contradictions import THRESHOLD, WEIGHTS, Signal
from lab.memories.universal.contradiction import SHARED
from lab.retrieval.testset import Purpose
from lab.suites.agreement.crosscheck import LEAST_SHARED, MAJORITY, MOST_SOURCES
from lab.suites.agreement.data import load
from lab.suites.agreement.judge import judge, rates
from lab.suites.agreement.plants import planted
from lab.suites.agreement.systems import DEPTH, Checker, CrossCheck, Retrieval, Scan, Universal
from lab.suites.base import Rate, SuiteContext, SuiteResult

NAME = "agreement"
TITLE = "Contradicting sources"
QUESTION = "Three sources agree and the stored copy is wrong: does anything flag it?"

_SINGLE = WEIGHTS[Signal.NUMERIC]
"""Threshold of the scan at which a number alone suffices: what the design's own would have to become."""

NOTES = (
    "A perfectly retrieved memory can still be a lying memory: 'fact at rank 1' says that the right memory was found, "
    "'at rank 1 and true' that it also says what its sources say.",
    "Every wrong copy has a clean twin, the same copy with the true value. Other copies are sound and may look wrong: "
    "the same value in another form, a neighbour with a near value, one source of three wrong, other numbers beside.",
    "Plain retrieval gives a ranking, which has no place for a doubt: it flags nothing by construction.",
    "The universal layer holds the sources beside the copies and often gives a source first, so more of what it "
    "retrieves is true. It takes another identifier for another thing, and so cannot flag one that was misheard.",
    f"The scan needs two signals by its threshold of {THRESHOLD}; at {_SINGLE} a number alone suffices.",
    "The cross-check looks at digits, dates, identifiers and names alone: an ordinary word that was misheard, and the "
    "value of a neighbour that the sources name as well, are beyond it.",
    "The hold-out was written after the cross-check's rule was fixed, by the same author; later edits "
    "bounded its cost on hostile text, and every rate stayed as it was. The texts are short and their questions share "
    "most of their words: retrieval is easy here on purpose.",
)


def run(context: SuiteContext) -> SuiteResult:
    """Runs it; see ``lab.suites.base.Suite``.

    Raises:
        InputError: A case is broken; file and line are named.
    """
    parts = load(context.data / NAME)
    notes = list(NOTES)
    if all(part.purpose is not Purpose.HOLD_OUT for part in parts):
        notes.append("There is no hold-out part: the cross-check is measured on what it was written on alone.")
    checkers: tuple[Checker, ...] = (
        Retrieval(),
        Universal(),
        Scan(),
        Scan(f"consolidation's scan at {_SINGLE}", _SINGLE),
        CrossCheck(),
    )
    found: list[Rate] = []
    for done, checker in enumerate(checkers):
        context.progress(done, len(checkers))
        for part in parts:
            judged = []
            for world, copies in (("faulty", part.faulty()), ("repaired", part.repaired())):
                folder = context.work / f"{done}-{part.purpose}-{world}"
                folder.mkdir()
                judged.append(judge(copies, checker.examine(copies, folder)))
            found += rates(part, checker.name, *judged, names=isinstance(checker, CrossCheck))
    context.progress(len(checkers), len(checkers))
    return SuiteResult(
        suite=NAME,
        title=TITLE,
        question=QUESTION,
        data=tuple(part.info() for part in parts),
        rates=tuple(found),
        plants=tuple(planted(parts[0], context.work)),
        notes=tuple(notes),
        settings={
            "cross-check": {"least shared": LEAST_SHARED, "most sources": MOST_SOURCES, "majority": MAJORITY},
            "universal layer": {"shared content words": SHARED, "hits": DEPTH},
            "scan": {"thresholds": [THRESHOLD, _SINGLE]},
            "sqlite": sqlite3.sqlite_version,
        },
    )
