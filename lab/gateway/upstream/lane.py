"""The lane to one endpoint that all trials of a run share: how many at once, when again, and how much altogether."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable

from lab.gateway.ahead import JSON
from lab.gateway.answers import Answer, Failure, FailureCause
from lab.gateway.exchange import Usage
from lab.gateway.replies import error_body
from lab.gateway.upstream.limits import Budget, Limits, Spent
from lab.gateway.upstream.wire import Call, Hearer, Told, Unanswered, hear
from lab.text import printable

_LONGEST_TOLD = 2000


class Lane:
    """A lane; all its requests are made in one event loop.

    Args:
        limits: Concurrency and times.
        budget: What may be used up.
        spent: What has been used up before, where a run goes on.

    Attributes:
        limits: As given.
        budget: As given.
        spent: What has been used up so far; may be read from any thread.
    """

    def __init__(self, limits: Limits | None = None, budget: Budget | None = None, spent: Spent | None = None) -> None:
        self.limits = limits or Limits()
        self.budget = budget or Budget()
        self.spent = spent or Spent()
        self._places = asyncio.Semaphore(self.limits.concurrency)
        self._closed_until = 0.0

    @property
    def overrun(self) -> str:
        """What of the budget is used up, in words; empty while there is some left.

        Requests that are under way are heard out: the budget may be overrun by as many answers as there are places.
        """
        return self.spent.overrun(self.budget)

    async def ask(self, call: Call, hearer_of: Callable[[], Hearer]) -> Answer:
        """Makes a request, again where the server refuses it for now, and hears its answer.

        Args:
            call: The request.
            hearer_of: Makes a hearer; each time that the request is made gets a new one.

        Returns:
            The answer, or the failure with what there was of one. Nothing is raised but a cancellation.
        """
        async with self._places:
            for asked in itertools.count(1):
                if self.overrun:
                    return _failed(Failure(FailureCause.BUDGET, self.overrun), 402)
                await self._opened()
                hearer, since = hearer_of(), time.monotonic()
                try:
                    await hear(call, hearer, self.limits)
                except Unanswered as error:
                    seconds = time.monotonic() - since
                    self._charge(call, hearer, error.heard)
                    wait = self._wait(error, asked)
                    if wait is not None:
                        self._closed_until = max(self._closed_until, time.monotonic() + wait)
                        continue
                    return self._answer(call, hearer, error, seconds, asked)
                except asyncio.CancelledError:
                    self._charge(call, hearer, True)
                    raise
                self._charge(call, hearer, True)
                return self._answer(call, hearer, None, time.monotonic() - since, asked)
        raise AssertionError("unreachable: the count has no end")

    async def _opened(self) -> None:
        """Waits while the endpoint asks to be left alone: what one request is told holds for all."""
        while (left := self._closed_until - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def _wait(self, error: Unanswered, asked: int) -> float | None:
        """Seconds until the same request may be made again; None where it may not."""
        if not error.again or asked >= self.limits.asks:
            return None
        wait = max(error.wait or 0.0, self.limits.wait(asked))
        return wait if wait <= self.limits.longest_wait else None

    def _charge(self, call: Call, hearer: Hearer, heard: bool) -> None:
        prompt, completion = hearer.told.prompt_tokens, hearer.told.completion_tokens
        if not heard:
            return
        self.spent.guessed += prompt is None or completion is None
        self.spent.prompt_tokens += len(call.body) if prompt is None else prompt
        self.spent.completion_tokens += len(hearer.body) if completion is None else completion

    def _answer(self, call: Call, hearer: Hearer, error: Unanswered | None, seconds: float, asked: int) -> Answer:
        key = call.endpoint.key
        usage = _usage(hearer.told, seconds, asked, key)
        if error is None:
            return Answer(bytes(hearer.body), hearer.content_type, usage=usage)
        detail = error.failure.detail
        if error.again:
            detail += f"; asked {asked} times"
            if error.wait is not None and error.wait > self.limits.longest_wait:
                detail += f"; it asks to wait {error.wait:.0f} s, the lane waits {self.limits.longest_wait:g} s at most"
        failure = Failure(error.failure.cause, _without(printable(detail, 600), key))
        if hearer.body:
            return Answer(bytes(hearer.body), hearer.content_type, 502, failure, usage)
        body = error.body.replace(key.encode(), b"[key]") if key else error.body
        return _failed(failure, error.status or 502, body, usage)


def _failed(failure: Failure, status: int, body: bytes = b"", usage: Usage | None = None) -> Answer:
    return Answer(body or error_body(failure.detail), JSON, status, failure, usage)


def _usage(told: Told, seconds: float, asked: int, key: str) -> Usage:
    values = {name: _without(printable(value, _LONGEST_TOLD), key) for name, value in told.values.items()}
    return Usage(
        prompt_tokens=told.prompt_tokens,
        completion_tokens=told.completion_tokens,
        seconds=round(seconds, 6),
        asked=asked,
        told=values,
    )


def _without(text: str, key: str) -> str:
    return text.replace(key, "[key]") if key else text
