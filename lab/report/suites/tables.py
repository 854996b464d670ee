"""Results of a suite as tables: a measure a table, systems down, data sets and groups across."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.statistics.proportions import Proportion
from lab.suites.base import Rate, SuiteResult


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        system: Whose rates they are.
        group: What they are split by, in words; empty for all cases.
        cells: A rate for each data set; None where there is none.
    """

    system: str
    group: str
    cells: tuple[Proportion | None, ...]


@dataclass(frozen=True)
class MeasureTable:
    """All rates of one measure.

    Attributes:
        measure: What is measured.
        better: ``high``, ``low`` or empty.
        data: Names of the data sets, across.
        whole: Rows over all cases.
        split: Rows by group.
    """

    measure: str
    better: str
    data: tuple[str, ...]
    whole: tuple[Row, ...]
    split: tuple[Row, ...]


def tables(result: SuiteResult) -> tuple[MeasureTable, ...]:
    """The rates of a suite by measure, in the order of the suite."""
    names = tuple(d.name for d in result.data)
    measures: dict[str, list[Rate]] = {}
    for rate in result.rates:
        measures.setdefault(rate.measure, []).append(rate)
    return tuple(
        MeasureTable(
            measure=measure,
            better=rates[0].better,
            data=(known := tuple(n for n in names if any(r.data == n for r in rates))),
            whole=tuple(_rows((r for r in rates if not r.group), known)),
            split=tuple(_rows((r for r in rates if r.group), known)),
        )
        for measure, rates in measures.items()
    )


def _rows(rates: Iterable[Rate], data: tuple[str, ...]) -> list[Row]:
    found: dict[tuple[str, str], dict[str, Proportion]] = {}
    for rate in rates:
        group = ", ".join(f"{name}: {value}" for name, value in rate.group.items())
        found.setdefault((rate.system, group), {})[rate.data] = rate.proportion
    return [Row(system, group, tuple(by_data.get(name) for name in data)) for (system, group), by_data in found.items()]
