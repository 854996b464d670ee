"""Between OpenAI's chat completions and Ollama's own chat: requests one way, answers the other.

Protocol: Ollama's ``docs/openapi.yaml`` (``ChatRequest``, ``ChatResponse``, ``ChatStreamEvent``, ``ModelOptions``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lab.gateway.answers import FailureCause
from lab.gateway.upstream.wire import Unanswered
from lab.models.identity import Sampling
from lab.models.ollama import sampling_options

_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "max_tokens": "num_predict",
    "max_completion_tokens": "num_predict",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "stop": "stop",
}
"""Options of a chat-completions request and what they are called in Ollama's ``options``."""

_KNOWN = {*_OPTIONS, "model", "messages", "tools", "stream", "stream_options", "response_format", "n", "user"}
_ROLES = {"developer": "system", "function": "tool"}


def request_of(body: dict[str, Any], model: str, sampling: Sampling, seed: int | None) -> dict[str, Any]:
    """Translates a request.

    Args:
        body: The agent's.
        model: Name of the model in Ollama.
        sampling: Options in place of the agent's.
        seed: Seed of the trial.
    """
    names = {str(call.get("id")): _function(call).get("name") for call in _calls_of(body["messages"])}
    asked: dict[str, Any] = {
        "model": model,
        "messages": [_message(message, names) for message in body["messages"]],
        "stream": bool(body.get("stream", False)),
        "options": _options(body, sampling, seed),
        # What does not fit is to be an error: neither may the request be cut, nor its beginning while the answer grows.
        "truncate": False,
        "shift": False,
    }
    if body.get("tools") and body.get("tool_choice") != "none":
        asked["tools"] = body["tools"]
    if (wanted := _format(body.get("response_format"))) is not None:
        asked["format"] = wanted
    return asked


def unknown_to_ollama(body: dict[str, Any]) -> str:
    """Names of what a request asks for and Ollama has no word for; it is left out, and said to be."""
    left = {name for name, value in body.items() if name not in _KNOWN and value is not None}
    if body.get("tool_choice") in ("auto", "none"):
        left.discard("tool_choice")
    return ", ".join(sorted(left))


def _options(body: dict[str, Any], sampling: Sampling, seed: int | None) -> dict[str, Any]:
    agents = {theirs: body[ours] for ours, theirs in _OPTIONS.items() if body.get(ours) is not None}
    return agents | sampling_options(sampling) | ({} if seed is None else {"seed": seed})


def _format(wanted: object) -> object:
    if not isinstance(wanted, dict):
        return None
    if wanted.get("type") == "json_object":
        return "json"
    schema = wanted.get("json_schema")
    return schema.get("schema") if wanted.get("type") == "json_schema" and isinstance(schema, dict) else None


def _message(message: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    role = _ROLES.get(message["role"], message["role"])
    text, images = _content(message.get("content"))
    translated: dict[str, Any] = {"role": role, "content": text}
    if images:
        translated["images"] = images
    thinking = message.get("reasoning") or message.get("reasoning_content")
    if isinstance(thinking, str):
        translated["thinking"] = thinking
    if calls := _calls_of([message]):
        translated["tool_calls"] = [
            {"id": call.get("id"), "function": {"name": f.get("name"), "arguments": _arguments(f.get("arguments"))}}
            for call in calls
            for f in (_function(call),)
        ]
    if role == "tool":
        answered = str(message.get("tool_call_id") or "")
        translated["tool_call_id"] = answered
        translated["tool_name"] = str(message.get("name") or names.get(answered) or "")
    return translated


def _content(content: object) -> tuple[str, list[str]]:
    """Text and images of a message; an image has to be in the request itself, Ollama fetches none."""
    if isinstance(content, str):
        return content, []
    texts, images = [], []
    for part in content if isinstance(content, list) else []:
        if not isinstance(part, dict):
            continue
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else None
        if isinstance(url, str) and url.startswith("data:"):
            images.append(url.partition(",")[2])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "\n".join(texts), images


def _calls_of(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls") or [] if isinstance(call, dict)]


def _function(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _arguments(arguments: object) -> dict[str, Any]:
    """The arguments of an earlier call as an object; what is none stands in one as it is, for Ollama takes no other."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


class Calls:
    """The tool calls of one answer, with ids that depend on nothing but the request and their place.

    Args:
        messages: How many messages the request has.
    """

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self.count = 0

    def of(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Translates the calls of a message or of a piece of one.

        Raises:
            Unanswered: They are not of the form that the protocol says.
        """
        found = message.get("tool_calls") or []
        if not isinstance(found, list) or not all(
            isinstance(call, dict) and isinstance(_function(call).get("name"), str) for call in found
        ):
            raise Unanswered(FailureCause.GARBAGE, "the calls of the answer are not as the protocol has them")
        calls = []
        for call in found:
            arguments = _function(call).get("arguments", {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            calls.append(
                {
                    "id": f"call_lab_{self._messages}_{self.count}",
                    "type": "function",
                    "function": {"name": call["function"]["name"], "arguments": text},
                }
            )
            self.count += 1
        return calls


def finish_reason(done_reason: object, calls: int) -> str:
    """Why an answer ended, in OpenAI's words."""
    if calls:
        return "tool_calls"
    return "length" if done_reason == "length" else "stop"
