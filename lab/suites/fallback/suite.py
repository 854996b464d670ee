"""The suite ``fallback``: is the archive asked when it must be, left alone otherwise, cited truly, and kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from lab.memories.hfea.evidence import THRESHOLD, WINDOW
from lab.memories.hfea.fallback import CITED, LINES, TOP, evidence_trigger
from lab.records import file_digest
from lab.suites.base import Curve, Number, Plant, Rate, SuiteContext, SuiteResult
from lab.suites.fallback.data import FACTS, SESSIONS, TOPICS, ZONE, World, load_world
from lab.suites.fallback.detectors import leak
from lab.suites.fallback.measure import numbers_of, rates_of
from lab.suites.fallback.plants import LEAK, PROMOTION, plants_of
from lab.suites.fallback.systems import (
    Asked,
    Point,
    always_trigger,
    ask_all,
    bm25_route,
    bm25_score,
    chosen,
    lexical_score,
    normal_route,
    score_trigger,
    sweep_evidence,
    sweep_scores,
)
from lab.suites.labelled import PARTS, require_apart

NAME = "fallback"
TITLE = "Last-resort archive: asked when needed, cited truly, kept apart"
QUESTION = (
    "Does the memory turn to its archive when, and only when, it lacks evidence, and does it say what it does not know?"
)

HFEA, LOW_SCORE, LOW_BM25, ALWAYS, NEVER = "hfea", "low-score", "low-score-bm25", "always", "never"


def run(context: SuiteContext) -> SuiteResult:
    """Runs it; see ``Suite``."""
    data = context.data / NAME
    require_apart(data, (SESSIONS, FACTS, TOPICS), "text")
    worlds = [load_world(data / name, context.work / name, purpose) for name, purpose in PARTS.items()]
    development = worlds[0]
    sweeps = {
        HFEA: sweep_evidence(development),
        LOW_SCORE: sweep_scores(development, normal_route, lexical_score),
        LOW_BM25: sweep_scores(development, bm25_route, bm25_score),
    }
    cuts = {name: chosen(points).setting for name, points in sweeps.items()}
    rates: list[Rate] = []
    numbers: list[Number] = []
    apart: list[Plant] = []
    rows_of: dict[str, list[Asked]] = {}
    done, total = 0, len(worlds) * 5
    for world in worlds:
        before = file_digest(world.database)
        for system, rows in _asked(world, cuts):
            rates += rates_of(system, rows, world)
            numbers += numbers_of(system, rows, world)
            if system == HFEA:
                rows_of[world.name] = rows
            done += 1
            context.progress(done, total)
        apart += _apart(world, before)
    stale = f"The development topics would now choose the threshold {cuts[HFEA]}, not {THRESHOLD}."
    return SuiteResult(
        suite=NAME,
        title=TITLE,
        question=QUESTION,
        data=tuple(world.info for world in worlds),
        rates=tuple(rates),
        numbers=tuple(numbers),
        plants=(*apart, *plants_of(development, rows_of[development.name])),
        curves=_curves(sweeps),
        notes=(*_NOTES, *([stale] if cuts[HFEA] != THRESHOLD else [])),
        settings={
            "threshold": THRESHOLD,
            "window": WINDOW,
            "facts looked at": TOP,
            "archive lines looked at": LINES,
            "most citations": CITED,
            "low-score cuts": {name: cuts[name] for name in (LOW_SCORE, LOW_BM25)},
            "zone": ZONE,
            "normal route": dict(normal_route().settings()),
            "snowballstemmer": version("snowballstemmer"),
        },
    )


_NOTES = (
    "The low-score triggers have the cut that is best for them on the development topics.",
    "A topic ended as labelled only if the first fact or citation is a labelled one.",
    "Both sets have topics in other words than their answer, or in the other language: a rule by words misses them.",
    "Whoever wrote the hold-out topics knew the rule, though not what it would make of them.",
)


def _asked(world: World, cuts: dict[str, float]) -> Iterator[tuple[str, list[Asked]]]:
    yield HFEA, ask_all(world, normal_route(), evidence_trigger())
    yield LOW_SCORE, ask_all(world, normal_route(), score_trigger(cuts[LOW_SCORE], lexical_score))
    yield LOW_BM25, ask_all(world, bm25_route(), score_trigger(cuts[LOW_BM25], bm25_score))
    yield ALWAYS, ask_all(world, normal_route(), always_trigger())
    yield NEVER, ask_all(world, normal_route(), evidence_trigger(), archive=False)


def _apart(world: World, before: str) -> Iterator[Plant]:
    """The clean cases of a set: after all systems were asked, the archive has left no trace in the normal memory."""
    fault = leak(world, normal_route)
    same = f"with the archive out of the way, all {len(world.topics)} normal rankings are the same"
    yield Plant(fault=f"{LEAK}: {world.name}", clean=True, reported=bool(fault), detail=fault or same)
    changed = file_digest(world.database) != before
    detail = "the normal memory was changed" if changed else "the normal memory is the same to the byte"
    yield Plant(fault=f"{PROMOTION}: {world.name}", clean=True, reported=changed, detail=detail)


def _curves(sweeps: dict[str, list[Point]]) -> tuple[Curve, ...]:
    trade = {
        name: tuple(sorted({(round(each.false, 4), round(each.needed, 4)) for each in points}))
        for name, points in sweeps.items()
    }
    points = sweeps[HFEA]
    total = max(each.right for each in points) or 1
    return (
        Curve(
            title="Needed against false fallback on the development topics, by trigger",
            x="false fallback (share of topics that a fact answers)",
            y="needed fallback (share of topics that only the archive answers)",
            lines=trade,
        ),
        Curve(
            title="Threshold of the evidence on the development topics",
            x="least share of content words",
            y="share",
            lines={
                "needed fallback": tuple((each.setting, round(each.needed, 4)) for each in points),
                "false fallback": tuple((each.setting, round(each.false, 4)) for each in points),
                "ended as labelled, relative to the best": tuple(
                    (each.setting, round(each.right / total, 4)) for each in points
                ),
            },
            mark=THRESHOLD,
        ),
    )
