"""The assistant's message in an answer, streamed or not; made of whatever a server sent, and never an exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_MOST_CALLS = 1000


def events(text: str) -> Iterator[str]:
    """The data of each event of a stream, the closing ``[DONE]`` left out.

    Protocol: WHATWG HTML, server-sent events, for streams of events of one line, as all model servers send them.
    """
    for line in text.splitlines():
        if line.startswith("data:") and (data := line[5:].strip()) and data != "[DONE]":
            yield data


def message_of(text: str) -> dict[str, Any]:
    """The message of an answer; ``{}`` where there is none.

    A stream's deltas are joined as the OpenAI protocol says: contents are concatenated, tool calls are merged by
    ``index`` and their argument strings concatenated. What has another type than the protocol says is left out.
    """
    if not text.lstrip().startswith(("data:", ":", "event:", "id:", "retry:")):
        message = _choice(text).get("message")
        return _typed(message) if isinstance(message, dict) else {}
    content: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    for data in events(text):
        delta = _choice(data).get("delta")
        if not isinstance(delta, dict):
            continue
        content.append(_text(delta.get("content")))
        for part in _dicts(delta.get("tool_calls")):
            index = part.get("index", 0)
            if not isinstance(index, int) or len(calls) >= _MOST_CALLS:
                continue
            call = calls.setdefault(index, {"id": "", "function": {"name": "", "arguments": ""}})
            call["id"] = _text(part.get("id")) or call["id"]
            function = part.get("function")
            if isinstance(function, dict):
                call["function"]["name"] += _text(function.get("name"))
                call["function"]["arguments"] += _text(function.get("arguments"))
    return {"role": "assistant", "content": "".join(content), "tool_calls": [calls[i] for i in sorted(calls)]}


def _choice(text: str) -> dict[str, Any]:
    """The first choice of an answer or of an event."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    choices = data.get("choices") if isinstance(data, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _typed(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it was sent, but for what would be no message."""
    kept = dict(message)
    if not isinstance(kept.get("content"), str):
        kept["content"] = None
    if "tool_calls" in kept:
        kept["tool_calls"] = [
            call | {"function": call["function"] if isinstance(call.get("function"), dict) else {}}
            for call in _dicts(kept["tool_calls"])[:_MOST_CALLS]
        ]
    return kept


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: object) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
