"""Records as JSON files in plain ASCII, so that a terminal that shows one cannot be driven by it."""

from __future__ import annotations

import json

from lab.records import Record


def render_json(record: Record) -> str:
    """A report model or results as JSON; the same evidence gives the same bytes apart from a ``run`` header.

    Args:
        record: What to write.
    """
    text = json.dumps(record.model_dump(mode="json"), ensure_ascii=True, indent=1)
    # DEL is the one control character that JSON does not escape by itself.
    return text.replace("\x7f", "\\u007f") + "\n"
