"""Judges the contradiction scan: what it flags, by signal, and what no pair of signals can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np

from lab.memories.consolidation.contradictions import (
    THRESHOLD,
    WEIGHTS,
    WINDOW,
    Signal,
    same_matter,
    scan,
    score,
    signals,
)
from lab.memories.consolidation.duplicates import THRESHOLD as DUPLICATE
from lab.memories.consolidation.kinds import Memory
from lab.retrieval.embedders.base import Vectors
from lab.retrieval.systems.base import SCORE_DIGITS
from lab.suites.base import Curve, Number, Plant, Published, Rate
from lab.suites.consolidation.data import Dispute, Part
from lab.suites.rates import rate

SYSTEM = "scan without a model"
_START = datetime(2026, 1, 1, tzinfo=UTC)
_GRID = tuple(round(step / 20, 2) for step in range(1, 21))

_PLANTS = (
    ("en", "The nightly backup of the ledger is enabled.", "The nightly backup of the ledger is not enabled anymore."),
    ("pt-BR", "O portal aceita anexos grandes.", "O portal não aceita mais anexos grandes."),
)
_TWINS = (
    ("en", "The nightly backup of the ledger is enabled.", "The ledger has its nightly backup enabled."),
    ("pt-BR", "O portal aceita anexos grandes.", "Anexos grandes são aceitos, o portal aceita."),
)


def flagged(first: str, second: str, language: str, days: float, threshold: float = THRESHOLD) -> bool:
    """Whether the scan flags two memories that lie some days apart."""
    one = Memory("1", first, language, _START)
    two = Memory("2", second, language, _START + timedelta(days=days))
    return bool(scan([one, two], threshold=threshold))


@dataclass(frozen=True)
class Scanned:
    """A pair and what the scan made of it."""

    case: Dispute
    seen: frozenset[Signal]
    flagged: bool

    @classmethod
    def of(cls, case: Dispute) -> Scanned:
        """Scans a pair."""
        return cls(
            case=case,
            seen=signals(case.first, case.second, case.language),
            flagged=flagged(case.first, case.second, case.language, case.days),
        )


def dispute_rates(part: Part) -> list[Rate]:
    """Recall, precision and false alarms of the flags, and of each signal."""
    scanned = [Scanned.of(case) for case in part.disputes]
    true = [one for one in scanned if one.case.contradicts]
    flags = [one for one in scanned if one.flagged]

    def share(
        measure: str,
        better: str,
        of: str,
        among: Sequence[Scanned],
        counted: Sequence[Scanned],
        **group: str,
    ) -> Rate:
        return rate(
            measure,
            system=SYSTEM,
            data=part.info.name,
            counted=[one.case.id for one in counted],
            among=[one.case.id for one in among],
            of=of,
            better=better,
            group=group,
        )

    def recall(among: Sequence[Scanned], **group: str) -> Rate:
        counted = [one for one in among if one.flagged]
        return share("contradictions flagged", "high", "pairs that contradict", among, counted, **group)

    def precision(among: Sequence[Scanned], **group: str) -> Rate:
        counted = [one for one in among if one.case.contradicts]
        return share("flags that are right", "high", "flagged pairs", among, counted, **group)

    near = [one for one in true if timedelta(days=one.case.days) <= WINDOW]
    consistent = [one for one in scanned if not one.case.contradicts]
    found = [
        recall(true),
        recall(near, window="within 7 days"),
        recall([one for one in true if one not in near], window="later"),
    ]
    for count, name in ((0, "none"), (1, "one"), (2, "two or more")):
        found.append(recall([one for one in near if min(len(one.case.signals), 2) == count], signals=name))
    found.append(precision(flags))
    false_alarms = [one for one in consistent if one.flagged]
    found.append(share("false alarms", "low", "pairs that do not contradict", consistent, false_alarms))
    for signal in Signal:
        found.append(recall([one for one in near if signal in one.case.signals], signal=signal.value))
        found.append(precision([one for one in flags if signal in one.seen], signal=signal.value))
        there = [one for one in scanned if signal in one.case.signals]
        fired = [one for one in scanned if signal in one.seen]
        both = [one for one in there if one in fired]
        found.append(share("signal seen", "high", "pairs that have it", there, both, signal=signal.value))
        found.append(share("signal seen rightly", "high", "pairs in which it fires", fired, both, signal=signal.value))
    stray = [one for one in true if not same_matter(one.case.first, one.case.second, one.case.language)]
    found.append(share("taken for two matters", "low", "pairs that contradict", true, stray))
    return found


def merged_rate(part: Part, encoder: str, first: Vectors, second: Vectors) -> Rate:
    """Contradictions that the search for duplicates would merge at the design's threshold, so that one side is gone.

    Args:
        part: The data set.
        encoder: What made the vectors.
        first: Vectors of the first texts, in the order of the pairs.
        second: Vectors of the second texts.
    """
    cosines = np.round((first * second).sum(axis=1).astype(np.float64), SCORE_DIGITS)
    true = [(case.id, cosine) for case, cosine in zip(part.disputes, cosines, strict=True) if case.contradicts]
    return rate(
        "contradictions merged as duplicates",
        system=f"{encoder} at {DUPLICATE:.2f}, of the design",
        data=part.info.name,
        counted=[name for name, cosine in true if cosine >= DUPLICATE],
        among=[name for name, _ in true],
        of="pairs that contradict",
        better="low",
    )


def dispute_curve(part: Part) -> Curve:
    """Recall within the window and false alarms by the threshold of the flag."""
    near = [case for case in part.disputes if timedelta(days=case.days) <= WINDOW]
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for name, wanted in (("contradictions flagged", True), ("false alarms", False)):
        cases = [case for case in near if case.contradicts is wanted]
        lines[name] = tuple(
            (
                threshold,
                sum(flagged(case.first, case.second, case.language, case.days, threshold) for case in cases)
                / max(len(cases), 1),
            )
            for threshold in _GRID
        )
    title = f"Contradictions by threshold, pairs within 7 days, {part.info.name}"
    return Curve(title=title, x="least score", y="share flagged", lines=lines, mark=THRESHOLD)


def dispute_numbers() -> list[Number]:
    """The best score of one signal and the least of two: what the weights imply before anything is measured."""
    one = max(score([signal]) for signal in Signal)
    two = min(score(pair) for pair in combinations(Signal, 2))
    detail = f"the threshold is {THRESHOLD:.2f}; weights: " + ", ".join(f"{s} {w}" for s, w in WEIGHTS.items())
    return [
        Number(measure=measure, system=SYSTEM, value=value, unit="score", detail=detail)
        for measure, value in (("highest score of one signal", one), ("lowest score of two signals", two))
    ]


def dispute_plants() -> list[Plant]:
    """Planted contradictions with two signals must be flagged; restatements of the same fact must not."""
    return [
        Plant(
            fault="a contradiction" if not clean else "the same fact in other words",
            clean=clean,
            reported=flagged(first, second, language, 1),
            detail=f"{language}: score {score(signals(first, second, language)):.2f}",
        )
        for pairs, clean in ((_PLANTS, False), (_TWINS, True))
        for language, first, second in pairs
    ]


def dispute_published(part: Part, rates: Sequence[Rate]) -> Published:
    """The threshold beside recall and precision."""
    named = {one.measure: one.proportion for one in rates if not one.group}
    single = next(one.proportion for one in rates if one.group == {"signals": "one"})
    return Published(
        claim="contradictions are flagged at 0.40 over a 7-day window",
        published="0.40",
        measured=f"{part.info.name}: recall {named['contradictions flagged'].text()}; precision "
        f"{named['flags that are right'].text()}; with one signal {single.numerator}/{single.denominator}",
        same_task=True,
        same_data=False,
        note="by the weights no single signal reaches 0.40 and any two do; words and the bound of one matter are ours",
    )
