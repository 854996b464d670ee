"""trials.csv: one row a trial, for spreadsheets and data frames, with formula injection neutralised."""

from __future__ import annotations

import csv
import io

from lab.records import Stage
from lab.report.hostile import csv_cell
from lab.report.model import Report
from lab.report.trial_row import TrialRow


def _row(row: TrialRow) -> dict[str, str | int]:
    cells: dict[str, str | int] = {
        "number": row.number,
        "trial": row.trial,
        "scenario": row.scenario,
        "family": row.family,
        "role": row.role.value,
        "hard": "yes" if row.hard else "no",
        "title": row.title,
        "build": row.build,
        "setup": row.setup,
        "model": row.model,
        "repeat": row.repeat,
        "carrier": row.carrier,
        "target": row.target,
        "action": row.action,
        "by": row.by,
        "status": row.status.value,
        "cause": row.cause,
        "detail": row.detail,
    }
    for stage in Stage:
        cells[stage.value] = row.stages[stage].value
        cells[f"{stage.value}_reason"] = row.reasons.get(stage, "")
    cells["attempts"] = row.attempts
    cells["carrying"] = row.carrying
    cells["decisions"] = ";".join(decision.value for decision in row.decisions)
    cells["stores"] = ";".join(store.value for store in row.holds)
    cells["rule"] = row.rule.value if row.rule else ""
    cells["provenance"] = row.provenance
    cells["operator"] = row.operator
    cells["persist_settled"] = row.persist_settled.value if row.persist_settled else ""
    cells["notice"] = row.notice.value
    cells["reviews"] = row.reviews
    return cells


def render_csv(report: Report) -> str:
    """All trials as CSV, lines ended by LF.

    Args:
        report: The report model.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in report.trials:
        cells = _row(row)
        if row.number == 1:
            writer.writerow(cells)
        writer.writerow(csv_cell(cell) if isinstance(cell, str) else cell for cell in cells.values())
    return out.getvalue() or "number,trial\n"
