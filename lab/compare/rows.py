"""Makes the rows of a comparison: paired tables, tests, Holm over all that was declared, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from lab.compare.model import Count, Difference, Noise, Row, Verdict
from lab.statistics.paired import holm, mcnemar_exact
from lab.statistics.paired_rates import design_effect, pairs_needed, score_interval
from lab.statistics.proportions import PLACES, Proportion, proportion

ALPHA = 0.05


@dataclass(frozen=True)
class Pair:
    """One measure of one pair, decided on both sides.

    Attributes:
        unit: Scenario or store in which pairs are nested.
        ids: Id of each side's trial or topic.
        first: Whether it counts on the first side.
        second: Whether it does on the second.
    """

    unit: str
    ids: tuple[str, str]
    first: bool
    second: bool


@dataclass(frozen=True)
class Table:
    """One measure of one contrast, before any test.

    Attributes:
        group: Model, or set and arm.
        measure: What is counted.
        of: What the pairs are, for the name of the denominator.
        pairs: The pairs in which it is decided.
        left_out: The others, by cause.
        noise: Of each side, where cells have repeats.
        fewer_is_better: Which way is better.
        declared: Whether it is tested.
        unit: What the units are, in the plural.
    """

    group: str
    measure: str
    of: str
    pairs: Sequence[Pair]
    left_out: Mapping[str, int] = field(default_factory=dict)
    noise: tuple[Noise, Noise] | None = None
    fewer_is_better: bool = True
    declared: bool = True
    unit: str = "scenarios"


def make_rows(tables: Sequence[Sequence[Table]], margin: float) -> tuple[int, list[tuple[Row, ...]]]:
    """Tests all declared tables of all contrasts that have a pair, together.

    The verdict's rule, fixed before any result: *better* or *worse* where the exact test after Holm over all declared
    tables is below .05 and the 95 % interval of the difference excludes 0; otherwise *no difference shown* where the
    whole interval lies within the margin; otherwise *cannot tell*.

    Args:
        tables: Tables by contrast.
        margin: Largest difference that is taken for none.

    Returns:
        Number of tests, and the rows by contrast.
    """
    tested = [_Tested(table) for contrast in tables for table in contrast]
    declared = [one for one in tested if one.table.declared and one.table.pairs]
    adjusted = dict(zip(map(id, declared), holm([one.p for one in declared]), strict=True))
    rows = iter([one.row(adjusted.get(id(one)), margin, len(declared)) for one in tested])
    return len(declared), [tuple(next(rows) for _ in contrast) for contrast in tables]


class _Tested:
    """A table with its test: what can be said before Holm, and the row that follows from it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.cells = Counter((pair.first, pair.second) for pair in table.pairs)
        self.lost, self.gained = self.cells[True, False], self.cells[False, True]
        self.net: Counter[str] = Counter({pair.unit: 0 for pair in table.pairs})
        for pair in table.pairs:
            self.net[pair.unit] += pair.second - pair.first
        # Pairs of one unit are not independent: each unit is one draw, which went up, down or nowhere. With one pair
        # a unit this is McNemar's test.
        self.p = mcnemar_exact(sum(net < 0 for net in self.net.values()), sum(net > 0 for net in self.net.values()))

    def row(self, p_holm: float | None, margin: float, tests: int) -> Row:
        table, n = self.table, len(self.table.pairs)
        effect = self._design_effect()
        difference = self._difference(effect)
        verdict = Verdict.CANNOT_TELL if table.declared else None
        if p_holm is not None:
            verdict = judge(difference, p_holm, margin, fewer_is_better=table.fewer_is_better)
        needed = needed_units = None
        if verdict is Verdict.CANNOT_TELL and n:
            alone = n / effect
            least = pairs_needed(self.gained / effect, self.lost / effect, alone, margin=margin, alpha=ALPHA / tests)
            needed_units = ceil(least * effect * len(self.net) / n - 1e-9)
            needed = ceil(least * effect - 1e-9)
        return Row(
            group=table.group,
            measure=table.measure,
            fewer_is_better=table.fewer_is_better,
            declared=table.declared,
            unit=table.unit,
            n=n,
            units=len(self.net),
            both=self.cells[True, True],
            only_first=self.lost,
            only_second=self.gained,
            neither=self.cells[False, False],
            first=self._rate(0),
            second=self._rate(1),
            p=None if p_holm is None else significant(self.p),
            p_holm=None if p_holm is None else significant(p_holm),
            difference=difference,
            design_effect=round(effect, PLACES),
            noise=table.noise,
            verdict=verdict,
            needed=needed,
            needed_units=needed_units,
            left_out=counts(table.left_out),
        )

    def _rate(self, side: int) -> Proportion:
        pairs = self.table.pairs
        return proportion(
            [pair.ids[side] for pair in pairs if (pair.second if side else pair.first)],
            [pair.ids[side] for pair in pairs],
            name=self.table.measure,
            of=f"{self.table.of}, decided on both sides",
            clusters={pair.ids[side]: pair.unit for pair in pairs},
            unit=self.table.unit,
        )

    def _design_effect(self) -> float:
        if not self.table.pairs:
            return 1.0
        changes = np.array([pair.second - pair.first for pair in self.table.pairs], dtype=np.float64)
        return design_effect(changes, [pair.unit for pair in self.table.pairs])

    def _difference(self, effect: float) -> Difference:
        n = len(self.table.pairs)
        if not n:
            return Difference()
        low, high = score_interval(self.gained / effect, self.lost / effect, n / effect)
        nested = len(self.net) < n
        return Difference(
            value=round((self.gained - self.lost) / n, PLACES),
            low=round(low, PLACES),
            high=round(high, PLACES),
            method=f"paired score interval{f', design effect {effect:.2f}' if nested else ''}",
        )


def judge(difference: Difference, p_holm: float, margin: float, *, fewer_is_better: bool) -> Verdict:
    """The verdict on the second side by the rule of ``make_rows``."""
    up, down = difference.low is not None and difference.low > 0, difference.high is not None and difference.high < 0
    if p_holm < ALPHA and (up or down):
        return Verdict.BETTER if down is fewer_is_better else Verdict.WORSE
    return Verdict.NONE_SHOWN if within(difference, margin) else Verdict.CANNOT_TELL


def within(difference: Difference, margin: float) -> bool:
    """Whether the whole interval of a difference lies within a margin."""
    return (
        difference.low is not None
        and difference.high is not None
        and -margin < difference.low <= difference.high < margin
    )


def significant(p: float) -> float:
    """A p-value without its last bits, which differ from platform to platform."""
    return float(f"{p:.9g}")


def counts(found: Mapping[str, int]) -> tuple[Count, ...]:
    """Counts by label, the commonest first."""
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Count(label=label, count=count) for label, count in ordered)


def noise_of(cells: Iterable[Sequence[bool]]) -> Noise:
    """How often repeats of a cell disagree.

    Args:
        cells: The decided verdicts of each cell's repeats.
    """
    several = [(sum(cell), len(cell)) for cell in cells if len(cell) > 1]
    asked = sum(n * (n - 1) // 2 for _, n in several)
    odd = sum(k * (n - k) for k, n in several)
    return Noise(
        cells=len(several),
        disagreeing=sum(0 < k < n for k, n in several),
        rate=round(odd / asked, PLACES) if asked else None,
    )
