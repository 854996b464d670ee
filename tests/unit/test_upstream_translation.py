"""Requests and answers between OpenAI's form and Ollama's, the wording of refusals, and what counts as a cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.errors import InputError
from lab.gateway.answers import FailureCause
from lab.gateway.request import parse_request
from lab.gateway.upstream.limits import Budget, Endpoint, Limits, Spent
from lab.gateway.upstream.ollama_chat import Calls, finish_reason, request_of, unknown_to_ollama
from lab.gateway.upstream.refusals import refusal, reported
from lab.gateway.upstream.truncation import Size, cut, refuses_to_cut, refuses_what_does_not_fit
from lab.gateway.upstream.wire import Unanswered
from lab.models.identity import Sampling
from tests.ollama_shapes import check

TOOL = {
    "type": "function",
    "function": {
        "name": "memory",
        "description": "Saves.",
        "parameters": {
            "type": "object",
            "properties": {"action": {"type": "string", "enum": ["add"]}},
            "required": ["action"],
        },
    },
}
LOOK = [
    {"type": "text", "text": "Look:"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
]
SAVE = {"name": "memory", "arguments": '{"action": "add", "n": [1, "é"]}'}
CONVERSATION = [
    {"role": "developer", "content": "You are an agent."},
    {"role": "user", "content": LOOK},
    {
        "role": "assistant",
        "content": None,
        "reasoning": "hm",
        "tool_calls": [
            {"id": "a1", "type": "function", "function": SAVE},
            {"id": "a2", "type": "function", "function": {"name": "skill", "arguments": "{broken"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a2", "content": "saved"},
]


def translated(**more: Any) -> dict[str, Any]:
    return request_of({"model": "lab", "messages": CONVERSATION, **more}, "qwen3:8b", Sampling(num_ctx=8192), 7)


def test_a_conversation_with_tools_is_translated() -> None:
    asked = translated(tools=[TOOL], stream=True)
    assert asked["messages"] == [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Look:", "images": ["QUJD"]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {"id": "a1", "function": {"name": "memory", "arguments": {"action": "add", "n": [1, "é"]}}},
                {"id": "a2", "function": {"name": "skill", "arguments": {"arguments": "{broken"}}},
            ],
        },
        {"role": "tool", "content": "saved", "tool_call_id": "a2", "tool_name": "skill"},
    ]
    assert (asked["model"], asked["tools"], asked["stream"]) == ("qwen3:8b", [TOOL], True)
    assert (asked["truncate"], asked["shift"]) == (False, False)


def test_the_official_client_takes_a_translated_request_for_its_own() -> None:
    ollama = pytest.importorskip("ollama", reason="pip install 'agent-memory-lab[bench]'")
    asked = translated(tools=[TOOL], temperature=0.5, max_tokens=50)
    for message in asked["messages"]:
        message.pop("images", None)  # the client has a class of its own for them, which becomes the same text
        ollama.Message.model_validate(message)
    for tool in asked["tools"]:
        assert ollama.Tool.model_validate(tool).function.name == "memory"
    known = set(ollama.Options.model_fields)
    assert asked["options"] and set(asked["options"]) <= known


def test_a_translated_request_fits_ollamas_published_description_but_for_what_it_leaves_out() -> None:
    asked = translated(tools=[TOOL], temperature=0.5, response_format={"type": "json_object"})
    assert asked.pop("truncate") is False and asked.pop("shift") is False
    for message in asked["messages"]:
        # In the source of Ollama and in its official client, though not in its description.
        for name in ("thinking", "tool_name", "tool_call_id"):
            message.pop(name, None)
        for call in message.get("tool_calls", []):
            call.pop("id")
    check("ChatRequest", asked, "options", "tools")


def test_options_stand_where_ollama_reads_them_and_the_labs_win() -> None:
    sampling = Sampling(temperature=0, top_k=1, num_ctx=4096)
    agents = {"messages": [], "temperature": 0.9, "top_p": 0.8, "max_tokens": 65536, "stop": ["x"], "seed": 1}
    asked = request_of(agents, "m", sampling, 7)
    expected = {
        "temperature": 0,
        "top_k": 1,
        "top_p": 0.8,
        "num_predict": 65536,
        "num_ctx": 4096,
        "seed": 7,
        "stop": ["x"],
    }
    assert asked["options"] == expected
    assert not {"temperature", "num_ctx", "seed", "max_tokens"} & set(asked)
    assert request_of(agents, "m", Sampling(max_tokens=5), None)["options"]["num_predict"] == 5


def test_formats_and_tool_choice() -> None:
    schema = {"type": "object"}
    assert translated(response_format={"type": "json_object"})["format"] == "json"
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert translated(response_format=wanted)["format"] == schema
    assert "format" not in translated(response_format={"type": "text"})
    assert "tools" not in translated(tools=[TOOL], tool_choice="none")


def test_what_ollama_has_no_word_for_is_named() -> None:
    body = {"model": "m", "messages": [], "tool_choice": "required", "logit_bias": {}, "metadata": None, "stream": True}
    assert unknown_to_ollama(body) == "logit_bias, tool_choice"
    assert unknown_to_ollama({"messages": [], "tool_choice": "auto"}) == ""


def test_calls_have_ids_by_their_place_and_arguments_as_text() -> None:
    calls = Calls(5)
    first = calls.of(
        {"tool_calls": [{"function": {"name": "a", "arguments": {"t": "é", "n": 1}}}, {"function": {"name": "b"}}]}
    )
    second = calls.of({"tool_calls": [{"id": "x", "function": {"name": "c", "arguments": "{no json"}}]})
    assert [c["id"] for c in first + second] == ["call_lab_5_0", "call_lab_5_1", "call_lab_5_2"]
    assert [c["function"]["arguments"] for c in first + second] == ['{"t": "é", "n": 1}', "{}", "{no json"]
    assert calls.of({}) == [] and calls.count == 3
    for hostile in ({"tool_calls": 5}, {"tool_calls": [5]}, {"tool_calls": [{"function": {"name": 5}}]}):
        with pytest.raises(Unanswered):
            Calls(1).of(hostile)


def test_why_an_answer_ended() -> None:
    assert [finish_reason(r, c) for r, c in (("stop", 0), ("length", 0), ("stop", 2), (None, 0), ("load", 0))] == [
        "stop", "length", "tool_calls", "stop", "stop",
    ]  # fmt: skip


def error(message: str, **more: Any) -> str:
    return json.dumps({"error": {"message": message, **more}})


LLAMA = {
    "error": {
        "code": 400,
        "message": "request (2031 tokens) exceeds the available context size (1024 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 2031,
        "n_ctx": 1024,
    }
}
OVERFLOWS = {
    "llama.cpp": (json.dumps(LLAMA), 1024, 2031),
    "llama.cpp older": (
        error("the request exceeds the available context", n_prompt_tokens=2031, n_ctx=1024),
        1024,
        2031,
    ),
    "ollama on llama.cpp": (json.dumps({"error": json.dumps(LLAMA)}), 1024, 2031),
    "openai": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 10011 tokens.",
        8192,
        10011,
    ),
    "openai with answer": (
        "This model's maximum context length is 4097 tokens. However, you requested 4927 tokens (3927 in the messages,"
        " 1000 in the completion). Please reduce the length of the messages or completion.",
        4097,
        3927,
    ),
    "vllm": (
        "This model's maximum context length is 200 tokens. However, your request has 203 input tokens.",
        200,
        203,
    ),
    "vllm max_tokens": (
        "'max_tokens' or 'max_completion_tokens' is too large: 65536. This model's maximum context length is 32768"
        " tokens and your request has 6203 input tokens (65536 > 32768 - 6203).",
        32768,
        6203,
    ),
    "vllm passed": (
        "You passed 130049 input tokens and requested 1024 output tokens. However, the model's context length is only"
        " 131072 tokens, resulting in a maximum input length of 130048 tokens.",
        131072,
        130049,
    ),
    "sglang": (
        "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of"
        " 140000 tokens: 123616 tokens from the input messages and 16384 tokens for the completion.",
        131072,
        123616,
    ),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_context_too_small_is_read_with_its_numbers(name: str) -> None:
    told, offered, needed = OVERFLOWS[name]
    forms = (
        [told] if told.startswith("{") else [error(told), json.dumps({"object": "error", "message": told, "code": 400})]
    )
    for body in forms:
        failure, final = refusal(400, body.encode(), "m", 40_000)
        assert final and failure.cause is FailureCause.CONTEXT
        assert failure.detail.startswith(f"the context is {offered} tokens, the request needs {needed}, ")
        assert "estimate" not in failure.detail


@pytest.mark.parametrize("code", ["context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"])
@pytest.mark.parametrize("key", ["code", "type"])
def test_a_context_too_small_is_read_from_its_code_alone(code: str, key: str) -> None:
    assert refusal(400, error("too long", **{key: code}).encode(), "m", 4000)[0].cause is FailureCause.CONTEXT


def test_a_number_that_is_not_told_is_estimated_and_said_to_be() -> None:
    body = json.dumps({"error": "the input length exceeds the context length"}).encode()
    failure, _ = refusal(400, body, "m", 40_000)
    assert failure.cause is FailureCause.CONTEXT
    assert "about 10000 (an estimate from its size)" in failure.detail


@pytest.mark.parametrize(
    "message",
    [
        "model requires more system memory (9 GiB); a smaller context window may help",
        "Unknown field: context",
        "max_tokens must be at least 1",
        "registry.ollama.ai/library/gemma3:4b does not support tools",
        "the context was cancelled",
    ],
)
def test_other_errors_are_no_matter_of_context(message: str) -> None:
    assert refusal(400, error(message).encode(), "gemma3:4b", 4000)[0].cause is FailureCause.HTTP_ERROR
    assert reported(message, "gemma3:4b", 4000).cause is FailureCause.HTTP_ERROR


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (404, json.dumps({"error": 'model "qwen3:8b" not found, try pulling it first'}), FailureCause.MISSING),
        (404, json.dumps({"error": "model 'qwen3:8b' not found"}), FailureCause.MISSING),
        (404, error("The model `qwen3:8b` does not exist."), FailureCause.MISSING),
        (404, error("The model `other` does not exist."), FailureCause.HTTP_ERROR),
        (404, json.dumps({"detail": "Not Found"}), FailureCause.HTTP_ERROR),
        (404, "404 page not found", FailureCause.HTTP_ERROR),
        (400, json.dumps([[[]]]), FailureCause.HTTP_ERROR),
        (400, '{"error": {"error": {"error": {"error": {"error": 5}}}}}', FailureCause.HTTP_ERROR),
        (500, '{"error": {"message": "x", "n_ctx": true}}', FailureCause.HTTP_ERROR),
        (400, '{"error": {"type": "exceed_context_size_error", "n_ctx": "many"}}', FailureCause.CONTEXT),
    ],
)
def test_refusals_are_told_apart(status: int, body: str, cause: FailureCause) -> None:
    assert refusal(status, body.encode(), "qwen3:8b", 4000)[0].cause is cause


WORDS = "word " * 3000
CHAT = [
    {"role": "system", "content": WORDS},
    {"role": "user", "content": "a b c"},
    {"role": "user", "content": "review"},
]


def size(*messages: dict[str, Any]) -> Size:
    body = json.dumps({"messages": messages}).encode()
    return Size.of(parse_request(body), body)


@pytest.mark.parametrize(
    ("read", "context", "certain", "told"),
    [
        (3100, 8192, True, ""),
        (3100, None, True, ""),
        (3100, 8192, False, ""),
        (4096, 4096, True, "whole context"),
        (4095, 4096, True, "whole context"),
        (4090, 4096, True, ""),
        (2050, 4096, True, "fewer than its 3004 words"),
        (1, 8192, True, "fewer than its 3004 words"),
        (None, 8192, True, "does not tell"),
        (0, 8192, True, "does not tell"),
        (3100, None, False, "num_ctx would exclude"),
        (3100, 3110, False, "may have been left out"),
        (3100, 3110, True, ""),
    ],
)
def test_a_cut_is_seen_by_the_count(read: int | None, context: int | None, certain: bool, told: str) -> None:
    reason = cut(size(*CHAT), read, context, certain)
    assert told in reason and bool(told) is bool(reason)
    if reason:
        assert f"about {size(*CHAT).estimate} (an estimate" in reason


def test_half_a_context_is_a_cut_only_where_the_request_may_have_been_longer() -> None:
    dense = {"role": "user", "content": "x" * 20_000}
    assert "half of the context" in cut(size(dense), 2050, 4096, True)
    assert cut(size({"role": "user", "content": "y" * 4000}), 2050, 4096, True) == ""


def test_what_a_template_may_leave_out_is_not_counted() -> None:
    called = {"role": "assistant", "content": WORDS, "tool_calls": [{}]}
    assert size(called, CHAT[1]).least == 3
    assert cut(size(called, CHAT[1]), 40, 8192, True) == ""


@pytest.mark.parametrize(
    ("server", "certain"),
    [
        ("ollama 0.13.0", True),
        ("ollama 0.30.4-rc1", True),
        ("ollama 1.0.0", True),
        ("ollama 0.12.11", False),
        ("ollama 0.0.0-shim", False),
        ("", False),
    ],
)
def test_which_servers_make_an_error_of_what_they_would_cut(server: str, certain: bool) -> None:
    assert refuses_to_cut(server) is certain


def test_servers_that_are_known_to_refuse_are_believed() -> None:
    assert all(refuses_what_does_not_fit(server) for server in ("llama.cpp b9999", "vllm 0.15.0"))
    assert not any(refuses_what_does_not_fit(server) for server in ("", "LM Studio", "ollama 0.33.2"))


def test_waits_double_and_are_bounded() -> None:
    limits = Limits(first_wait=0.5, longest_wait=3)
    assert [limits.wait(n) for n in (1, 2, 3, 4, 50)] == [0.5, 1, 2, 3, 3]


def test_money_is_counted_by_a_million_tokens() -> None:
    budget = Budget(cost=1.5, input_price=2, output_price=10)
    assert Spent(500_000, 49_999).overrun(budget) == "" and Spent(500_000, 50_000).overrun(budget)
    assert Spent(1 << 40, 1 << 40).overrun(Budget()) == ""


def test_a_key_is_shown_nowhere_and_one_that_is_no_word_is_refused_without_being_shown() -> None:
    assert "otter40" not in repr(Endpoint("http://h/v1", "m", "sk-otter40"))
    for key in ("sk-otter40\n", "sk otter40", "sk-\x00otter40"):
        with pytest.raises(InputError) as refused:
            Endpoint("http://h/v1", "m", key)
        assert "otter40" not in str(refused.value)
