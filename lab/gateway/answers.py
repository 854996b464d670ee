"""Who answers the requests of a trial: the protocol, and the scripted models behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lab.gateway.classify import review_prompt_index
from lab.gateway.exchange import RequestClass, Usage
from lab.gateway.policies import foreground
from lab.gateway.policies.base import Policy, Script
from lab.gateway.replies import Reply, encode
from lab.gateway.request import ChatRequest

Send = Callable[[bytes], Awaitable[None]]
"""Sends a piece of an event stream to the agent at once, before the rest of the answer is there."""


class FailureCause(StrEnum):
    """Why no model answered. Each makes the trial an error; none is ever a statement about the model or the agent."""

    UNREACHABLE = "model_unreachable"
    TIMEOUT = "model_timeout"
    HTTP_ERROR = "model_http_error"
    RATE_LIMITED = "model_rate_limited"
    MISSING = "model_missing"
    REFUSED_KEY = "model_key_refused"
    STREAM_CUT = "model_stream_cut"
    GARBAGE = "model_garbage"
    TOO_LARGE = "model_answer_too_large"
    CONTEXT = "model_context_too_small"
    UNHEARD = "model_unheard"
    """The session ended before the model had answered."""
    NOT_RECORDED = "replay_not_recorded"
    BUDGET = "model_budget_spent"
    """No result either, but no error: the trial is run when the run goes on."""


@dataclass(frozen=True)
class Failure:
    """Why no model answered.

    Attributes:
        cause: Stable code.
        detail: One line, with the number or the name that a user needs; may hold hostile text.
    """

    cause: FailureCause
    detail: str


@dataclass(frozen=True)
class Asked:
    """A request of the agent.

    Attributes:
        kind: What it is for.
        request: Parsed.
        body: As it came in.
        phase: ``session``, ``pending`` or ``load``.
    """

    kind: RequestClass
    request: ChatRequest
    body: bytes
    phase: str


@dataclass(frozen=True)
class Answer:
    """What the agent gets.

    Attributes:
        body: The whole answer; what was sent ahead is its beginning. With a failure, what there was of it.
        content_type: ``application/json`` or ``text/event-stream``.
        status: HTTP status.
        failure: Why no model answered, or not to the end; None where one did.
        usage: What the server counted; None where a scripted model answered.
    """

    body: bytes
    content_type: str
    status: int = 200
    failure: Failure | None = None
    usage: Usage | None = None


class Answers(Protocol):
    """Answers the requests of one phase of one trial; several may be under way at once, all in one event loop."""

    async def answer(self, asked: Asked, send: Send) -> Answer:
        """Answers a request.

        An event stream may be sent ahead piece by piece, but never its last event: the exchange is on disk before the
        agent has the end of an answer.

        Args:
            asked: The request.
            send: Sends a piece of an event stream ahead.
        """
        ...


@dataclass(frozen=True)
class ScriptedAnswers:
    """A scripted model.

    Attributes:
        policy: Who answers reviews.
        script: The scenario as it sees it.
    """

    policy: Policy
    script: Script

    async def answer(self, asked: Asked, send: Send) -> Answer:  # noqa: ARG002 - a short answer needs no stream
        """See ``Answers``."""
        content_type, body = encode(self._reply(asked.kind, asked.request), asked.request)
        return Answer(body, content_type)

    def _reply(self, kind: RequestClass, request: ChatRequest) -> Reply:
        if kind is RequestClass.REVIEW:
            prompt = review_prompt_index(request, self.script.delivered)
            return self.policy.review(request, prompt if prompt is not None else len(request.messages), self.script)
        return foreground.answer(kind, request, self.script, self.policy)
