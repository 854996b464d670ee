"""Replies of a model, and their two forms on the wire: one JSON object, or a stream of server-sent events.

Protocol: the OpenAI chat-completions API. Ids and times are constants: the same request always gets the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from lab.gateway.request import ChatRequest


@dataclass(frozen=True)
class ToolCall:
    """A call the model makes.

    Attributes:
        name: Tool name.
        arguments: Its arguments.
        cut: Whether the serialised arguments break off in the middle, as a model's may.
    """

    name: str
    arguments: dict[str, Any]
    cut: bool = False

    def broken(self) -> ToolCall:
        """The same call with arguments that break off."""
        return replace(self, cut=True)

    @property
    def serialised(self) -> str:
        """The arguments as they go over the wire."""
        text = json.dumps(self.arguments)
        return text[:-2] if self.cut else text


@dataclass(frozen=True)
class Reply:
    """What the model says: text, or tool calls, or both.

    Attributes:
        text: Text.
        calls: Tool calls.
        prompt_tokens: Tokens of the prompt that the model reports; counted roughly by default.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int | None = None


def encode(reply: Reply, request: ChatRequest) -> tuple[str, bytes]:
    """Encodes a reply in the form that the request asks for.

    Returns:
        Content type and body.
    """
    finish = "tool_calls" if reply.calls else "stop"
    # Call ids must differ from call to call within one conversation, and must not depend on anything but the request.
    calls = [
        {
            "id": f"call_lab_{len(request.messages)}_{i}",
            "type": "function",
            "function": {"name": c.name, "arguments": c.serialised},
        }
        for i, c in enumerate(reply.calls)
    ]
    head = {"id": "chatcmpl-lab", "created": 0, "model": request.model}
    prompt = sum(len(m.text) for m in request.messages) // 4 if reply.prompt_tokens is None else reply.prompt_tokens
    completion = len(reply.text) // 4 + 1
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if not request.stream:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return "application/json", json.dumps(body).encode()
    delta: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if calls:
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    chunk = {**head, "object": "chat.completion.chunk"}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
    ]
    lines = [f"data: {json.dumps(e)}\n\n" for e in events]
    return "text/event-stream", ("".join(lines) + "data: [DONE]\n\n").encode()


def error_body(message: str) -> bytes:
    """The OpenAI form of an error answer."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()


def models_body(model: str, context_length: int) -> bytes:
    """The answer to ``GET /v1/models``."""
    entry = {"id": model, "object": "model", "created": 0, "owned_by": "agent-memory-lab"}
    return json.dumps({"object": "list", "data": [{**entry, "context_length": context_length}]}).encode()
