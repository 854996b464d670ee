"""A double of an OpenAI-compatible server, NOT a model: it answers by a rule, so that a test knows what must be found.

What comes from it must never be called the result of a model: its models are called ``double-…``. A behaviour decides
by the request alone; ``gullible`` writes down whatever line of the conversation has an address under ``example.test``,
``deaf`` writes nothing, and the behaviours of ``tests.doubles.hostile_model`` may stand in for either.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTEXT = 131_072
REVIEW = "Review the conversation above"

Sentence = re.compile(r"[^\n.!?]*\S+@?\S*example\.test[^\n]*")
Say = Callable[[dict[str, Any]], "dict[str, Any] | bytes | None"]
"""Gives the message of an answer, raw bytes in the place of one, or None to cut the connection."""


def words(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def memory_call(*arguments: str) -> dict[str, Any]:
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": "memory", "arguments": given}}
        for i, given in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def told(request: dict[str, Any]) -> str:
    """The first line of the conversation with an address under ``example.test``; empty where there is none."""
    for message in request["messages"]:
        text = message.get("content")
        if message["role"] in ("user", "tool") and isinstance(text, str) and (found := Sentence.search(text)):
            return found[0].strip()[:300]
    return ""


def add(content: str) -> str:
    return json.dumps({"action": "add", "target": "memory", "content": content})


def gullible(request: dict[str, Any]) -> dict[str, Any]:
    """Writes down what it was told, once."""
    line = told(request)
    done = request["messages"][-1]["role"] == "tool"
    return words("Saved.") if done or not line else memory_call(add(line))


def deaf(request: dict[str, Any]) -> dict[str, Any]:
    """Writes nothing."""
    return words("Nothing to save.")


def refusing(request: dict[str, Any]) -> dict[str, Any]:
    """Declines in words, where it is to review; calls what it is told to otherwise."""
    return words("I can't help with storing that.") if is_review(request) else gullible(request)


def is_review(request: dict[str, Any]) -> bool:
    last = [m for m in request["messages"] if m["role"] == "user"][-1]["content"]
    return isinstance(last, str) and last.startswith(REVIEW)


def obliging(say: Say) -> Say:
    """The same, but it makes the call that the lab's probe asks for."""

    def answer(request: dict[str, Any]) -> dict[str, Any] | bytes | None:
        tools = [tool["function"]["name"] for tool in request.get("tools") or []]
        if len(tools) != 1 or is_review(request):
            return say(request)
        function = {"name": tools[0], "arguments": json.dumps({"text": "double"})}
        call = {"id": "call_probe", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    return answer


@dataclass
class ChatDouble:
    """State of the double.

    Attributes:
        say: What it answers.
        url: Its address, with ``/v1``.
        requests: Bodies of the chat requests so far.
        headers: Authorization headers so far.
    """

    say: Say
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)


@contextmanager
def chat_double(say: Say) -> Iterator[ChatDouble]:
    """Serves ``double-chat`` on a free port until the block ends."""
    double = ChatDouble(say)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            entry = {"id": "double-chat", "object": "model", "owned_by": "tests", "max_model_len": CONTEXT}
            body = {"object": "list", "data": [entry]}
            self._send(200 if self.path == "/v1/models" else 404, json.dumps(body).encode(), "application/json")

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            double.requests.append(request)
            double.headers.append(self.headers.get("authorization", ""))
            said = double.say(request)
            if said is None:
                self.close_connection = True
                self.connection.close()
            elif isinstance(said, bytes):
                self.wfile.write(said)
                self.close_connection = True
            elif request.get("stream"):
                self._send(200, _stream(said, request), "text/event-stream")
            else:
                self._send(200, json.dumps(_whole(said, request)).encode(), "application/json")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    double.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _usage(request: dict[str, Any]) -> dict[str, int]:
    tokens = len(json.dumps(request["messages"])) // 4
    return {"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7}


def _whole(said: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if said.get("tool_calls") else "stop"
    choice = {"index": 0, "message": said, "finish_reason": reason}
    head = {"id": "x", "object": "chat.completion", "created": 0, "model": "double-chat"}
    return {**head, "choices": [choice], "usage": _usage(request)}


def _stream(said: dict[str, Any], request: dict[str, Any]) -> bytes:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "double-chat"}
    first: dict[str, Any] = {"role": "assistant", "content": said.get("content")}
    events: list[dict[str, Any]] = [first]
    for index, call in enumerate(said.get("tool_calls") or []):
        function = call["function"]
        events.append(
            {"tool_calls": [{"index": index, **call, "function": {"name": function["name"], "arguments": ""}}]}
        )
        middle = len(function["arguments"]) // 2
        for piece in (function["arguments"][:middle], function["arguments"][middle:]):
            events.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    reason = "tool_calls" if said.get("tool_calls") else "stop"
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in events]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**head, "choices": [], "usage": _usage(request)})
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"
