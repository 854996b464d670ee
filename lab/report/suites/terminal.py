"""The summary of suites in the terminal."""

from __future__ import annotations

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
        for table in tables(suite):
            if table.whole:
                console.print(_table(table))
        for cause, count in suite.errors.items():
            console.print(f"in no rate: {count} cases, {safe(cause)}", soft_wrap=True)
        for note in suite.notes:
            console.print(f"· {safe(note, 400)}", soft_wrap=True)


def _table(found: MeasureTable) -> Table:
    better = {"high": ", the higher the better", "low": ", the lower the better"}.get(found.better, "")
    table = Table(title=f"{safe(found.measure)}{better}", title_justify="left")
    table.add_column("System")
    for name in found.data:
        table.add_column(safe(name))
    for row in found.whole:
        cells = [f"{c.numerator}/{c.denominator}  {c.percent}" if c else "–" for c in row.cells]
        table.add_row(safe(row.system), *[cell.replace("[", "\\[") for cell in cells])
    return table
