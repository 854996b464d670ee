"""A real model on a real llama.cpp server: streaming, counts, a context too small, and an answer held to a schema.

The model is far too weak to be an agent's brain. What it says is not looked at, only what the server makes of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.gateway.answer_message import message_of
from lab.gateway.answers import Answer, Asked, FailureCause
from lab.gateway.exchange import RequestClass
from lab.gateway.request import parse_request
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Endpoint, Limits
from lab.gateway.upstream.openai import OpenAIUpstream
from lab.models.identity import Sampling
from tests.doubles.llama_server import CALLING_TEMPLATE, MEMORY_SAID, llama_server, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "-")

CONTEXT = 512
SCHEMA = {
    "type": "object",
    "properties": {"action": {"const": "add"}, "target": {"enum": ["memory", "user"]}},
    "required": ["action", "target"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with llama_server(CONTEXT) as url:
        yield url


def ask(
    url: str, text: str = "Say hi.", stream: bool = True, tokens: int = 6, **more: Any
) -> tuple[Answer, list[bytes]]:
    data = json.dumps(
        {"model": "lab", "messages": [{"role": "user", "content": text}], "stream": stream, **more}
    ).encode()
    asked = Asked(RequestClass.REVIEW, parse_request(data), data, "session")
    sent: list[bytes] = []

    async def send(piece: bytes) -> None:
        sent.append(piece)

    upstream = OpenAIUpstream(
        Endpoint(url, "smollm2"), Lane(Limits(asks=1)), Sampling(temperature=0, max_tokens=tokens), seed=3
    )
    return asyncio.run(upstream.answer(asked, send)), sent


def test_a_stream_comes_piece_by_piece_and_is_counted(server: str) -> None:
    answer, sent = ask(server)
    assert answer.failure is None and answer.body.endswith(b"data: [DONE]\n\n")
    assert len(sent) > 3 and answer.body.startswith(b"".join(sent)) and b"[DONE]" not in b"".join(sent)
    assert message_of(answer.body.decode())["content"]
    usage = answer.usage
    assert usage and usage.prompt_tokens and 10 < usage.prompt_tokens < 100 and usage.completion_tokens == 6
    assert usage.seconds > 0 and usage.told["finish_reason"] == "length"
    assert json.loads(usage.told["timings"])["predicted_n"] == 6


def test_the_same_request_gets_the_same_words_at_temperature_zero(server: str) -> None:
    streamed, _ = ask(server)
    whole, _ = ask(server, stream=False)
    assert whole.failure is None and whole.content_type == "application/json"
    assert message_of(whole.body.decode())["content"] == message_of(streamed.body.decode())["content"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_context_too_small_is_an_error_with_the_servers_own_number(server: str, stream: bool) -> None:
    answer, sent = ask(server, "word " * 700, stream)
    assert answer.failure and answer.failure.cause is FailureCause.CONTEXT and not sent
    assert answer.failure.detail.startswith(f"the context is {CONTEXT} tokens, the request needs 7")
    assert "estimate" not in answer.failure.detail


def test_a_schema_is_passed_on_whole_and_holds_the_answer(server: str) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "memory", "schema": SCHEMA, "strict": True}}
    answer, _ = ask(server, "Save it.", tokens=48, response_format=wanted)
    assert answer.failure is None
    call = json.loads(message_of(answer.body.decode())["content"])
    assert call["action"] == "add" and call["target"] in {"memory", "user"}


def test_a_call_held_to_the_schema_of_a_tool_is_passed_on_whole_and_followed_by_words() -> None:
    properties = {"action": {"enum": ["add"]}, "target": {"enum": ["memory", "user"]}, "content": {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": ["target"]}
    tools = [{"type": "function", "function": {"name": "memory", "parameters": parameters}}]
    with llama_server(CONTEXT, CALLING_TEMPLATE) as url:
        streamed, _ = ask(url, "Review it.", tokens=96, tools=tools)
        whole, _ = ask(url, "Review it.", False, tokens=96, tools=tools)
        (call,) = message_of(streamed.body.decode())["tool_calls"]
        said = [{"role": "assistant", "content": None, "tool_calls": [call | {"type": "function"}]}]
        result = [{"role": "tool", "tool_call_id": call["id"], "content": "saved"}]
        after, _ = ask(url, tokens=4, tools=tools, messages=[{"role": "user", "content": "x"}, *said, *result])
    assert call["function"]["name"] == "memory"
    assert json.loads(call["function"]["arguments"]) == {"target": "memory", "action": "add", "content": MEMORY_SAID}
    (same,) = message_of(whole.body.decode())["tool_calls"]
    assert same["function"] == call["function"]
    assert streamed.usage and streamed.usage.told["finish_reason"] == "tool_calls"
    assert after.failure is None and not message_of(after.body.decode())["tool_calls"]


def test_a_server_that_has_ended_is_unreachable() -> None:
    with llama_server(CONTEXT) as url:
        assert ask(url, tokens=1)[0].failure is None
    answer, _ = ask(url, tokens=1)
    assert answer.failure and answer.failure.cause is FailureCause.UNREACHABLE
