"""The trend in the terminal: a table for each number and family or set, a row for each series, the last runs beside."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.history.rows import HistoryRow
from lab.history.trend import Panel
from lab.report.terminal import safe


def print_trend(panels: Sequence[Panel], last: int, console: Console) -> None:
    """Prints the trend.

    Args:
        panels: What to print.
        last: How many runs to show.
        console: Where to.
    """
    for panel in panels:
        runs = sorted({(row.created, row.run) for series in panel.series for row in series.points})[-last:]
        table = Table(title=safe(panel.title), title_justify="left")
        table.add_column("Of", overflow="fold")
        for created, run in runs:
            table.add_column(f"{safe(created[:10])}\n{safe(run[-8:])}", no_wrap=True)
        for series in panel.series:
            points = {row.run: row for row in series.points}
            starts = {piece[0].run for piece in series.pieces()[1:]}
            table.add_row(safe(series.label), *[_cell(points.get(run), run in starts) for _, run in runs])
        console.print(table)
    console.print("[dim]k/n, value, 95 % interval; ≠: not comparable with what stands before it[/]")


def _cell(row: HistoryRow | None, begins_anew: bool) -> str:
    if row is None:
        return "–"
    counts = f"{row.numerator}/{row.n}" if row.numerator is not None else f"n={row.n}"
    if row.value is None:
        return f"{counts}\nn/a"
    value = f"{row.value:.3f}"
    told = f"[strike]{value}[/] VOID" if row.void else f"{'≠ ' if begins_anew else ''}{value}"
    interval = "" if row.low is None or row.high is None else f"\n\\[{row.low:.3f}, {row.high:.3f}]"
    return f"{counts}\n{told}{interval}"
