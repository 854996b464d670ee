"""A parsed chat-completions request: messages as plain text, tools, stream flag."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Schemas = Mapping[str, Mapping[str, Any]]
"""Schemas of tools by the tools' names."""


class UnparsableRequest(ValueError):
    """The body is not a chat-completions request that the gateway understands."""


@dataclass(frozen=True)
class Message:
    """One message of a request.

    Attributes:
        role: ``system``, ``user``, ``assistant``, ``tool`` or what else the agent sent.
        text: Its text; of a list of parts, the text parts joined by newlines.
        name: Tool name where the agent gives one.
        tool_call_id: Id of the call that a tool message answers.
        tool_calls: Tool calls of an assistant message, as sent.
    """

    role: str
    text: str
    name: str = ""
    tool_call_id: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class ChatRequest:
    """A chat-completions request.

    Attributes:
        model: Requested model name.
        messages: All messages, in order.
        tools: Names of the offered tools, in order.
        stream: Whether a stream of events is wanted.
        schemas: The offered tools' schemas by name.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    stream: bool
    schemas: dict[str, dict[str, Any]]

    def rounds_after(self, index: int) -> int:
        """How many messages behind one hold tool calls: how often the model has called since."""
        return sum(bool(m.tool_calls) for m in self.messages[index + 1 :])

    def call_of(self, index: int) -> dict[str, Any] | None:
        """The call that a tool's message answers; None where the request does not hold it."""
        message = self.messages[index]
        for earlier in self.messages[:index]:
            for call in earlier.tool_calls:
                if message.tool_call_id and call.get("id") == message.tool_call_id:
                    return call
        return None

    def tool_of(self, index: int) -> str:
        """Name of the tool whose result a message is, by the call that it answers; empty where it is none."""
        call = self.call_of(index)
        if call is not None:
            return tool_name(call)
        message = self.messages[index]
        return message.name if message.role == "tool" else ""


def tool_name(call: dict[str, Any]) -> str:
    """Name of the tool that a call of an assistant message, or of an answer, is for."""
    function = call.get("function")
    return str(function.get("name", "")) if isinstance(function, dict) else ""


def parse_request(body: bytes) -> ChatRequest:
    """Parses a request body.

    Raises:
        UnparsableRequest: Not UTF-8 JSON, or not of the chat-completions form; the message says what.
    """
    try:
        data = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no JSON, or an integer of thousands of digits
        raise UnparsableRequest(f"the body is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        raise UnparsableRequest("the body has no list of messages")
    schemas = {}
    tools = data.get("tools") or []
    if not isinstance(tools, list):
        raise UnparsableRequest("the tools are not a list")
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise UnparsableRequest("a tool has no function name")
        schemas[function["name"]] = function
    return ChatRequest(
        model=str(data.get("model", "")),
        messages=tuple(_message(i, raw) for i, raw in enumerate(data["messages"])),
        tools=tuple(schemas),
        stream=bool(data.get("stream", False)),
        schemas=schemas,
    )


def _message(index: int, raw: Any) -> Message:
    if not isinstance(raw, dict) or not isinstance(raw.get("role"), str):
        raise UnparsableRequest(f"message {index} has no role")
    content = raw.get("content")
    if content is None:
        text = ""
    elif isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text = "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    else:
        raise UnparsableRequest(f"message {index} has content of type {type(content).__name__}")
    calls = raw.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(c, dict) for c in calls):
        raise UnparsableRequest(f"message {index} has malformed tool calls")
    return Message(
        role=raw["role"],
        text=text,
        name=str(raw.get("name") or ""),
        tool_call_id=str(raw.get("tool_call_id") or ""),
        tool_calls=tuple(calls),
    )
