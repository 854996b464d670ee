"""Records as JSON files in plain ASCII, so that a terminal that shows one cannot be driven by it."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from lab.records import Record
from lab.report.model import Report

_PLAIN: TypeAdapter[Any] = TypeAdapter(Any)


def render_json(record: Record) -> str:
    """A report model or results as JSON; the same evidence gives the same bytes apart from a ``run`` header.

    Args:
        record: What to write.
    """
    return _ascii(record.model_dump(mode="json"), indent=1) + "\n"


def render_report(report: Report) -> str:
    """report.json: a part of the report a line, and of a list one entry a line, so that it can be read and searched.

    Args:
        report: The report model.
    """
    parts = []
    for name, value in report:
        if value is None:  # a part that this run does not have
            continue
        if isinstance(value, tuple):
            entries = ",\n".join(f"  {_ascii(_PLAIN.dump_python(entry, mode='json'))}" for entry in value)
            parts.append(f' "{name}": [\n{entries}\n ]')
        else:
            parts.append(f' "{name}": {_ascii(_PLAIN.dump_python(value, mode="json"))}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _ascii(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=True, indent=indent)
    # DEL is the one control character that JSON does not escape by itself.
    return text.replace("\x7f", "\\u007f")
