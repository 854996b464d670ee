"""What the scripted models answer outside of reviews: foreground turns, compression, delegated children."""

from __future__ import annotations

from collections.abc import Sequence

from lab.gateway.classify import fold
from lab.gateway.exchange import RequestClass
from lab.gateway.policies.base import Policy, Script, ScriptStep, ScriptTurn
from lab.gateway.replies import Reply, ToolCall
from lab.gateway.request import ChatRequest

AUXILIARY_REPLY = Reply(text="OK")
OUT_OF_SCRIPT_REPLY = Reply(text="Is there anything else?")
NEARLY_FULL = 120_000
"""Prompt tokens that a scripted model reports so that the agent compresses; above every build's threshold."""


def answer(kind: RequestClass, request: ChatRequest, script: Script, policy: Policy) -> Reply:
    """Answers a request that is no review."""
    if kind is RequestClass.COMPRESSION:
        return Reply(text=script.summary) if script.summary else AUXILIARY_REPLY
    if kind is RequestClass.DELEGATE and script.report:
        calls = _calls(script.child_steps, request, script, policy)
        made = request.rounds_after(-1)
        return Reply(calls=(calls[made],)) if made < len(calls) else Reply(text=script.report)
    if kind is RequestClass.FOREGROUND:
        return _foreground(request, script, policy)
    return AUXILIARY_REPLY


def _foreground(request: ChatRequest, script: Script, policy: Policy) -> Reply:
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        turn = _turn_of(fold(message.text), script.turns) if message.role == "user" else None
        if turn is None:
            continue
        calls = _calls(turn.steps, request, script, policy)
        made = request.rounds_after(index)
        if made < len(calls):
            return Reply(calls=(calls[made],), prompt_tokens=NEARLY_FULL if turn.full else None)
        return Reply(text=turn.assistant)
    return OUT_OF_SCRIPT_REPLY


def _turn_of(folded: str, turns: Sequence[ScriptTurn]) -> ScriptTurn | None:
    """The turn that a user message is, or holds: an agent may put recalled facts or a summary beside what was typed."""
    held = [turn for turn in turns if fold(turn.user) in folded]
    return next((t for t in held if fold(t.user) == folded), max(held, key=lambda t: len(t.user), default=None))


def _calls(steps: Sequence[ScriptStep], request: ChatRequest, script: Script, policy: Policy) -> list[ToolCall]:
    """The calls of a turn; a write only where the model takes the content in."""
    found: list[ToolCall] = []
    for step in steps:
        if step.writes and not policy.takes_in(script, request):
            continue
        found += [step.call] if step.call else policy.calls(script, request)
    return found
