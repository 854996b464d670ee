"""How the numbers of a comparison are written in every report, and the words that explain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.compare.bench import KIND as BENCH
from lab.compare.model import Comparison, Contrast, Count, Dimension, Difference, MeanRow, Noise, Row, Verdict
from lab.report.bench.numbers import decimal, probability
from lab.statistics.proportions import Proportion

ABSENT = "n/a"
_MINUS = "−"


def points(value: float | None) -> str:
    """A difference of rates in percentage points: ``−83.3``, ``+0.4``, ``0``."""
    if value is None:
        return ABSENT
    shown = f"{abs(100 * value):.1f}"
    if shown == "0.0":
        return "0" if value == 0 else f"{_MINUS if value < 0 else '+'}<0.1"
    return f"{_MINUS if value < 0 else '+'}{shown}"


def points_interval(difference: Difference) -> str:
    """``[−90.1, −72.0]``, or empty where there is none."""
    if difference.low is None or difference.high is None:
        return ""
    return f"[{points(difference.low)}, {points(difference.high)}]"


def share(rate: Proportion) -> str:
    """``60/72 (83.3 %)``, or ``0/0 (n/a)``."""
    value = ABSENT if rate.value is None else f"{100 * rate.value:.1f} %"
    return f"{rate.numerator}/{rate.denominator} ({value})"


def verdict(row: Row | MeanRow) -> str:
    """The verdict, with what a "cannot tell" lacks."""
    if row.verdict is None:
        return "not tested"
    if row.verdict is not Verdict.CANNOT_TELL or not isinstance(row, Row):
        return str(row.verdict)
    if row.needed is None:
        return "cannot tell (no pair is decided on both sides)"
    needed = f"about {row.needed:,} pairs needed"
    if row.needed != row.needed_units:
        needed = f"about {row.needed:,} pairs of {row.needed_units:,} {row.unit} needed"
    return f"cannot tell (n = {row.n} too small; {needed})"


def noise(told: Noise) -> str:
    """``2 of 40 cells, 3.3 %``, or that it is not known."""
    if told.rate is None:
        return "not known: no repeats"
    return f"{told.disagreeing} of {told.cells} cells, {100 * told.rate:.1f} %"


def tally(counts: Sequence[Count]) -> str:
    """``2 × A: not run; 1 × B: …``."""
    return "; ".join(f"{count.count} × {count.label}" for count in counts)


def changed(row: Row) -> str:
    """Share of pairs that differ: what the noise of repeats is to be held against."""
    return f"{100 * (row.only_first + row.only_second) / row.n:.1f} %" if row.n else ABSENT


def title(comparison: Comparison) -> str:
    """What is compared with what."""
    others = comparison.sides[1:]
    base = comparison.contrasts[0].first.name
    if len(others) == 1:
        return f"{others[0].name} against {base}"
    return f"{len(others)} {comparison.contrasts[0].dimension}s against {base}"


def differs_in(contrast: Contrast) -> str:
    """One line on what differs between the sides."""
    if contrast.dimension is not Dimension.RUN:
        return f"The sides differ in the {contrast.dimension}."
    if contrast.compared:
        return "The runs differ in what is listed here."
    if contrast.remaining:
        return "What is common to both is compared."
    return "All inputs are the same: whatever differs is chance, or something that the locks do not hold."


def notes(comparison: Comparison) -> tuple[str, ...]:
    """What a reader must know to read the numbers."""
    bench = comparison.kind == BENCH
    cells = "topic and arm" if bench else "scenario, build, setup, model and repeat, without what is compared"
    margin = f"{100 * comparison.margin:.3g} points"
    return (
        f"Pairs are made by {cells}. A pair counts in a measure only where "
        + ("both runs answered." if bench else "both trials are valid and decided; the others are counted by cause."),
        f"Differences are B minus A in percentage points, with a {100 * comparison.level:.0f} % interval for pairs. p is the exact "
        f"McNemar test (over whole units where one has several pairs) after Holm over all {comparison.tests} declared measures "
        "of this comparison.",
        f"Better and worse: p below {comparison.alpha:.2f} and an interval without 0. No difference shown: the whole interval lies within "
        f"±{margin}. Everything else is “cannot tell”, with the pairs that the observed fractions would need for a verdict "
        "(80 % power). None of them means “equal”.",
        "MRR@10 is better or worse only where Hit@1 says the same."
        if bench
        else "Fewer is better in every measure. All of them are over all attack trials (honest loss: positive controls): "
        "what was not reached was not attempted, and what did not persist was not loaded.",
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    "points": points,
    "points_interval": points_interval,
    "share": share,
    "verdict": verdict,
    "noise": noise,
    "tally": tally,
    "changed": changed,
    "decimal": decimal,
    "probability": probability,
    "differs_in": differs_in,
}
