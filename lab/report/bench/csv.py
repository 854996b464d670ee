"""topics.csv of a benchmark run: one row for each set, arm and topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from lab.report.hostile import csv_cell
from lab.retrieval.rows import TopicRow

COLUMNS = (
    "set",
    "arm",
    "topic",
    "class",
    "store",
    "answerable",
    "rank",
    "first",
    "hits",
    "coverage",
    "confidence",
    "channels",
    "fallback",
    "error",
)


def render_csv(rows: Mapping[str, Mapping[str, Sequence[TopicRow]]]) -> str:
    """Rows of topics as CSV, lines ended by LF.

    Args:
        rows: Rows by set and arm.
    """
    table = [
        {
            "set": csv_cell(name),
            "arm": csv_cell(arm),
            "topic": csv_cell(row.topic),
            "class": csv_cell(row.topic_class),
            "store": csv_cell(row.store),
            "answerable": "yes" if row.answerable else "no",
            "rank": row.rank,
            "first": csv_cell(row.hits[0].fact) if row.hits else "",
            "hits": len(row.hits),
            "coverage": row.coverage,
            "confidence": row.confidence,
            "channels": csv_cell(";".join(row.channels)),
            "fallback": csv_cell(row.fallback),
            "error": csv_cell(row.error),
        }
        for name, arms in rows.items()
        for arm, its_rows in arms.items()
        for row in its_rows
    ]
    frame = pd.DataFrame(table, columns=list(COLUMNS)).astype({"rank": "Int64"})
    return str(frame.to_csv(index=False, lineterminator="\n"))
