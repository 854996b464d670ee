"""A long table as CSV: formulas neutralised, floats written so that they are read back the same."""

from __future__ import annotations

import csv
import io

from lab.report.exports.long_table import Cell, LongTable
from lab.report.exports.source import Files
from lab.report.hostile import csv_cell


def render_csv(table: LongTable) -> Files:
    """The table as CSV in UTF-8, lines ended by LF.

    Args:
        table: The table.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows([_cell(cell) for cell in row] for row in table.rows)
    return {f"{table.name}.csv": text.getvalue().encode()}


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return csv_cell(cell) if isinstance(cell, str) else repr(cell)
