"""A recording answers what it has recorded, once, and names the first difference of everything else."""

from __future__ import annotations

import asyncio
import json

import pytest

from lab.agents.hermes.volatile import comparable
from lab.gateway.answers import Answer, Asked, FailureCause
from lab.gateway.exchange import Body, Exchange, RequestClass, Usage
from lab.gateway.replay import REDACTED, ReplayAnswers
from lab.gateway.request import parse_request

DAY = "Conversation started: Monday, November 30, 2026"
STREAM = b'data: {"choices": [{"delta": {"content": "One."}}]}\n\ndata: [DONE]\n\n'


def body(text: str, day: str = DAY) -> bytes:
    messages = [{"role": "system", "content": day}, {"role": "user", "content": text}]
    return json.dumps({"model": "m", "stream": True, "messages": messages}).encode()


def recorded(seq: int, text: str, answer: bytes = STREAM, phase: str = "session", failure: str = "") -> Exchange:
    return Exchange(
        seq=seq,
        phase=phase,
        method="POST",
        path="/v1/chat/completions",
        kind=RequestClass.REVIEW,
        request=Body.of(body(text)),
        status=200,
        response=Body.of(answer),
        failure=failure,
        usage=Usage(prompt_tokens=7, completion_tokens=2, seconds=1.5),
    )


def ask(answers: ReplayAnswers, text: str, day: str = DAY, kind: RequestClass = RequestClass.REVIEW) -> Answer:
    async def nothing(piece: bytes) -> None:
        raise AssertionError("a recorded answer is there at once")

    data = body(text, day)
    return asyncio.run(answers.answer(Asked(kind, parse_request(data), data, "session"), nothing))


def test_each_request_gets_its_own_answer_whatever_the_order_and_the_day() -> None:
    answers = ReplayAnswers([recorded(1, "a", STREAM), recorded(2, "b", b'{"choices": []}')], comparable)
    later = ask(answers, "b", "Conversation started: Friday, January 1, 2027")
    assert (later.body, later.content_type, later.failure) == (b'{"choices": []}', "application/json", None)
    first = ask(answers, "a")
    assert (first.body, first.content_type) == (STREAM, "text/event-stream")
    assert first.usage == Usage(prompt_tokens=7, completion_tokens=2, seconds=1.5)


def test_the_same_request_twice_gets_both_answers_in_order_and_no_third() -> None:
    answers = ReplayAnswers([recorded(1, "a", b'{"n": 1}'), recorded(2, "a", b'{"n": 2}')], comparable)
    assert [ask(answers, "a").body for _ in range(2)] == [b'{"n": 1}', b'{"n": 2}']
    third = ask(answers, "a")
    assert third.failure is not None
    assert third.failure.cause is FailureCause.NOT_RECORDED
    assert third.failure.detail == "the recording has no further review request in the session"


@pytest.mark.parametrize("kind", [RequestClass.REVIEW, RequestClass.FOREGROUND])
def test_what_was_not_recorded_is_an_error_that_names_the_first_difference(kind: RequestClass) -> None:
    answers = ReplayAnswers([recorded(1, "The ferry leaves at nine.")], comparable)
    failure = ask(answers, "The ferry leaves at ten.", kind=kind).failure
    assert failure is not None
    assert failure.cause is FailureCause.NOT_RECORDED
    if kind is RequestClass.REVIEW:
        assert "/messages/1/content was" in failure.detail
        assert "nine" in failure.detail
        assert "ten" in failure.detail
    else:
        assert "no further foreground request" in failure.detail


def test_a_redacted_recording_says_so_where_a_request_is_another() -> None:
    def detail(*exchanges: Exchange) -> str:
        failure = ask(ReplayAnswers(exchanges, comparable), "usage 273/2,200 chars").failure
        assert failure is not None
        return failure.detail

    plain = recorded(1, "usage 264/2,200 chars")
    redacted = recorded(2, "b").model_copy(update={"response": Body.of(b"my key", lambda _: b"my [redacted]")})
    assert REDACTED not in detail(plain)
    assert detail(plain, redacted) == detail(plain) + REDACTED


def test_an_answer_of_another_phase_is_not_taken() -> None:
    assert ask(ReplayAnswers([recorded(1, "a", phase="load")], comparable), "a").failure is not None


def test_a_failure_is_the_recorded_one_again() -> None:
    failure = ask(ReplayAnswers([recorded(1, "a", b"", failure="model_timeout")], comparable), "a").failure
    assert failure is not None
    assert failure.cause is FailureCause.TIMEOUT
