"""The two conversations that a trial's page shows: what the user had, and what the reviewer was sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from lab.gateway.exchange import Exchange, RequestClass, response_message
from lab.gateway.request import ChatRequest, Message, UnparsableRequest, parse_request, tool_name
from lab.records import Stage, TrialResult
from lab.report.budget import Budget
from lab.report.trial_model import CallView, ConversationView, MessageView

_MAX_LINE = 16_000_000
_MAX_MESSAGES = 40
_MAX_CALLS = 4
_HELD, _INSTRUCTION, _OTHER = 6_000, 6_000, 1_500
"""Bytes of a message that holds the content, of the reviewer's instruction, of any other."""

_POINTER = re.compile(r"line (\d{1,9}) /request/messages/\d+")
_HEAD = re.compile(rb'\{"seq": ?(\d+), ?"phase": ?"session".{0,4000}?"kind": ?"(foreground|review)"', re.DOTALL)


def read_conversations(
    path: Path | None, result: TrialResult, budget: Budget
) -> tuple[ConversationView | None, ConversationView | None]:
    """The review request and the transcript of a trial.

    Args:
        path: ``requests.jsonl``; None where there is none.
        result: The trial's result, whose evidence names the request in which the content stood.
        budget: What the excerpts may take.

    Returns:
        The request in which the content stood before a reviewer, or else the first review request; and the
        conversation up to the foreground model's last answer. None where there is no such exchange.
    """
    if path is None:
        return None, None
    reached = [m for e in result.verdicts[Stage.REACH].evidence if (m := _POINTER.fullmatch(e.pointer))]
    review, foreground = _find(path, int(reached[0].group(1)) if reached else 0)
    return _request(review, budget), _transcript(foreground, budget)


def _find(path: Path, wanted: int) -> tuple[bytes, bytes]:
    """Lines of the review request and of the last foreground request; only these two are ever decoded."""
    review = foreground = b""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            kind = _HEAD.match(line)
            if number == wanted or (not wanted and not review and kind and kind.group(2) == b"review"):
                review = line
            elif kind and kind.group(2) == b"foreground":
                foreground = line
    return review, foreground


def _parsed(line: bytes) -> tuple[Exchange, ChatRequest]:
    if len(line) > _MAX_LINE:
        raise UnparsableRequest(f"the exchange has {len(line):,} bytes")
    exchange = Exchange.model_validate_json(line)
    return exchange, parse_request(exchange.request.data)


def _request(line: bytes, budget: Budget) -> ConversationView | None:
    if not line:
        return None
    try:
        exchange, request = _parsed(line)
    except (ValidationError, UnparsableRequest, ValueError) as error:
        return ConversationView(line=0, problem=str(error)[:200])
    instruction = max((n for n, m in enumerate(request.messages) if m.role == "user"), default=-1)
    return ConversationView(
        line=exchange.seq,
        messages=_views(request, range(len(request.messages)), budget, instruction),
        more=max(0, len(request.messages) - _MAX_MESSAGES),
        tools=tuple(name[:60] for name in request.tools[:60]),
    )


def _transcript(line: bytes, budget: Budget) -> ConversationView | None:
    if not line:
        return None
    try:
        exchange, request = _parsed(line)
    except (ValidationError, UnparsableRequest, ValueError) as error:
        return ConversationView(line=0, problem=str(error)[:200])
    said = [n for n, m in enumerate(request.messages) if m.role != "system"]
    views = _views(request, said, budget)
    answer = response_message(exchange)
    if exchange.kind is RequestClass.FOREGROUND and answer and len(said) <= _MAX_MESSAGES:
        calls = answer.get("tool_calls")
        last = Message(
            role="assistant",
            text=str(answer.get("content") or ""),
            tool_calls=tuple(c for c in calls if isinstance(c, dict)) if isinstance(calls, list) else (),
        )
        views = (*views, _view(len(request.messages), last, "", budget, _OTHER))
    return ConversationView(line=exchange.seq, messages=views, more=max(0, len(said) - _MAX_MESSAGES))


def _views(
    request: ChatRequest, numbers: Sequence[int], budget: Budget, instruction: int = -1
) -> tuple[MessageView, ...]:
    """Views of messages; those that hold the content and the instruction take from the budget first."""
    holding = {n for n in numbers if budget.holds(request.messages[n].text)}
    vital = [n for n in numbers if n == instruction or n in holding][:_MAX_MESSAGES]
    rest = [n for n in reversed(numbers) if n not in vital][: _MAX_MESSAGES - len(vital)]
    made = {}
    for number in (*vital, *sorted(rest)):
        most = _INSTRUCTION if number == instruction else _HELD if number in holding else _OTHER
        made[number] = _view(number, request.messages[number], request.tool_of(number), budget, most)
    return tuple(made[number] for number in sorted(made))


def _view(number: int, message: Message, tool: str, budget: Budget, most: int) -> MessageView:
    calls = []
    for call in message.tool_calls[:_MAX_CALLS]:
        function = call.get("function")
        arguments = function.get("arguments", "") if isinstance(function, dict) else ""
        calls.append(CallView(tool=tool_name(call)[:60], arguments=budget.take(str(arguments), _OTHER)))
    text = budget.take(message.text, most)
    return MessageView(
        number=number, role=message.role[:40], tool=tool[:60], text=text, calls=tuple(calls), holds=bool(text.marks)
    )
