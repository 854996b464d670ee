"""Reads the errors of model servers: a context too small with the number needed, an unknown model, a refused key.

The wordings are those of llama.cpp, OpenAI, vLLM, SGLang and Ollama, which passes llama.cpp's on inside its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from lab.gateway.answers import Failure, FailureCause
from lab.text import printable

BYTES_PER_TOKEN = 4
"""Of the JSON of a request; a rule of thumb, and said to be one wherever it is used."""

_NESTED = 4
_LONGEST = 2000
"""Characters of a message that are read: what matters stands at its beginning."""

_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded")
_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length"
    r"|exceed\w{0,3} .{0,60}context window|context window .{0,60}exceed"
    r"|exceeds? the (?:available|model's)?\s*(?:maximum )?context|model's context length|exceeds? (?:the )?context",
    re.IGNORECASE,
)
# Of each message the first that fits; the tokens of the request before those of request and answer together.
_NEEDED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"request \((\d{1,12}) tokens\)",
        r"\((\d{1,12}) in the messages",
        r"(\d{1,12}) tokens from the input",
        r"you passed (\d{1,12}) input tokens",
        r"(?:has|contains) (?:at least )?(\d{1,12}) (?:input )?tokens",
        r"(?:resulted in|requested)(?: a total of)?(?: about| at least)? (\d{1,12}) (?:\w+ )?tokens",
        r"input \((\d{1,12}) tokens\)",
    )
)
_OFFERED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"context size \((\d{1,12}) tokens\)",
        r"maximum context length (?:is|of) (?:only )?(\d{1,12})",
        r"context length (?:is only|is|of) (\d{1,12})",
        r"context length \((\d{1,12})",
    )
)
_MISSING = re.compile(r"model.{0,200}(?:not found|does not exist|no such|unknown)|no such model", re.I | re.S)


@dataclass(frozen=True)
class _Told:
    message: str
    codes: frozenset[str]
    needed: int | None = None
    offered: int | None = None


def refusal(status: int, body: bytes, model: str, request_bytes: int) -> tuple[Failure, bool]:
    """Explains an answer with an error status.

    Args:
        status: HTTP status.
        body: Body of the answer; hostile.
        model: Name of the model that was asked for.
        request_bytes: Size of the request, for an estimate where the server tells no number.

    Returns:
        The failure, and whether it would be the same at any time.
    """
    told = _read(body.decode("utf-8", "replace"))
    shown = f"HTTP {status}: {printable(told.message)}" if told.message else f"HTTP {status}"
    if _is_context(told):
        return _context(told, request_bytes), True
    if status in (401, 403):
        return Failure(FailureCause.REFUSED_KEY, shown), True
    if _is_missing(status, told, model):
        return Failure(FailureCause.MISSING, shown), True
    if status in (404, 405):
        return Failure(FailureCause.HTTP_ERROR, f"{shown}; is the address that of the API, with its /v1?"), True
    if status == 429:
        return Failure(FailureCause.RATE_LIMITED, shown), "insufficient_quota" in told.codes
    return Failure(FailureCause.HTTP_ERROR, shown), False


def reported(error: object, model: str, request_bytes: int) -> Failure:
    """Explains an error that a server tells inside an answer that began well; arguments as above."""
    told = _of(error)
    if _is_context(told):
        return _context(told, request_bytes)
    if _is_missing(0, told, model):
        return Failure(FailureCause.MISSING, f"the server tells an error: {printable(told.message)}")
    return Failure(FailureCause.HTTP_ERROR, f"the server tells an error in its answer: {printable(told.message)}")


def _is_context(told: _Told) -> bool:
    return bool(told.codes & set(_CONTEXT_CODES)) or bool(_CONTEXT.search(told.message))


def _context(told: _Told, request_bytes: int) -> Failure:
    needed = told.needed if told.needed is not None else _number(_NEEDED, told.message)
    offered = told.offered if told.offered is not None else _number(_OFFERED, told.message)
    has = f"the context is {offered} tokens" if offered is not None else "the context is too small"
    if needed is None:
        wants = f"the request needs about {request_bytes // BYTES_PER_TOKEN} (an estimate from its size)"
    else:
        wants = f"the request needs {needed}"
    said = f"; the server says: {printable(told.message)}" if told.message else ""
    return Failure(FailureCause.CONTEXT, f"{has}, {wants}, and the answer as many more as it is long{said}")


def _is_missing(status: int, told: _Told, model: str) -> bool:
    if "model_not_found" in told.codes:
        return True
    return status in (0, 400, 404) and bool(_MISSING.search(told.message)) and model in told.message


def _number(patterns: tuple[re.Pattern[str], ...], message: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(message):
            return int(found[1])
    return None


def _read(text: str) -> _Told:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return _Told(text.strip()[:_LONGEST], frozenset())
    return _of(data)


def _of(data: object, depth: int = 0) -> _Told:
    """Reads the message out of the forms that servers give it, one inside the other."""
    if isinstance(data, str):
        inner = _parsed(data) if depth < _NESTED and data.lstrip().startswith("{") else None
        return _of(inner, depth + 1) if isinstance(inner, dict) else _Told(data.strip()[:_LONGEST], frozenset())
    if not isinstance(data, dict):
        return _Told(json.dumps(data)[:_LONGEST], frozenset())
    for key in ("error", "detail"):
        if data.get(key) and depth < _NESTED:
            return _of(data[key], depth + 1)
    message = data.get("message")
    codes = frozenset(str(data[key]) for key in ("code", "type") if isinstance(data.get(key), str))
    told = _of(message, depth + 1) if isinstance(message, str) and depth < _NESTED else _Told(_dumped(data), codes)
    return _Told(
        told.message,
        told.codes | codes,
        _count(data.get("n_prompt_tokens"), told.needed),
        _count(data.get("n_ctx"), told.offered),
    )


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(data: dict[str, Any]) -> str:
    return json.dumps(data)[:_LONGEST]


def _count(value: object, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
