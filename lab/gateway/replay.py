"""Answers of a recording: each request gets what the same one got then, and one that was not recorded gets none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lab.gateway.answers import Answer, Asked, Failure, FailureCause, Send
from lab.gateway.exchange import Exchange, RequestClass

Comparable = Callable[[bytes], bytes]
"""A request without what differs between two sessions that are the same."""

_SHOWN = 60
"""Characters that are shown of each side of a difference."""

REDACTED = "; the recording was redacted, and a mark has another length than the secret that it stands for"


class ReplayAnswers:
    """A recorded model.

    A recorded answer is given once: the same request asked twice gets both answers that it got, in their order.

    Args:
        recorded: The exchanges of the same trial, all phases.
        comparable: Takes out of a request what differs between two sessions that are the same.
    """

    def __init__(self, recorded: Sequence[Exchange], comparable: Comparable) -> None:
        self._waiting = [e for e in recorded if e.kind not in (RequestClass.PROBE, RequestClass.UNPARSABLE)]
        self._comparable = comparable
        self._redacted = any(body.kept_sha256 for e in recorded for body in (e.request, e.response))

    async def answer(self, asked: Asked, send: Send) -> Answer:  # noqa: ARG002 - the whole answer is there at once
        """See ``Answers``."""
        mine = [e for e in self._waiting if e.phase == asked.phase and e.kind is asked.kind]
        now = _parsed(self._comparable(asked.body))
        for exchange in mine:
            if _parsed(self._comparable(exchange.request.data)) == now:
                self._waiting.remove(exchange)
                return _as_recorded(exchange)
        if mine:
            then = _parsed(self._comparable(mine[0].request.data))
            difference = next(iter(_differences(then, now, "")), "they differ")
            told = f"the {asked.kind} request of the {asked.phase} is not the recorded one: {difference}"
        else:
            told = f"the recording has no further {asked.kind} request in the {asked.phase}"
        if self._redacted:
            told += REDACTED
        return Answer(b"", "application/json", 502, Failure(FailureCause.NOT_RECORDED, told))


def _as_recorded(exchange: Exchange) -> Answer:
    body = exchange.response.data
    stream = body.lstrip()[:1] not in (b"{", b"[", b"")
    failure = None
    if exchange.failure:
        cause = FailureCause(exchange.failure) if exchange.failure in set(FailureCause) else FailureCause.GARBAGE
        failure = Failure(cause, "as recorded")
    content_type = "text/event-stream" if stream else "application/json"
    return Answer(body, content_type, exchange.status, failure, exchange.usage)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _differences(then: Any, now: Any, place: str) -> Iterator[str]:
    """Names where two requests part, with both sides from just before that place."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted({*then, *now}):
            yield from _differences(then.get(key), now.get(key), f"{place}/{key}")
    elif isinstance(then, list) and isinstance(now, list):
        for index in range(max(len(then), len(now))):
            one, other = (side[index] if index < len(side) else None for side in (then, now))
            yield from _differences(one, other, f"{place}/{index}")
    elif then != now:
        told = ["absent" if side is None else json.dumps(side, ensure_ascii=False) for side in (then, now)]
        part = next((i for i, (a, b) in enumerate(zip(*told, strict=False)) if a != b), 0)
        start = max(0, part - _SHOWN // 3)
        was, now_is = (side[start : start + _SHOWN] for side in told)
        yield f"{place} was {was!r} and is {now_is!r}"
