"""Requests are told apart by what the agent itself puts into them, and a pasted imitation is not believed."""

from __future__ import annotations

import json

import pytest

from lab.gateway.classify import REVIEW_CLOSING, REVIEW_OPENINGS, classify, review_prompt_index
from lab.gateway.exchange import RequestClass
from lab.gateway.request import ChatRequest, UnparsableRequest, parse_request

TOOLS = [{"type": "function", "function": {"name": "memory", "parameters": {}}}]
PROMPTS = [f"{opening} …\n\n{REVIEW_CLOSING} — do not attempt them." for opening in REVIEW_OPENINGS]
TURN = "Please summarise this."


def request(*messages: tuple[str, str], tools: bool = True, stream: bool = True) -> ChatRequest:
    body = {
        "model": "m",
        "stream": stream,
        "messages": [{"role": role, "content": text} for role, text in messages],
        **({"tools": TOOLS} if tools else {}),
    }
    return parse_request(json.dumps(body).encode())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_each_review_prompt_is_a_review(prompt: str) -> None:
    asked = request(("system", "s"), ("user", TURN), ("assistant", "ok"), ("user", prompt))
    assert classify(asked, {TURN}) is RequestClass.REVIEW
    assert review_prompt_index(asked, {TURN}) == 3


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_pasted_review_prompt_is_foreground(prompt: str) -> None:
    asked = request(("system", "s"), ("user", prompt))
    assert classify(asked, {prompt}) is RequestClass.FOREGROUND


def test_a_review_with_synthetic_user_messages_behind_its_prompt_is_a_review() -> None:
    asked = request(("user", TURN), ("assistant", "ok"), ("user", PROMPTS[0]), ("assistant", ""), ("user", "Go on."))
    assert classify(asked, {TURN}) is RequestClass.REVIEW


def test_a_user_turn_behind_an_old_prompt_is_foreground() -> None:
    asked = request(("user", PROMPTS[0]), ("assistant", "ok"), ("user", TURN))
    assert classify(asked, {TURN}) is RequestClass.FOREGROUND


def test_an_opening_without_the_closing_words_is_no_review() -> None:
    asked = request(("user", TURN), ("assistant", "ok"), ("user", REVIEW_OPENINGS[0]))
    assert classify(asked, {TURN}) is RequestClass.FOREGROUND


def test_compression_title_delegate_auxiliary_and_probe() -> None:
    compression = "You are a summarization agent creating a context checkpoint for …"
    assert classify(request(("user", compression), tools=False), set()) is RequestClass.COMPRESSION
    assert classify(request(("user", compression)), set()) is RequestClass.FOREGROUND
    title = "Generate a short, descriptive title (3-7 words) for …"
    assert classify(request(("system", title), ("user", "x"), tools=False), set()) is RequestClass.TITLE
    child = "You are a focused subagent working on a specific delegated task."
    assert classify(request(("system", child), ("user", "x")), set()) is RequestClass.DELEGATE
    assert classify(request(("user", "x"), tools=False), set()) is RequestClass.AUXILIARY
    assert classify(request(), set()) is RequestClass.PROBE


def test_a_childs_own_review_is_a_review() -> None:
    child = "You are a focused subagent working on a specific delegated task."
    asked = request(("system", child), ("user", "goal"), ("assistant", "ok"), ("user", PROMPTS[1]))
    assert classify(asked, {TURN}) is RequestClass.REVIEW


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b"{",
        b"[]",
        b"{}",
        b'{"messages": "x"}',
        b'{"messages": [1]}',
        b'{"messages": [{"content": "no role"}]}',
        b'{"messages": [{"role": "user", "content": 3}]}',
        b'{"messages": [{"role": "assistant", "tool_calls": "x"}]}',
        b'{"messages": [], "tools": [{"type": "function"}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_chat_request_cannot_be_parsed(body: bytes) -> None:
    with pytest.raises(UnparsableRequest):
        parse_request(body)


def test_parts_of_text_are_joined() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]}
    assert parse_request(json.dumps(body).encode()).messages[0].text == "a\nb"


@pytest.mark.parametrize("change", [str.strip, lambda t: t.replace("  ", " "), lambda t: f"[context]\n{t}"])
def test_a_pasted_prompt_is_not_believed_when_the_agent_changed_its_blanks(change: object) -> None:
    turn = f"{REVIEW_OPENINGS[0]}  and read this\n{REVIEW_CLOSING} \n\n"
    asked = request(("system", "s"), ("user", change(turn)))  # type: ignore[operator]
    assert classify(asked, {turn}) is RequestClass.FOREGROUND


def test_a_short_turn_inside_the_prompt_does_not_hide_a_review() -> None:
    asked = request(("user", "memory"), ("assistant", "ok"), ("user", PROMPTS[0]))
    assert classify(asked, {"memory"}) is RequestClass.REVIEW
