"""An OpenAI-compatible server over real sockets: what is passed on, and what each way of failing is called."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.gateway.answers import Answer, Asked, FailureCause
from lab.gateway.exchange import RequestClass
from lab.gateway.request import parse_request
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Budget, Endpoint, Limits
from lab.gateway.upstream.openai import OpenAIUpstream
from lab.models.identity import Sampling
from tests.doubles.hostile_model import (
    DONE,
    GOOD,
    STREAM_HEAD,
    USED,
    Behaviour,
    HostileModel,
    Wire,
    answers,
    call,
    dead_url,
    delta,
    event,
    hostile_model,
    message,
    raw,
    streams,
)

KEY = "sk-secret-otter40"
FAST = Limits(first_byte=0.5, idle=0.5, total=5, asks=3, first_wait=0.01, longest_wait=1)
OVERFLOW = {
    "error": {
        "code": 400,
        "message": "request (2031 tokens) exceeds the available context size (1024 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 2031,
        "n_ctx": 1024,
    }
}


@dataclass
class Sent:
    """What has been sent ahead."""

    pieces: list[bytes] = field(default_factory=list)

    async def __call__(self, piece: bytes) -> None:
        self.pieces.append(piece)


def asked(stream: bool = True, **more: Any) -> Asked:
    body = {"model": "lab", "messages": [{"role": "user", "content": "Hello there"}], "stream": stream, **more}
    data = json.dumps(body).encode()
    return Asked(RequestClass.REVIEW, parse_request(data), data, "session")


def put(url: str, lane: Lane | None = None, stream: bool = True, sent: Sent | None = None, **more: Any) -> Answer:
    """Asks a server once, the way the gateway does; nothing may hang."""
    upstream = OpenAIUpstream(Endpoint(url, "small", KEY), lane or Lane(FAST), **more)

    async def once() -> Answer:
        answer = await asyncio.wait_for(upstream.answer(asked(stream), sent or Sent()), 15)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, f"tasks are left over: {left}"
        return answer

    return asyncio.run(once())


def met(*behaviours: Behaviour, stream: bool = True, limits: Limits = FAST) -> tuple[Answer, Sent, HostileModel]:
    sent = Sent()
    with hostile_model(*behaviours) as model:
        answer = put(model.url, Lane(limits), stream, sent)
    assert KEY not in repr(answer)
    assert answer.failure is None or "\n" not in answer.failure.detail
    return answer, sent, model


def cause(answer: Answer) -> FailureCause:
    assert answer.failure, answer
    return answer.failure.cause


def test_a_stream_is_passed_on_byte_for_byte_with_its_end_held_back() -> None:
    answer, sent, model = met(streams(*GOOD))
    assert (answer.failure, answer.status, answer.content_type) == (None, 200, "text/event-stream")
    assert answer.body == b"".join(GOOD)
    assert len(sent.pieces) >= 2 and answer.body.startswith(b"".join(sent.pieces))
    assert DONE not in b"".join(sent.pieces)
    assert answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (120, 7)
    assert answer.usage.told["finish_reason"] == "stop" and answer.usage.told["model"] == "m"
    head, _ = model.requests[0]
    assert head.startswith("POST /v1/chat/completions ") and f"Authorization: Bearer {KEY}".lower() in head.lower()


def test_a_stream_in_single_bytes_and_one_in_one_piece_are_the_same() -> None:
    whole = b"".join(GOOD)
    crlf = whole.replace(b"\n", b"\r\n")
    for stream, pieces in ((whole, [whole]), (whole, [bytes([b]) for b in whole]), (crlf, [bytes([b]) for b in crlf])):
        answer, sent, _ = met(streams(*pieces))
        assert (answer.failure, answer.body) == (None, stream)
        assert answer.body.startswith(b"".join(sent.pieces)) and b"[DONE]" not in b"".join(sent.pieces)


def test_a_whole_answer_is_passed_on_byte_for_byte() -> None:
    body = json.dumps(message("Olá — “otter40”"), indent=3, ensure_ascii=False).encode()
    answer, sent, _ = met(answers(200, body), stream=False)
    assert (answer.failure, answer.body, answer.content_type, sent.pieces) == (None, body, "application/json", [])
    assert answer.usage and answer.usage.prompt_tokens == 120


def test_only_model_options_seed_and_usage_are_changed_in_a_request() -> None:
    sampling = Sampling(temperature=0, top_k=1, max_tokens=33, num_ctx=4096)
    agents = asked(
        temperature=0.9, top_p=0.5, max_tokens=65536, tools=[{"type": "function", "function": {"name": "memory"}}],
        stream_options={"x": 1}, metadata={"a": [1, None, 2.5]},
    )  # fmt: skip
    with hostile_model(streams(*GOOD)) as model:
        upstream = OpenAIUpstream(Endpoint(model.url, "small"), Lane(FAST), sampling, 7)
        asyncio.run(upstream.answer(agents, Sent()))
    changed = {"model": "small", "temperature": 0, "top_k": 1, "max_tokens": 33, "seed": 7}
    options = {"stream_options": {"x": 1, "include_usage": True}}
    assert model.bodies() == [json.loads(agents.body) | changed | options]
    assert "authorization" not in model.requests[0][0].lower()


def test_a_seed_is_sent_only_where_there_is_one_and_the_newer_name_of_the_longest_answer_is_kept() -> None:
    agents = asked(stream=False, max_completion_tokens=9)
    with hostile_model(answers(200, message())) as model:
        upstream = OpenAIUpstream(Endpoint(model.url, "small"), Lane(FAST), Sampling(max_tokens=3))
        asyncio.run(upstream.answer(agents, Sent()))
    assert model.bodies() == [json.loads(agents.body) | {"model": "small", "max_completion_tokens": 3}]


TWO_CALLS = (
    delta(role="assistant", content=None, tool_calls=[call(0, "", "memory", "a")]),
    delta(tool_calls=[call(0, '{"action": "add"}')]),
    delta(tool_calls=[call(1, "", "memory", "b")]),
    delta(tool_calls=[call(1, '{"action": ')]),
)


def test_two_calls_and_arguments_that_are_no_json_are_the_models_own_and_passed_on() -> None:
    stream = (*TWO_CALLS, delta(finish="tool_calls"), USED, DONE)
    answer, _, _ = met(streams(*stream))
    assert (answer.failure, answer.body) == (None, b"".join(stream))
    whole = message(None, tool_calls=[{"id": "a", "function": {"name": "memory", "arguments": "{not json"}}])
    answer, _, _ = met(answers(200, whole), stream=False)
    assert (answer.failure, json.loads(answer.body)) == (None, whole)


def test_a_stream_cut_in_the_middle_of_a_call_is_an_error_with_what_there_was() -> None:
    for behaviour in (streams(*TWO_CALLS, ended=False), streams(*TWO_CALLS)):
        answer, sent, _ = met(behaviour)
        assert cause(answer) is FailureCause.STREAM_CUT
        assert answer.body == b"".join(TWO_CALLS) and answer.body.startswith(b"".join(sent.pieces))


def test_a_stream_without_done_is_whole_where_it_was_finished_and_properly_ended() -> None:
    answer, sent, _ = met(streams(*GOOD[:-1]))
    assert (answer.failure, answer.body) == (None, b"".join(GOOD[:-1]))
    assert sent.pieces == list(GOOD[:-2]), "the last event is held back, whichever it is"
    answer, _, _ = met(streams(*GOOD[:-1], ended=False))
    assert cause(answer) is FailureCause.STREAM_CUT
    answer, _, _ = met(streams(*GOOD[:-1], DONE.rstrip()))
    assert (answer.failure, answer.body) == (None, b"".join(GOOD).rstrip())


def test_a_stream_that_is_done_without_a_finish_reason_is_cut() -> None:
    assert cause(met(streams(*GOOD[:2], DONE))[0]) is FailureCause.STREAM_CUT
    assert cause(met(streams(DONE))[0]) is FailureCause.STREAM_CUT


def test_nothing_is_waited_for_after_done() -> None:
    def stays(wire: Wire) -> None:
        streams(*GOOD, ended=False)(wire)
        wire.hang()

    assert met(stays)[0].failure is None


def test_comments_and_named_events_in_a_stream_are_passed_on() -> None:
    stream = (b": keep-alive\n\n", b"event: message\nid: 4\n" + GOOD[0], *GOOD[1:])
    answer, _, _ = met(streams(*stream))
    assert (answer.failure, answer.body) == (None, b"".join(stream))


def test_a_compressed_and_chunked_answer_is_read() -> None:
    def behave(data: bytes) -> Callable[[Wire], None]:
        def compressed(wire: Wire) -> None:
            wire.send(STREAM_HEAD[:-2] + b"content-encoding: gzip\r\n\r\n")
            for start in range(0, len(data), 7):
                wire.chunk(data[start : start + 7])
            wire.chunk(b"")

        return compressed

    answer, _, _ = met(behave(gzip.compress(b"".join(GOOD))))
    assert (answer.failure, answer.body) == (None, b"".join(GOOD))
    assert cause(met(behave(b"no gzip at all"))[0]) is FailureCause.GARBAGE


def test_an_answer_of_four_megabytes_passes_and_one_above_the_limit_does_not() -> None:
    large = delta(content="x" * (4 << 20))
    answer, _, _ = met(streams(large, *GOOD[1:]))
    assert answer.failure is None and len(answer.body) > 4 << 20
    assert met(answers(200, message("x" * (4 << 20))), stream=False)[0].failure is None
    small = Limits(first_byte=2, idle=2, answer_bytes=1 << 20)
    assert cause(met(streams(large, *GOOD[1:]), limits=small)[0]) is FailureCause.TOO_LARGE
    assert cause(met(answers(200, message("x" * (4 << 20))), stream=False, limits=small)[0]) is FailureCause.TOO_LARGE

    def endless(wire: Wire) -> None:
        wire.send(STREAM_HEAD)
        while True:
            wire.chunk(delta(content="y" * 10_000))

    assert cause(met(endless, limits=small)[0]) is FailureCause.TOO_LARGE
    bomb = gzip.compress(b"\0" * (64 << 20))
    packed = answers(200, bomb, "content-encoding: gzip\r\n")
    assert cause(met(packed, stream=False, limits=small)[0]) in {FailureCause.TOO_LARGE, FailureCause.GARBAGE}


def test_a_server_that_is_not_there_is_asked_again_and_then_unreachable() -> None:
    answer = put(dead_url())
    assert cause(answer) is FailureCause.UNREACHABLE
    assert answer.usage and answer.usage.asked == 3
    assert "asked 3 times" in answer.failure.detail if answer.failure else False


def test_a_name_that_nobody_knows_is_unreachable() -> None:
    assert cause(put("http://no-such-host.invalid:1/v1")) is FailureCause.UNREACHABLE


def test_a_server_killed_before_its_answer_is_asked_again() -> None:
    answer, _, model = met(lambda wire: wire.reset(), streams(*GOOD))
    assert answer.failure is None and len(model.requests) == 2
    assert cause(met(lambda wire: wire.reset())[0]) is FailureCause.UNREACHABLE
    assert cause(met(raw(b""))[0]) is FailureCause.UNREACHABLE


def test_a_server_killed_in_the_middle_of_its_answer_is_not_asked_again() -> None:
    def killed(wire: Wire) -> None:
        streams(*GOOD[:2], ended=False)(wire)
        time.sleep(0.1)  # what was sent must arrive before the reset, which throws away what is under way
        wire.reset()

    answer, _, model = met(killed)
    assert cause(answer) is FailureCause.STREAM_CUT and len(model.requests) == 1
    assert answer.body == b"".join(GOOD[:2])
    half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"
    assert cause(met(raw(half), stream=False)[0]) is FailureCause.STREAM_CUT


def test_a_server_that_says_nothing_is_given_up() -> None:
    since = time.monotonic()
    answer, _, model = met(lambda wire: wire.hang())
    assert cause(answer) is FailureCause.TIMEOUT and len(model.requests) == 1
    assert "no byte of an answer within 0.5 s" in answer.failure.detail if answer.failure else False

    def head_only(wire: Wire) -> None:
        time.sleep(0.4)
        wire.send(STREAM_HEAD)
        wire.hang()

    head = time.monotonic()
    assert cause(met(head_only)[0]) is FailureCause.TIMEOUT
    assert time.monotonic() - head < 0.8, "the head of an answer is no byte of it"

    def stops(wire: Wire) -> None:
        streams(*GOOD[:2], ended=False)(wire)
        wire.hang()

    answer, sent, _ = met(stops)
    assert cause(answer) is FailureCause.TIMEOUT and sent.pieces == [GOOD[0]]
    assert time.monotonic() - since < 4


def test_a_server_that_trickles_is_given_up_when_the_time_of_an_answer_is_over() -> None:
    def trickle(wire: Wire) -> None:
        wire.send(STREAM_HEAD)
        for byte in b"".join(GOOD) * 100:
            wire.chunk(bytes([byte]))
            time.sleep(0.1)

    answer, _, _ = met(trickle, limits=Limits(first_byte=0.5, idle=0.5, total=1))
    assert cause(answer) is FailureCause.TIMEOUT
    assert "not whole after 1 s" in answer.failure.detail if answer.failure else False


GARBAGE: dict[str, tuple[Behaviour, bool]] = {
    "no http": (raw(b"\x00\x01\x02 hello\r\n\r\n"), True),
    "ssh": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), True),
    "bad chunk": (raw(STREAM_HEAD + b"zz\r\nnope\r\n"), True),
    "no json": (answers(200, b"Hello"), False),
    "html": (answers(200, b"<!doctype html>\n\n<h1>Hi</h1>", content_type="text/html"), False),
    "html as stream": (answers(200, b"<!doctype html>\n\n<h1>Hi</h1>", content_type="text/html"), True),
    "json as stream": (answers(200, message()), True),
    "stream as json": (streams(*GOOD), False),
    "empty": (answers(200, b""), False),
    "empty stream": (streams(), True),
    "no json in event": (streams(event("{oops")), True),
    "no utf-8": (streams(b"data: \xff\xfe\n\n"), True),
    "deep": (answers(200, b"[" * 200_000), False),
    "deep in event": (streams(event("[" * 200_000)), True),
    "giant number": (answers(200, b'{"choices": ' + b"9" * 5000 + b"}"), False),
    "list": (answers(200, []), False),
    "no choices": (answers(200, {"choices": []}), False),
    "choices no list": (answers(200, {"choices": 5}), False),
    "choice no object": (answers(200, {"choices": [5]}), False),
    "no message": (answers(200, {"choices": [{}]}), False),
    "content no text": (answers(200, message({"a": 1})), False),  # type: ignore[arg-type]
    "calls no list": (answers(200, message(tool_calls={"a": 1})), False),
    "delta no object": (streams(event({"choices": [{"delta": 5}]})), True),
    "function no object": (streams(delta(tool_calls=[{"index": 0, "function": "x"}])), True),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_called_garbage(name: str) -> None:
    behaviour, stream = GARBAGE[name]
    answer, _, model = met(behaviour, stream=stream)
    expected = {FailureCause.GARBAGE, FailureCause.STREAM_CUT} if name == "bad chunk" else {FailureCause.GARBAGE}
    assert cause(answer) in expected, answer.failure
    assert len(model.requests) == 1


REFUSALS: dict[str, tuple[Behaviour, FailureCause, str]] = {
    "no such route": (
        answers(404, {"error": {"message": "File Not Found", "code": 404}}),
        FailureCause.HTTP_ERROR,
        "/v1",
    ),
    "html 404": (answers(404, b"<h1>Not Found</h1>", content_type="text/html"), FailureCause.HTTP_ERROR, "/v1"),
    "unknown model": (
        answers(404, {"error": {"message": "The model `small` does not exist.", "code": 404}}),
        FailureCause.MISSING,
        "small",
    ),
    "unknown model by code": (
        answers(404, {"error": {"message": "no access", "code": "model_not_found"}}),
        FailureCause.MISSING,
        "",
    ),
    "401": (
        answers(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        FailureCause.REFUSED_KEY,
        "401",
    ),
    "403": (answers(403, b""), FailureCause.REFUSED_KEY, "403"),
    "500": (answers(500, {"error": {"message": "template broke"}}), FailureCause.HTTP_ERROR, "template broke"),
    "llama.cpp context": (answers(400, OVERFLOW), FailureCause.CONTEXT, "2031"),
    "redirect": (
        answers(307, b"", "location: http://127.0.0.1:1/v1\r\n"),
        FailureCause.HTTP_ERROR,
        "redirects are not followed",
    ),
    "quota": (
        answers(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
        FailureCause.RATE_LIMITED,
        "quota",
    ),
    "204": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), FailureCause.HTTP_ERROR, "204"),
    "control characters": (answers(500, b"\x1b[31m\x07evil\r\n\nlines"), FailureCause.HTTP_ERROR, "evil"),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("stream", [True, False])
def test_what_no_waiting_mends_is_asked_once_and_named(name: str, stream: bool) -> None:
    behaviour, expected, told = REFUSALS[name]
    answer, sent, model = met(behaviour, stream=stream)
    assert cause(answer) is expected
    assert answer.failure and told in answer.failure.detail and "\x1b" not in answer.failure.detail
    assert len(model.requests) == 1 and not sent.pieces and answer.status >= 400


def test_an_error_that_comes_in_pieces_or_is_cut_is_read_as_far_as_it_goes() -> None:
    def pieces(wire: Wire) -> None:
        wire.send(b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n")
        for byte in json.dumps(OVERFLOW).encode():
            wire.chunk(bytes([byte]))
        wire.chunk(b"")

    assert cause(met(pieces)[0]) is FailureCause.CONTEXT
    cut = raw(b"HTTP/1.1 500 Oops\r\ncontent-length: 500\r\n\r\nsegfault")
    answer, _, model = met(cut)
    assert cause(answer) is FailureCause.HTTP_ERROR and len(model.requests) == 1
    assert answer.failure and "HTTP 500: segfault" in answer.failure.detail


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_server_behind_a_broken_proxy_is_asked_again_and_then_an_error(status: int) -> None:
    answer, _, model = met(answers(status, b"<html>bad gateway", content_type="text/html"))
    assert cause(answer) is FailureCause.HTTP_ERROR and len(model.requests) == 3
    answer, _, model = met(answers(status, b""), streams(*GOOD))
    assert answer.failure is None and answer.usage and answer.usage.asked == 2


def test_a_server_that_asks_to_wait_is_left_alone_so_long_and_then_asked_again() -> None:
    limited = answers(429, {"error": {"message": "slow down"}}, "retry-after: 1\r\n")
    since = time.monotonic()
    answer, _, model = met(limited, streams(*GOOD))
    assert answer.failure is None and len(model.requests) == 2
    assert time.monotonic() - since >= 1
    assert answer.usage and answer.usage.asked == 2 and answer.usage.seconds < 0.9, "waiting is not the model's time"


def test_a_server_that_asks_to_wait_too_long_is_not_waited_for() -> None:
    since = time.monotonic()
    answer, _, model = met(answers(429, b"", "retry-after: 3600\r\n"))
    assert cause(answer) is FailureCause.RATE_LIMITED and len(model.requests) == 1
    assert answer.failure and "3600" in answer.failure.detail and time.monotonic() - since < 2
    date = "retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n"
    assert cause(met(answers(503, b"", date))[0]) is FailureCause.HTTP_ERROR


def test_a_limited_server_is_rate_limited_in_the_end_and_what_it_says_of_waiting_may_be_nonsense() -> None:
    for header in ("", "retry-after: soon\r\n", "retry-after: -5\r\n", "retry-after: nan\r\n"):
        answer, _, model = met(answers(429, b"", header))
        assert cause(answer) is FailureCause.RATE_LIMITED and len(model.requests) == 3


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_inside_a_good_answer_is_an_error(stream: bool) -> None:
    failing = streams(GOOD[0], event({"error": {"message": "CUDA out of memory"}}), DONE)
    answer, _, _ = met(failing if stream else answers(200, {"error": "CUDA out of memory"}), stream=stream)
    assert cause(answer) is FailureCause.HTTP_ERROR
    assert answer.failure and "CUDA out of memory" in answer.failure.detail
    inside = streams(event(OVERFLOW)) if stream else answers(200, OVERFLOW)
    assert cause(met(inside, stream=stream)[0]) is FailureCause.CONTEXT
    if stream:
        assert cause(met(streams(b"error: {}\n\n"))[0]) is FailureCause.HTTP_ERROR
        assert cause(met(answers(200, OVERFLOW))[0]) is FailureCause.CONTEXT


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_cuts_a_request_without_a_word_is_found_out_by_its_count(stream: bool) -> None:
    def long(server: str, usage: dict[str, Any], context: int | None = None) -> Answer:
        used = event({"model": "m", "choices": [], "usage": usage})
        whole = answers(200, message() | {"usage": usage})
        with hostile_model(streams(*GOOD[:3], used, DONE) if stream else whole) as model:
            upstream = OpenAIUpstream(Endpoint(model.url, "small"), Lane(FAST), context=context, server=server)
            request = asked(stream, messages=[{"role": "user", "content": "word " * 300}])
            return asyncio.run(upstream.answer(request, Sent()))

    few = {"prompt_tokens": 120, "completion_tokens": 7}
    cut = long("LM Studio", few, 4096)
    assert cause(cut) is FailureCause.CONTEXT
    assert cut.failure and "4096 tokens" in cut.failure.detail and "300 words" in cut.failure.detail
    assert cause(long("", few)) is FailureCause.CONTEXT
    assert cause(long("LM Studio", {"prompt_tokens": 512}, 512)) is FailureCause.CONTEXT
    assert long("llama.cpp b9999", few).failure is None
    assert long("", {"prompt_tokens": 310}, 4096).failure is None
    assert long("", {}).failure is None
    uncounted = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 300}}
    assert long("", uncounted).failure is None


def test_as_many_requests_are_under_way_as_the_lane_allows_and_the_line_is_not_the_models_time() -> None:
    def slow(wire: Wire) -> None:
        time.sleep(0.2)
        streams(*GOOD)(wire)

    async def many(url: str, places: int) -> list[Answer]:
        lane = Lane(Limits(concurrency=places, first_byte=5))
        trials = [OpenAIUpstream(Endpoint(url, "small"), lane, seed=n) for n in range(6)]
        return await asyncio.gather(*(t.answer(asked(), Sent()) for t in trials))

    for places in (1, 3):
        with hostile_model(slow) as model:
            got = asyncio.run(many(model.url, places))
        assert all(a.failure is None and a.usage and a.usage.seconds < 0.8 for a in got)
        assert model.at_once == places
        assert {b["seed"] for b in model.bodies()} == set(range(6))


def test_what_one_request_is_told_of_waiting_holds_for_the_lane() -> None:
    async def two(url: str) -> list[Answer]:
        lane = Lane(Limits(concurrency=1, first_wait=0.5))
        trials = [OpenAIUpstream(Endpoint(url, "small"), lane) for _ in range(2)]
        return await asyncio.gather(*(t.answer(asked(), Sent()) for t in trials))

    with hostile_model(answers(503, b""), streams(*GOOD)) as model:
        since = time.monotonic()
        assert all(a.failure is None for a in asyncio.run(two(model.url)))
        assert time.monotonic() - since >= 0.5 and len(model.requests) == 3


def test_a_budget_that_is_used_up_stops_every_further_request() -> None:
    lane = Lane(FAST, Budget(tokens=200))
    with hostile_model(streams(*GOOD)) as model:
        assert put(model.url, lane).failure is None and not lane.overrun
        assert put(model.url, lane).failure is None
        assert (lane.spent.prompt_tokens, lane.spent.completion_tokens, lane.spent.guessed) == (240, 14, 0)
        assert "254 of 200 tokens" in lane.overrun
        refused = put(model.url, lane)
    assert cause(refused) is FailureCause.BUDGET and len(model.requests) == 2
    assert refused.usage is None


def test_a_request_that_is_given_up_by_its_trial_is_paid_for_and_leaves_its_place() -> None:
    async def give_up(url: str) -> tuple[Lane, Answer]:
        lane = Lane(FAST)
        upstream = OpenAIUpstream(Endpoint(url, "small"), lane)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstream.answer(asked(), Sent()), 0.2)
        return lane, await upstream.answer(asked(), Sent())

    with hostile_model(lambda wire: wire.hang(), streams(*GOOD)) as model:
        lane, answer = asyncio.run(give_up(model.url))
    assert answer.failure is None
    assert (lane.spent.guessed, lane.spent.prompt_tokens) == (1, len(model.requests[0][1]) + 120)


def test_a_budget_of_money_is_kept_and_an_answer_without_a_count_is_counted_by_its_bytes() -> None:
    lane = Lane(FAST, Budget(cost=0.001, input_price=10, output_price=0))
    uncounted = (*GOOD[:3], DONE)
    with hostile_model(streams(*uncounted)) as model:
        answer = put(model.url, lane)
        assert answer.failure is None and answer.usage and answer.usage.prompt_tokens is None
        sent_bytes = len(model.requests[0][1])
        assert (lane.spent.prompt_tokens, lane.spent.guessed) == (sent_bytes, 1)
        assert lane.spent.completion_tokens == len(b"".join(uncounted))
        assert "counted by their bytes" in lane.overrun
        assert cause(put(model.url, lane)) is FailureCause.BUDGET
    refusing = Lane(FAST, Budget(tokens=1))
    with hostile_model(answers(500, b"")) as model:
        put(model.url, refusing)
    assert refusing.spent.tokens == 0, "an error is not paid for"
