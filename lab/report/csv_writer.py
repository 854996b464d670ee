"""trials.csv: one row a trial, for spreadsheets and data frames, with formula injection neutralised."""

from __future__ import annotations

import pandas as pd

from lab.records import Stage
from lab.report.hostile import csv_cell
from lab.report.model import Report
from lab.report.trial_model import TrialView


def _row(view: TrialView) -> dict[str, str | int]:
    verdicts = {s.stage: s for s in view.stages}
    row: dict[str, str | int] = {
        "trial": view.trial,
        "scenario": view.scenario,
        "family": view.family,
        "role": view.role.value,
        "hard": "yes" if view.hard else "no",
        "title": view.title,
        "build": view.build,
        "setup": view.setup,
        "model": view.model,
        "repeat": view.repeat,
        "carrier": view.carrier,
        "target": view.target,
        "action": view.action,
        "by": view.by,
        "status": view.status.value,
        "cause": view.cause,
        "detail": view.detail.text,
    }
    for stage in Stage:
        verdict = verdicts.get(stage)
        row[stage.value] = verdict.value.value if verdict else "error"
        row[f"{stage.value}_reason"] = verdict.reason if verdict else view.cause
    carrying = [a for a in view.attempts if a.carries]
    row["attempts_shown"] = len(view.attempts)
    row["carrying_shown"] = len(carrying)
    row["decisions"] = ";".join(sorted({a.decision.value for a in carrying}))
    row["stores"] = ";".join(s.store.value for s in view.stores if s.value.value == "yes")
    row["rule"] = view.rule.value if view.rule else ""
    row["provenance"] = view.provenance
    row["operator"] = view.settled.action if view.settled else ""
    row["persist_settled"] = view.settled.persist.value if view.settled else ""
    row["notice"] = view.notice.value
    row["reviews"] = view.reviews
    return row


def render_csv(report: Report) -> str:
    """All trials as CSV, lines ended by LF.

    Args:
        report: The report model.
    """
    rows = [_row(view) for view in report.trials]
    safe = [{k: csv_cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows]
    frame = pd.DataFrame(safe) if safe else pd.DataFrame(columns=["trial"])
    return str(frame.to_csv(index=False, lineterminator="\n"))
