"""Any server with OpenAI's chat completions: llama.cpp, vLLM, SGLang, LM Studio, OpenAI itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab.gateway.ahead import EVENTS, JSON
from lab.gateway.answers import Answer, Asked, FailureCause, Send
from lab.gateway.upstream.chat import choice_of, no_error, note, parsed
from lab.gateway.upstream.events import EVENT_END, Splitter, data_of
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Endpoint
from lab.gateway.upstream.truncation import Size, cut, refuses_what_does_not_fit
from lab.gateway.upstream.wire import Call, Hearer, Told, Unanswered
from lab.models.identity import Sampling

_DONE = "[DONE]"

Check = Callable[[Told], None]
"""Raises ``Unanswered`` where what a server told shows that it did not read the whole request."""


@dataclass(frozen=True)
class OpenAIUpstream:
    """A model behind OpenAI's chat completions.

    The agent gets what the server sent, byte for byte, decompressed.

    Attributes:
        endpoint: The model.
        lane: The lane to its server.
        sampling: Options in place of the agent's own.
        seed: Seed of the trial; None to send none.
        context: Context of the model, in tokens; None where it is not known.
        server: Product, as ``LiveModel`` has it; it decides whether a request may be cut without a word.
    """

    endpoint: Endpoint
    lane: Lane
    sampling: Sampling = field(default_factory=Sampling)
    seed: int | None = None
    context: int | None = None
    server: str = ""

    async def answer(self, asked: Asked, send: Send) -> Answer:
        """See ``Answers``."""
        call = Call(self.endpoint, "/chat/completions", self._body(asked))
        size = Size.of(asked.request, call.body)

        def check(told: Told) -> None:
            if told.prompt_tokens is None or refuses_what_does_not_fit(self.server):
                return
            if reason := cut(size, told.prompt_tokens + told.uncounted, self.context, True):
                raise Unanswered(FailureCause.CONTEXT, reason)

        def hearer() -> Hearer:
            return _Stream(call, check, send) if asked.request.stream else _Whole(call, check)

        return await self.lane.ask(call, hearer)

    def _body(self, asked: Asked) -> bytes:
        """The agent's request with another model, the lab's options, and its usage asked for."""
        body: dict[str, Any] = json.loads(asked.body)
        body["model"] = self.endpoint.model
        longest = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        options = {
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "top_k": self.sampling.top_k,
            longest: self.sampling.max_tokens,
            "seed": self.seed,
        }
        body |= {name: value for name, value in options.items() if value is not None}
        if asked.request.stream:
            agents = body.get("stream_options")
            body["stream_options"] = {**(agents if isinstance(agents, dict) else {}), "include_usage": True}
        return json.dumps(body).encode()


class _Whole:
    """Hears an answer of one JSON object."""

    content_type = JSON

    def __init__(self, call: Call, check: Check) -> None:
        self._call = call
        self._check = check
        self.body = bytearray()
        self.told = Told()

    async def feed(self, piece: bytes) -> bool:
        self.body += piece
        return False

    async def end(self) -> None:
        data = no_error(parsed(bytes(self.body), "the answer"), self._call)
        choice = choice_of(data, "message")
        note(self.told, data, choice)
        if choice is None or choice.get("message") is None:
            raise Unanswered(FailureCause.GARBAGE, "the answer has no message")
        self._check(self.told)


class _Stream:
    """Hears a stream of events and passes each on as soon as the next one is there.

    A stream is whole with its ``[DONE]``, or where the server ended it properly after its ``finish_reason``: some never
    send the former. Without a ``finish_reason`` it was cut, whatever else came.
    """

    content_type = EVENTS

    def __init__(self, call: Call, check: Check, send: Send) -> None:
        self._call = call
        self._check = check
        self._send = send
        self._events = Splitter(EVENT_END)
        self._held = b""
        self._finished = False
        self.body = bytearray()
        self.told = Told()

    async def feed(self, piece: bytes) -> bool:
        for event in self._events.feed(piece):
            if await self._hear(event):
                return True
        return False

    async def end(self) -> None:
        rest = bytes(self._events.rest)
        if rest.lstrip()[:1] == b"{" and not self.body:
            no_error(parsed(rest, "the answer"), self._call)
            raise Unanswered(FailureCause.GARBAGE, "one JSON object was sent where a stream was asked for")
        if rest.strip():
            self._events.rest.clear()
            try:
                await self._hear(rest)
            except Unanswered as error:
                if self._finished or not self.body:
                    raise
                self.body += rest
                raise Unanswered(FailureCause.STREAM_CUT, "the stream ends in the middle of an event") from error
        if not self._finished:
            cause = FailureCause.STREAM_CUT if self.body else FailureCause.GARBAGE
            raise Unanswered(cause, "the stream ends before its finish_reason" if self.body else "the answer is empty")
        self._check(self.told)

    async def _hear(self, event: bytes) -> bool:
        data = data_of(event)
        if data == _DONE:
            self.body += event
            if not self._finished:
                raise Unanswered(FailureCause.STREAM_CUT, "the stream is done without a finish_reason")
            self._check(self.told)
            return True
        if data is not None:
            found = no_error(parsed(data, "an event of the stream"), self._call)
            choice = choice_of(found, "delta")
            note(self.told, found, choice)
            self._finished |= bool(choice and choice.get("finish_reason"))
        self.body += event
        if self._held:
            await self._send(self._held)
        self._held = event
        return False
