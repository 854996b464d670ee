"""Reads answers of OpenAI's chat-completions form: whether they are of it, how they end, and what else they tell."""

from __future__ import annotations

import json
from typing import Any

from lab.gateway.answers import FailureCause
from lab.gateway.upstream.refusals import reported
from lab.gateway.upstream.wire import Call, Told, Unanswered
from lab.text import printable

_SHOWN = 80


def parsed(text: str | bytes, what: str) -> dict[str, Any]:
    """Parses a JSON object of a server.

    Args:
        text: What it sent.
        what: What it is, for the message.

    Raises:
        Unanswered: It is none.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # ValueError: no JSON, no UTF-8, or an integer of thousands of digits
        shown = text[: _SHOWN * 4]
        shown = shown if isinstance(shown, str) else shown.decode("utf-8", "replace")
        raise Unanswered(FailureCause.GARBAGE, f"{what} is no JSON: {printable(shown, _SHOWN)!r}") from None
    if not isinstance(data, dict):
        raise Unanswered(FailureCause.GARBAGE, f"{what} is no JSON object but of type {type(data).__name__}")
    return data


def no_error(data: dict[str, Any], call: Call) -> dict[str, Any]:
    """Gives an object back that tells no error.

    Raises:
        Unanswered: It tells one.
    """
    if data.get("error"):
        failure = reported(data["error"], call.endpoint.model, len(call.body))
        raise Unanswered(failure.cause, failure.detail)
    return data


def choice_of(data: dict[str, Any], part: str) -> dict[str, Any] | None:
    """The first choice of an answer or of an event, with its message or delta checked.

    The arguments of a call are the model's own and may be anything: they are not looked at.

    Args:
        data: The answer or the event.
        part: ``message`` or ``delta``.

    Returns:
        The choice; None where there is none, as in an event that only tells the usage.

    Raises:
        Unanswered: It is not of the form that the protocol says.
    """
    choices = data.get("choices")
    if choices is None or choices == []:
        return None
    first = choices[0] if isinstance(choices, list) else None
    message = first.get(part) if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict | None) or not _is_message(message or {}):
        raise Unanswered(FailureCause.GARBAGE, f"a choice of the answer has no {part} as the protocol has it")
    return first


def _is_message(message: dict[str, Any]) -> bool:
    calls = message.get("tool_calls")
    if not isinstance(message.get("content"), str | None) or not isinstance(calls, list | None):
        return False
    return all(isinstance(call, dict) and isinstance(call.get("function"), dict | None) for call in calls or [])


def note(told: Told, data: dict[str, Any], choice: dict[str, Any] | None) -> None:
    """Notes what an answer or an event tells of itself."""
    usage = data.get("usage")
    if isinstance(usage, dict):
        told.prompt_tokens = count(usage.get("prompt_tokens"), told.prompt_tokens)
        told.completion_tokens = count(usage.get("completion_tokens"), told.completion_tokens)
        details = usage.get("prompt_tokens_details")
        cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
        # They are part of the count by the protocol, but not of every server's: then it is smaller than they are.
        if cached is not None and cached > (told.prompt_tokens or 0):
            told.uncounted = cached
    for name in ("model", "system_fingerprint", "service_tier"):
        if isinstance(data.get(name), str) and data[name]:
            told.values[name] = data[name]
    if choice and isinstance(choice.get("finish_reason"), str):
        told.values["finish_reason"] = choice["finish_reason"]
    verbose = data.get("__verbose")
    settings = verbose.get("generation_settings") if isinstance(verbose, dict) else None
    for name, value in (("timings", data.get("timings")), ("generation_settings", settings)):
        if isinstance(value, dict):
            told.values[name] = json.dumps(value)


def count(value: object, otherwise: int | None = None) -> int | None:
    """A number of tokens; what is none is left out."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
