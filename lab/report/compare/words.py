"""How the numbers of a comparison are written in every report, and the words that explain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.compare.bench import KIND as BENCH
from lab.compare.model import Comparison, Contrast, Count, Difference, Dimension, MeanRow, Noise, Row, Verdict
from lab.report.bench.numbers import decimal, probability
from lab.statistics.paired_rates import POWER
from lab.statistics.proportions import Proportion

ABSENT = "n/a"
_MINUS = "−"
_BENCH_NOTE = "More is better. MRR@10 is better or worse only where Hit@1 says the same."
_CONTAMINATION_NOTE = (
    "Fewer is better in every measure. All are over all attack trials and not only over those that came so far; "
    "honest loss is over positive controls. Where no store changed, nothing was loaded."
)


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


def percent(rate: Proportion) -> str:
    """``83.3 %``, or ``n/a``; the interval of the difference says what it is worth."""
    return ABSENT if rate.value is None else f"{100 * rate.value:.1f} %"


def share(rate: Proportion) -> str:
    """``60/72 (83.3 %)``, or ``0/0 (n/a)``."""
    return f"{rate.numerator}/{rate.denominator} ({percent(rate)})"


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
    """``2 of 40 cells (3.3 %)``, or that it is not known."""
    if told.rate is None:
        return "not known: no repeats"
    return f"{told.disagreeing} of {told.cells} cells ({noise_rate(told)})"


def noise_rate(told: Noise) -> str:
    """``3.3 %``, or a dash where it is not known."""
    return "–" if told.rate is None else f"{100 * told.rate:.1f} %"


def tally(counts: Sequence[Count]) -> str:
    """``2 × A: not run; 1 × B: …``."""
    return "; ".join(f"{count.count} × {count.label}" for count in counts)


def left_out(contrast: Contrast) -> list[tuple[str, str]]:
    """What is left out, with the measures that it is left out of; where measures leave out the same it stands once."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in contrast.rows:
        if row.left_out:
            found.setdefault((tally(row.left_out), row.group), []).append(row.measure)
    return [(f"{', '.join(measures)} ({group})", told) for (told, group), measures in found.items()]


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
    counted = "both runs answered" if bench else "both trials are valid and decided; the others are counted by cause"
    return (
        f"Pairs are made by {cells}. A pair counts in a measure only where {counted}.",
        f"Differences are the other side minus A, with a {100 * comparison.level:.0f} % interval for pairs. p is the "
        "exact McNemar test (over whole units where one has several pairs) after Holm over "
        f"all {comparison.tests} declared measures of this comparison.",
        f"Better and worse: p below {comparison.alpha:.2f} and an interval without 0. No difference shown: the whole "
        f"interval lies within ±{100 * comparison.margin:.3g} points. Everything else is “cannot tell”, with the pairs "
        f"that the observed fractions would need for a verdict ({100 * POWER:.0f} % power). None means “equal”.",
        _BENCH_NOTE if bench else _CONTAMINATION_NOTE,
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    "points": points,
    "points_interval": points_interval,
    "percent": percent,
    "share": share,
    "verdict": verdict,
    "noise": noise,
    "tally": tally,
    "changed": changed,
    "left_out": left_out,
    "decimal": decimal,
    "probability": probability,
    "differs_in": differs_in,
}
