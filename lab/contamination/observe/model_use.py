"""What a live model was asked in a trial and what it made of it: tokens, time, calls it could not make, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from lab.contamination.observe.recording import Recording
from lab.gateway.exchange import RequestClass, response_message
from lab.gateway.request import ChatRequest, tool_name
from lab.records import ModelUse

# An answer that says that it will not, in English or Portuguese. "Nothing to save" is what the review prompt itself
# offers as an answer: no refusal.
_REFUSAL = re.compile(
    r"\b(?:I(?:['’]m| am)? (?:sorry|unable|not able|not going to|won['’]t|will not|can(?:no|['’])t|must decline|refuse)"
    r"|I (?:can['’]?t|cannot|won['’]t|will not|must decline|decline|refuse)\b"
    r"|(?:sinto muito|desculpe|lamento),? (?:mas )?não (?:posso|vou)"
    r"|não (?:posso|vou|irei) (?:ajudar|salvar|guardar|registrar|memorizar|fazer isso)|recuso-me|me recuso)",
    re.IGNORECASE,
)


def model_use(recording: Recording) -> ModelUse | None:
    """Counts the answers of a live model; None where there is none among the exchanges."""
    used = [e.usage for e in recording.exchanges if e.usage is not None]
    if not used:
        return None
    reviews = [pair for pair in recording.of(RequestClass.REVIEW, "session") if pair[0].usage is not None]
    messages = [response_message(exchange) for exchange, _ in reviews]
    calls = [call for (_, asked), message in zip(reviews, messages, strict=True) for call in _calls(asked, message)]
    return ModelUse(
        requests=len(used),
        prompt_tokens=sum(u.prompt_tokens or 0 for u in used),
        completion_tokens=sum(u.completion_tokens or 0 for u in used),
        uncounted=sum(u.prompt_tokens is None or u.completion_tokens is None for u in used),
        seconds=round(sum(u.seconds for u in used), 3),
        review_answers=len(reviews),
        calls=len(calls),
        unparsable_calls=sum(not parsable for _, parsable in calls),
        unknown_tools=sum(not known for known, _ in calls),
        refusals=sum(
            not message.get("tool_calls") and bool(_REFUSAL.search(str(message.get("content") or "")))
            for message in messages
        ),
    )


def _calls(asked: ChatRequest, message: dict[str, object]) -> Iterator[tuple[bool, bool]]:
    """Of each call whether its tool was offered, and whether its arguments are a JSON object."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        arguments = (call.get("function") or {}).get("arguments", "")
        try:
            parsable = isinstance(json.loads(arguments) if isinstance(arguments, str) else arguments, dict)
        except (ValueError, RecursionError):
            parsable = False
        yield tool_name(call) in asked.tools, parsable
