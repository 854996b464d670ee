"""Records as JSON files in plain ASCII, so that a terminal that shows one cannot be driven by it."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from lab.records import Record
from lab.report.model import Report
from lab.report.trial_row import TrialRow

_ROW: TypeAdapter[TrialRow] = TypeAdapter(TrialRow)


def render_json(record: Record) -> str:
    """A report model or results as JSON; the same evidence gives the same bytes apart from a ``run`` header.

    Args:
        record: What to write.
    """
    return _ascii(record.model_dump(mode="json"), indent=1) + "\n"


def render_report(report: Report) -> str:
    """report.json: the same form, with the list of trials last and one trial a line.

    Args:
        report: The report model.
    """
    head = _ascii(report.model_dump(mode="json", exclude={"trials"}), indent=1).removesuffix("\n}")
    rows = ",\n".join(f"  {_ascii(_ROW.dump_python(row, mode='json'))}" for row in report.trials)
    return f'{head},\n "trials": [\n{rows}\n ]\n}}\n'


def _ascii(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=True, indent=indent)
    # DEL is the one control character that JSON does not escape by itself.
    return text.replace("\x7f", "\\u007f")
