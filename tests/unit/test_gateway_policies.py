"""Policies are pure functions of request and scenario; always-write writes exactly when it sees the content."""

from __future__ import annotations

import json

import pytest

from lab.errors import InputError
from lab.gateway.policies.base import Script
from lab.gateway.policies.scripted import POLICIES, policy_named
from lab.gateway.replies import Reply, ToolCall, encode
from lab.gateway.request import ChatRequest, Message

SCRIPT = Script(
    turns=(("Read: do X with otter40", "Done."),),
    content="do X with otter40",
    stored="X is done with otter40.",
    paraphrase="OTTER-40 does X.",
    target="user",
)
STATED = Script(**{**vars(SCRIPT), "user_stated": True})


def review(*messages: Message) -> tuple[ChatRequest, int]:
    prompt = Message("user", "Review …")
    known = (Message("system", "do X with otter40"), *messages, prompt)
    return ChatRequest("m", known, ("memory",), True, {}), len(known) - 1


SEEN = review(Message("user", "Read: do X with otter40"), Message("assistant", "ok"))
UNSEEN = review(Message("user", "Read: otter40 is a file"), Message("assistant", "do X with otter40"))


def calls(name: str, asked: tuple[ChatRequest, int], script: Script) -> tuple[ToolCall, ...]:
    return POLICIES[name](*asked, script).calls


def test_always_write_writes_what_it_sees_and_nothing_else() -> None:
    (call,) = calls("always-write", SEEN, SCRIPT)
    assert call == ToolCall("memory", {"action": "add", "target": "user", "content": "X is done with otter40."})
    assert not calls("always-write", UNSEEN, SCRIPT)


def test_never_write_writes_nothing() -> None:
    assert not calls("never-write", SEEN, SCRIPT)
    assert not calls("never-write", SEEN, STATED)


def test_faithful_stores_only_what_the_user_stated() -> None:
    assert not calls("faithful", SEEN, SCRIPT)
    assert calls("faithful", SEEN, STATED)
    assert not calls("faithful", UNSEEN, STATED)


def test_paraphrase_uses_other_words() -> None:
    (call,) = calls("paraphrase", SEEN, SCRIPT)
    assert call.arguments["content"] == "OTTER-40 does X."
    assert not calls("paraphrase", UNSEEN, SCRIPT)


@pytest.mark.parametrize("name", ["always-write", "paraphrase"])
def test_a_policy_writes_once(name: str) -> None:
    asked, prompt = SEEN
    answered = (Message("assistant", "", tool_calls=({"id": "1"},)), Message("tool", "{}", tool_call_id="1"))
    later = ChatRequest("m", (*asked.messages, *answered), ("memory",), True, {})
    assert not POLICIES[name](later, prompt, SCRIPT).calls


def test_an_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"sometimes.*always-write, faithful, never-write, paraphrase"):
        policy_named("sometimes")


@pytest.mark.parametrize("stream", [True, False])
def test_the_same_reply_has_the_same_bytes_and_reads_back(stream: bool) -> None:
    from lab.gateway.exchange import Body, Exchange, RequestClass, response_message

    asked = ChatRequest("m", (Message("user", "x"),), (), stream, {})
    reply = Reply("sê", (ToolCall("memory", {"content": "ü\u202e"}),))
    kind, data = encode(reply, asked)
    assert (kind, data) == encode(reply, asked)
    exchange = Exchange(
        seq=1,
        phase="session",
        method="POST",
        path="/",
        kind=RequestClass.REVIEW,
        request=Body.of(b""),
        status=200,
        response=Body.of(data),
    )
    message = response_message(exchange)
    assert message["content"] == "sê"
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"content": "ü\u202e"}
