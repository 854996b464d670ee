"""Which requests go to the live model and which a script answers."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from lab.gateway.answers import Answer, Asked, Failure, FailureCause, Send
from lab.gateway.exchange import RequestClass
from lab.gateway.request import parse_request
from lab.gateway.upstream.live import LiveAnswers, Scope

CHAT = json.dumps({"messages": [{"role": "user", "content": "Hello"}]}).encode()
KINDS = [kind for kind in RequestClass if kind is not RequestClass.UNPARSABLE]


class Named:
    def __init__(self, name: bytes, *failures: Failure | None) -> None:
        self.name, self.asked = name, 0
        self._failures = itertools.chain(failures, itertools.repeat(None))

    async def answer(self, asked: Asked, send: Send) -> Answer:
        self.asked += 1
        return Answer(self.name, "application/json", failure=next(self._failures))


async def unsent(piece: bytes) -> None:
    raise AssertionError(f"sent ahead: {piece!r}")


def ask(answers: LiveAnswers, kind: RequestClass, phase: str = "session") -> Answer:
    return asyncio.run(answers.answer(Asked(kind, parse_request(CHAT), CHAT, phase), unsent))


@pytest.mark.parametrize("phase", ["session", "pending", "load"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_answers(kind: RequestClass, phase: str) -> None:
    got = {scope: ask(LiveAnswers(Named(b"model"), Named(b"script"), scope), kind, phase).body for scope in Scope}
    reviewed = kind is RequestClass.REVIEW and phase != "load"
    assert got[Scope.REVIEW] == (b"model" if reviewed else b"script")
    assert got[Scope.ALL] == (b"script" if kind is RequestClass.PROBE else b"model")


def test_a_model_that_has_failed_is_not_asked_again_and_the_script_goes_on() -> None:
    failure = Failure(FailureCause.TIMEOUT, "no byte of an answer within 1 s")
    model, script = Named(b"model", None, failure), Named(b"script")
    live = LiveAnswers(model, script, Scope.REVIEW)
    assert ask(live, RequestClass.REVIEW).failure is None
    for _ in range(3):
        assert ask(live, RequestClass.REVIEW).failure == failure
    assert ask(live, RequestClass.FOREGROUND).failure is None
    assert (model.asked, script.asked) == (2, 1)
