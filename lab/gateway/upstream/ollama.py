"""Ollama by its own chat: its ``/v1`` ignores ``num_ctx`` and would cut what does not fit into a default context."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lab.gateway.ahead import EVENTS, JSON
from lab.gateway.answers import Answer, Asked, FailureCause, Send
from lab.gateway.upstream.chat import count, no_error, parsed
from lab.gateway.upstream.events import LINE_END, Splitter
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Endpoint
from lab.gateway.upstream.ollama_chat import Calls, finish_reason, request_of, unknown_to_ollama
from lab.gateway.upstream.truncation import Size, cut, refuses_to_cut
from lab.gateway.upstream.wire import Call, Told, Unanswered
from lab.models.identity import Sampling

_READ_BACK = ("model", "done_reason", "prompt_eval_cached_count", "total_duration", "load_duration", "eval_duration")


@dataclass(frozen=True)
class OllamaUpstream:
    """A model in Ollama.

    Attributes:
        endpoint: The model.
        lane: The lane to its server.
        sampling: Options in place of the agent's own.
        seed: Seed of the trial; None to send none.
        context: Context of the model as it is loaded, in tokens; None where it is not known.
        server: Product and version, as ``LiveModel`` has it; it decides whether a cut can be excluded.
    """

    endpoint: Endpoint
    lane: Lane
    sampling: Sampling = field(default_factory=Sampling)
    seed: int | None = None
    context: int | None = None
    server: str = ""

    async def answer(self, asked: Asked, send: Send) -> Answer:
        """See ``Answers``."""
        agents: dict[str, Any] = json.loads(asked.body)
        translated = request_of(agents, self.endpoint.model, self.sampling, self.seed)
        call = Call(self.endpoint, "/api/chat", json.dumps(translated).encode())
        contexts = [tokens for tokens in (self.context, self.sampling.num_ctx) if tokens is not None]
        checked = _Checked(
            size=Size.of(asked.request, call.body),
            context=min(contexts, default=None),
            certain=refuses_to_cut(self.server),
        )
        left_out = unknown_to_ollama(agents)

        def hearer() -> _Hearer:
            kind = _Stream if asked.request.stream else _Whole
            heard = kind(call, asked, checked, send)
            if left_out:
                heard.told.values["left_out"] = left_out
            return heard

        return await self.lane.ask(call, hearer)


@dataclass(frozen=True)
class _Checked:
    size: Size
    context: int | None
    certain: bool

    def check(self, told: Told) -> None:
        reason = cut(self.size, told.prompt_tokens, self.context, self.certain)
        if reason:
            raise Unanswered(FailureCause.CONTEXT, reason)


class _Hearer:
    """What the hearing of a stream and of a whole answer have in common."""

    content_type = JSON

    def __init__(self, call: Call, asked: Asked, checked: _Checked, send: Send) -> None:
        self._call = call
        self._request = asked.request
        self._checked = checked
        self._send = send
        self._calls = Calls(len(asked.request.messages))
        self.body = bytearray()
        self.told = Told()

    async def feed(self, piece: bytes) -> bool:
        raise NotImplementedError

    async def end(self) -> None:
        raise NotImplementedError

    def _message(self, text: bytes, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """An object of Ollama, and the message in OpenAI's form that it holds."""
        data = no_error(parsed(text, what), self._call)
        message = data.get("message", {})
        if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
            raise Unanswered(FailureCause.GARBAGE, f"{what} has no message as the protocol has it")
        translated: dict[str, Any] = {"role": "assistant", "content": message.get("content") or None}
        if isinstance(message.get("thinking"), str) and message["thinking"]:
            translated["reasoning"] = message["thinking"]
        if calls := self._calls.of(message):
            translated["tool_calls"] = calls
        return data, translated

    def _finish(self, data: dict[str, Any]) -> tuple[str, dict[str, int]]:
        """Why an answer ended and what it took; checks that the request was read whole."""
        self.told.prompt_tokens = count(data.get("prompt_eval_count"))
        self.told.completion_tokens = count(data.get("eval_count"))
        self.told.values |= {name: str(data[name]) for name in _READ_BACK if data.get(name) is not None}
        self._checked.check(self.told)
        prompt, completion = self.told.prompt_tokens or 0, self.told.completion_tokens or 0
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return finish_reason(data.get("done_reason"), self._calls.count), usage

    def _headed(self, kind: str, choices: list[dict[str, Any]], **more: object) -> bytes:
        # Id and time are constants, as in the answers of a script: what the agent gets depends on the model alone.
        head = {"id": "chatcmpl-lab", "object": kind, "created": 0, "model": self._request.model}
        return json.dumps({**head, "choices": choices, **more}).encode()


class _Whole(_Hearer):
    """Hears an answer of one JSON object."""

    def __init__(self, call: Call, asked: Asked, checked: _Checked, send: Send) -> None:
        super().__init__(call, asked, checked, send)
        self._heard = bytearray()

    async def feed(self, piece: bytes) -> bool:
        self._heard += piece
        return False

    async def end(self) -> None:
        data, message = self._message(bytes(self._heard), "the answer")
        if data.get("done") is not True:
            raise Unanswered(FailureCause.STREAM_CUT, "the answer is not marked as done")
        reason, usage = self._finish(data)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        self.body += self._headed("chat.completion", [choice], usage=usage)


class _Stream(_Hearer):
    """Hears a stream of lines and makes an event of each; the closing events are held back, as the protocol asks."""

    content_type = EVENTS

    def __init__(self, call: Call, asked: Asked, checked: _Checked, send: Send) -> None:
        super().__init__(call, asked, checked, send)
        self._lines = Splitter(LINE_END)
        self._heard = False

    async def feed(self, piece: bytes) -> bool:
        for line in self._lines.feed(piece):
            if line.strip() and await self._hear(line):
                return True
        return False

    async def end(self) -> None:
        rest = bytes(self._lines.rest)
        try:
            if rest.strip() and await self._hear(rest):
                return
        except Unanswered:
            if not self._heard:
                raise
        raise Unanswered(FailureCause.STREAM_CUT, "the stream ends before it is done")

    async def _hear(self, line: bytes) -> bool:
        before = self._calls.count
        data, delta = self._message(line, "a line of the stream")
        self._heard = True
        for place, call in enumerate(delta.get("tool_calls", []), before):
            call["index"] = place
        if any(delta[key] for key in delta if key != "role"):
            event = self._event([{"index": 0, "delta": delta, "finish_reason": None}])
            self.body += event
            await self._send(event)
        if data.get("done") is not True:
            return False
        reason, usage = self._finish(data)
        self.body += self._event([{"index": 0, "delta": {}, "finish_reason": reason}])
        self.body += self._event([], usage=usage)
        self.body += b"data: [DONE]\n\n"
        return True

    def _event(self, choices: list[dict[str, Any]], **more: object) -> bytes:
        return b"data: " + self._headed("chat.completion.chunk", choices, **more) + b"\n\n"
