"""Ollama's own chat over real sockets, with a double that is not Ollama: translation, cuts, and failures."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from lab.gateway.answer_message import message_of
from lab.gateway.answers import Answer, Asked, FailureCause
from lab.gateway.exchange import RequestClass
from lab.gateway.request import parse_request
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Endpoint, Limits
from lab.gateway.upstream.ollama import OllamaUpstream
from lab.models.identity import Sampling
from tests.doubles.hostile_model import Behaviour, HostileModel, Wire, answers, hostile_model, raw, streams
from tests.doubles.ollama_double import Turn, serving

FAST = Limits(first_byte=0.5, idle=0.5, total=5, asks=2, first_wait=0.01)
COUNTS = {"prompt_eval_count": 120, "eval_count": 9, "done_reason": "stop", "total_duration": 5, "eval_duration": 3}


def line(done: bool = False, content: str = "", **fields: Any) -> bytes:
    message = {"role": "assistant", "content": content, **fields}
    data = {"model": "qwen3:8b", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done}
    return json.dumps(data | (COUNTS if done else {})).encode() + b"\n"


def calls(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": arguments}} for name, arguments in pairs]


def asked(stream: bool = True, text: str = "Hello there", **more: Any) -> Asked:
    messages = [{"role": "system", "content": "Be."}, {"role": "user", "content": text}]
    data = json.dumps({"model": "lab", "messages": messages, "stream": stream, **more}).encode()
    return Asked(RequestClass.REVIEW, parse_request(data), data, "session")


def met(
    *behaviours: Behaviour, request: Asked | None = None, server: str = "ollama 0.33.2", context: int | None = 4096
) -> tuple[Answer, list[bytes], HostileModel]:
    sent: list[bytes] = []

    async def send(piece: bytes) -> None:
        sent.append(piece)

    with hostile_model(*behaviours) as model:
        endpoint = Endpoint(model.url.removesuffix("/v1"), "qwen3:8b")
        upstream = OllamaUpstream(endpoint, Lane(FAST), Sampling(num_ctx=4096), 7, context, server)
        answer = asyncio.run(asyncio.wait_for(upstream.answer(request or asked(), send), 15))
    return answer, sent, model


def events(body: bytes) -> list[Any]:
    return [json.loads(part[5:]) for part in body.decode().split("\n\n") if part and part != "data: [DONE]"]


def cause(answer: Answer) -> FailureCause:
    assert answer.failure, answer
    return answer.failure.cause


def test_a_stream_of_lines_becomes_a_stream_of_events() -> None:
    answer, sent, model = met(streams(line(content="Hel"), line(content="lo.", thinking="hm"), line(done=True)))
    assert (answer.failure, answer.status, answer.content_type) == (None, 200, "text/event-stream")
    assert answer.body.endswith(b"data: [DONE]\n\n") and answer.body.startswith(b"".join(sent)) and len(sent) == 2
    found = events(answer.body)
    assert "".join(e["choices"][0]["delta"].get("content") or "" for e in found[:-1]) == "Hello."
    assert found[1]["choices"][0]["delta"]["reasoning"] == "hm"
    assert found[2]["choices"][0]["finish_reason"] == "stop"
    assert (found[3]["choices"], found[3]["usage"]["prompt_tokens"]) == ([], 120)
    assert {e["model"] for e in found} == {"lab"}
    assert answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (120, 9)
    assert answer.usage.told["done_reason"] == "stop"
    head, _ = model.requests[0]
    assert head.startswith("POST /api/chat ")
    (body,) = model.bodies()
    assert body["options"] == {"num_ctx": 4096, "seed": 7} and body["truncate"] is False


def test_two_calls_in_one_message_and_calls_in_two_pieces_keep_their_places() -> None:
    pair = calls(("memory", {"action": "add", "content": "é"}), ("skill", {}))
    for pieces in ([line(tool_calls=pair)], [line(tool_calls=pair[:1]), line(tool_calls=pair[1:])]):
        answer, _, _ = met(streams(*pieces, line(done=True)))
        assert answer.failure is None
        found = [c for e in events(answer.body) if e["choices"] for c in e["choices"][0]["delta"].get("tool_calls", [])]
        assert [(c["index"], c["id"], c["function"]["name"]) for c in found] == [
            (0, "call_lab_2_0", "memory"),
            (1, "call_lab_2_1", "skill"),
        ]
        assert json.loads(found[0]["function"]["arguments"]) == {"action": "add", "content": "é"}
        assert events(answer.body)[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_whole_answer_becomes_one_object_and_the_same_one_each_time() -> None:
    whole = line(done=True, content="Hi.", tool_calls=calls(("memory", {"a": 1})), thinking="so")
    first, _, model = met(answers(200, whole), request=asked(stream=False, tool_choice="required"))
    again, _, _ = met(answers(200, whole), request=asked(stream=False, tool_choice="required"))
    assert first.failure is None and first.body == again.body and first.content_type == "application/json"
    choice = json.loads(first.body)["choices"][0]
    assert (choice["message"]["content"], choice["message"]["reasoning"], choice["finish_reason"]) == (
        "Hi.",
        "so",
        "tool_calls",
    )
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "memory", "arguments": '{"a": 1}'}
    assert json.loads(first.body)["usage"]["total_tokens"] == 129
    assert first.usage and first.usage.told["left_out"] == "tool_choice"
    assert model.bodies()[0]["stream"] is False


def test_a_cut_request_is_an_error_with_the_number_needed_and_its_end_is_never_sent() -> None:
    long = asked(text="word " * 3000)
    answer, sent, _ = met(streams(line(content="Sure"), line(done=True)), request=long)
    assert cause(answer) is FailureCause.CONTEXT
    assert answer.failure and "4096 tokens" in answer.failure.detail and "3001 words" in answer.failure.detail
    assert b'finish_reason": "stop' not in answer.body and answer.body == b"".join(sent)
    assert answer.usage and answer.usage.prompt_tokens == 120
    short, _, _ = met(streams(line(content="Sure"), line(done=True)), request=asked(text="word " * 100))
    assert short.failure is None
    whole, _, _ = met(answers(200, line(done=True)), request=asked(stream=False, text="word " * 3000))
    assert cause(whole) is FailureCause.CONTEXT


def test_an_old_server_is_believed_only_where_a_cut_can_be_excluded() -> None:
    answer, _, _ = met(streams(line(content="Sure"), line(done=True)), server="ollama 0.6.5")
    assert answer.failure is None
    almost = line(done=True).replace(b'"prompt_eval_count": 120', b'"prompt_eval_count": 4000')
    dropped = asked(text="last", messages=[{"role": "user", "content": "é" * 500}, {"role": "user", "content": "last"}])
    assert cause(met(streams(almost), server="ollama 0.6.5", request=dropped)[0]) is FailureCause.CONTEXT
    assert met(streams(almost), request=dropped)[0].failure is None


INSIDE = {"message": "too long", "type": "exceed_context_size_error", "n_prompt_tokens": 351, "n_ctx": 256}
OVERFLOW = {"error": json.dumps({"error": INSIDE})}

FAILURES: dict[str, tuple[Behaviour, bool, FailureCause]] = {
    "unknown model": (answers(404, {"error": "model 'qwen3:8b' not found"}), True, FailureCause.MISSING),
    "no tools": (answers(400, {"error": "qwen3:8b does not support tools"}), True, FailureCause.HTTP_ERROR),
    "500": (answers(500, {"error": "llama runner process has terminated"}), True, FailureCause.HTTP_ERROR),
    "context": (answers(400, OVERFLOW), True, FailureCause.CONTEXT),
    "wrong api": (answers(404, b"404 page not found", content_type="text/plain"), True, FailureCause.HTTP_ERROR),
    "html": (answers(200, b"<!doctype html>\n<h1>Hi</h1>\n", content_type="text/html"), True, FailureCause.GARBAGE),
    "html whole": (answers(200, b"<h1>", content_type="text/html"), False, FailureCause.GARBAGE),
    "not done": (streams(line(content="Hel")), True, FailureCause.STREAM_CUT),
    "not done whole": (answers(200, line(content="Hel")), False, FailureCause.STREAM_CUT),
    "empty": (streams(), True, FailureCause.STREAM_CUT),
    "cut in a line": (streams(line(content="Hel"), b'{"message": {"con'), True, FailureCause.STREAM_CUT),
    "cut in a call": (streams(line(tool_calls=calls(("memory", {}))), ended=False), True, FailureCause.STREAM_CUT),
    "broken line": (streams(line(content="Hel"), b"{oops\n", line(done=True)), True, FailureCause.GARBAGE),
    "error in the stream": (streams(line(content="H"), b'{"error": "CUDA error"}\n'), True, FailureCause.HTTP_ERROR),
    "message no object": (streams(b'{"message": 5}\n'), True, FailureCause.GARBAGE),
    "content no text": (streams(b'{"message": {"content": 5}}\n'), True, FailureCause.GARBAGE),
    "calls no list": (streams(line(tool_calls=5)), True, FailureCause.GARBAGE),
    "deep": (streams(b"[" * 200_000 + b"\n"), True, FailureCause.GARBAGE),
    "killed": (lambda wire: wire.reset(), True, FailureCause.UNREACHABLE),
    "no http": (raw(b"hello\r\n\r\n"), True, FailureCause.GARBAGE),
    "silent": (lambda wire: wire.hang(), True, FailureCause.TIMEOUT),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_failure_has_its_name(name: str) -> None:
    behaviour, stream, expected = FAILURES[name]
    answer, sent, _ = met(behaviour, request=asked(stream=stream))
    assert cause(answer) is expected, answer.failure
    assert answer.body.startswith(b"".join(sent))
    if name == "context":
        assert answer.failure and "the context is 256 tokens, the request needs 351" in answer.failure.detail


def test_a_stream_that_stays_open_after_it_is_done_is_not_waited_for() -> None:
    def stays(wire: Wire) -> None:
        streams(line(content="Hi"), line(done=True), ended=False)(wire)
        wire.hang()

    assert met(stays)[0].failure is None


def test_the_double_that_speaks_ollamas_protocol_is_asked_and_a_cut_is_found_out() -> None:
    """Its version is not one of Ollama's, so that it is believed only where a cut can be excluded."""

    async def unsent(piece: bytes) -> None:
        pass

    with serving() as double:
        double.models["double-chat:latest"] = "a1" * 32
        double.turns = [
            Turn("I save it.", [("memory", {"action": "add"}), ("memory", {"action": "add"})], "hm"),
            Turn("Done."),
        ]
        upstream = OllamaUpstream(
            Endpoint(double.url, "double-chat"), Lane(FAST), Sampling(num_ctx=1024), 7, 1024, "ollama 0.0.0-shim"
        )
        tools = [{"type": "function", "function": {"name": "memory", "parameters": {"type": "object"}}}]
        streamed = asyncio.run(upstream.answer(asked(tools=tools), unsent))
        whole = asyncio.run(upstream.answer(asked(stream=False), unsent))
        cut = asyncio.run(upstream.answer(asked(text="word " * 1200), unsent))
        (first, *_) = double.asked("/api/chat")
    assert streamed.failure is None and whole.failure is None
    said = message_of(streamed.body.decode())
    assert said["content"] == "I save it."
    assert [c["function"]["arguments"] for c in said["tool_calls"]] == ['{"action": "add"}'] * 2
    assert message_of(whole.body.decode())["content"] == "Done."
    assert (first["options"], first["tools"]) == ({"num_ctx": 1024, "seed": 7}, tools)
    assert cause(cut) is FailureCause.CONTEXT
    assert cut.failure and "the context is 1024 tokens" in cut.failure.detail
