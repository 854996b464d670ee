"""report.json: the whole report model, in plain ASCII so that a terminal that shows the file cannot be driven by it."""

from __future__ import annotations

import json

from lab.report.model import Report


def render_json(report: Report) -> str:
    """The report as JSON; the same evidence gives the same bytes apart from the ``run`` header.

    Args:
        report: The report model.
    """
    text = json.dumps(report.model_dump(mode="json"), ensure_ascii=True, indent=1)
    # DEL is the one control character that JSON does not escape by itself.
    return text.replace("\x7f", "\\u007f") + "\n"
