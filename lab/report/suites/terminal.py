"""The summary of suites in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.report.suites.tables import MeasureTable, tables
from lab.report.terminal import safe
from lab.suites.registry import SuiteResults


def print_suites(results: SuiteResults, console: Console) -> None:
    """Prints every suite: whether it caught what was planted, its rates, what was left out."""
    for suite in results.suites:
        console.print(f"\n[bold]{safe(suite.title)}[/] — {safe(suite.question)}", soft_wrap=True)
        faults = [plant for plant in suite.plants if not plant.clean]
        clean = [plant for plant in suite.plants if plant.clean]
        told = (
            f"planted faults caught: {sum(p.reported for p in faults)} of {len(faults)}; "
            f"clean twins accused: {sum(p.reported for p in clean)} of {len(clean)}"
        )
        console.print(told if suite.sound else f"[red]{told}: these rates prove nothing[/]", soft_wrap=True)
        console.print(_table(tables(suite)))
        for cause, count in suite.errors.items():
            console.print(f"in no rate: {count} cases, {safe(cause)}", soft_wrap=True)
        for note in suite.notes:
            console.print(f"· {safe(note, 400)}", soft_wrap=True)


def _table(measures: Sequence[MeasureTable]) -> Table:
    """One line for each measure and system; what is split by group stands in the report."""
    data = list(dict.fromkeys(name for measure in measures for name in measure.data))
    table = Table()
    table.add_column("Measure")
    table.add_column("System")
    for name in data:
        table.add_column(safe(name))
    for measure in measures:
        better = {"high": " ↑", "low": " ↓"}.get(measure.better, "")
        for number, row in enumerate(measure.whole):
            by_data = dict(zip(measure.data, row.cells, strict=True))
            cells = [
                f"{c.numerator}/{c.denominator}  {c.percent}" if (c := by_data.get(name)) else "–" for name in data
            ]
            shown = safe(measure.measure) + better if number == 0 else ""
            table.add_row(shown, safe(row.system), *[cell.replace("[", "\\[") for cell in cells])
    return table
