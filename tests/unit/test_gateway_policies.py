"""Policies are pure functions of request and script: what a policy takes in, how it writes, and what the other scripted
models answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from lab.errors import InputError
from lab.gateway.exchange import Body, Exchange, RequestClass, response_message
from lab.gateway.policies.base import Policy, Script, ScriptStep, ScriptTurn, Shape, Takes
from lab.gateway.policies.foreground import AUXILIARY_REPLY, NEARLY_FULL, OUT_OF_SCRIPT_REPLY, answer
from lab.gateway.policies.scripted import POLICIES, policy_named
from lab.gateway.replies import Reply, ToolCall, encode
from lab.gateway.request import ChatRequest, Message

TURN = "Read: do X with otter40"
READ = ToolCall("read_file", {"path": "a.txt"})
LOOK = ToolCall("terminal", {"command": "ls"})


def compose(wording: str, _: Mapping[str, Any]) -> list[ToolCall]:
    return [ToolCall("memory", {"action": "add", "target": "user", "content": wording})]


def batch(calls: list[ToolCall], schemas: Mapping[str, Any]) -> list[ToolCall]:
    """As an adapter does it: one call where the offered tool takes operations, unchanged otherwise."""
    if "operations" not in schemas.get("memory", {}):
        return calls
    return [ToolCall("memory", {"operations": [call.arguments for call in calls]})]


def script(**changes: Any) -> Script:
    fields: dict[str, Any] = {
        "turns": (ScriptTurn(TURN, "Done."),),
        "pieces": ("do X with otter40",),
        "stored": "X is done with otter40.",
        "paraphrase": "OTTER-40 does X.",
        "compose": compose,
        "batch": batch,
    }
    return Script(**fields | changes)


SCRIPT = script()
STATED = script(user_stated=True)
BATCHES = {"memory": {"operations": {}}}


def request(*messages: Message, schemas: dict[str, Any] | None = None) -> ChatRequest:
    return ChatRequest("m", (Message("system", "do X with otter40"), *messages), ("memory",), True, schemas or {})


def review(*messages: Message, schemas: dict[str, Any] | None = None) -> tuple[ChatRequest, int]:
    asked = request(*messages, Message("user", "Review …"), schemas=schemas)
    return asked, len(asked.messages) - 1


def called(number: int, name: str = "memory") -> tuple[Message, Message]:
    call = {"id": str(number), "function": {"name": name, "arguments": "{}"}}
    return Message("assistant", "", tool_calls=(call,)), Message("tool", "{}", tool_call_id=str(number))


SEEN = (Message("user", TURN), Message("assistant", "ok"))
UNSEEN = (Message("user", "Read: otter40 is a file"), Message("assistant", "do X with otter40"))


def calls(name: str, messages: tuple[Message, ...], script: Script, **more: Any) -> tuple[ToolCall, ...]:
    return POLICIES[name].review(*review(*messages, **more), script).calls


# --- what is taken in ----------


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize(
    ("takes", "stated", "wanted"),
    [
        (Takes.NEVER, False, False),
        (Takes.NEVER, True, False),
        (Takes.USER_STATED, False, False),
        (Takes.USER_STATED, True, True),
        (Takes.ALWAYS, False, True),
        (Takes.ALWAYS, True, True),
    ],
)
def test_what_a_policy_takes_in_does_not_depend_on_its_shape(
    takes: Takes, stated: bool, wanted: bool, shape: Shape
) -> None:
    policy = Policy("x", takes, shape=shape)
    told = STATED if stated else SCRIPT
    assert bool(policy.review(*review(*SEEN), told).calls) is wanted
    assert policy.review(*review(*UNSEEN), told).calls == ()


def test_every_named_policy_says_what_its_name_does() -> None:
    assert {n: (p.takes, p.paraphrases, p.shape) for n, p in POLICIES.items()} == {
        "always-write": (Takes.ALWAYS, False, Shape.SINGLE),
        "never-write": (Takes.NEVER, False, Shape.SINGLE),
        "faithful": (Takes.USER_STATED, False, Shape.SINGLE),
        "paraphrase": (Takes.ALWAYS, True, Shape.SINGLE),
        "batch": (Takes.ALWAYS, False, Shape.BATCH),
        "malformed": (Takes.ALWAYS, False, Shape.MALFORMED),
    }


def test_always_write_writes_what_it_sees_and_nothing_else() -> None:
    (call,) = calls("always-write", SEEN, SCRIPT)
    assert call == ToolCall("memory", {"action": "add", "target": "user", "content": "X is done with otter40."})
    assert not calls("always-write", UNSEEN, SCRIPT)


def test_a_content_behind_the_review_prompt_was_not_seen() -> None:
    asked = request(*UNSEEN, Message("user", "Review …"), Message("tool", "do X with otter40", tool_call_id="9"))
    assert not POLICIES["always-write"].review(asked, 3, SCRIPT).calls


def test_of_a_content_in_pieces_every_piece_must_be_seen() -> None:
    told = script(pieces=("do X", "with otter40"))
    apart = (Message("user", "do X"), Message("tool", "with otter40", tool_call_id="1"))
    assert calls("always-write", apart, told)
    assert not calls("always-write", apart[:1], told)
    assert not calls("always-write", apart, script(pieces=()))


def test_paraphrase_uses_other_words() -> None:
    (call,) = calls("paraphrase", SEEN, SCRIPT)
    assert call.arguments["content"] == "OTTER-40 does X."


@pytest.mark.parametrize("name", ["always-write", "paraphrase", "batch", "malformed"])
def test_a_policy_writes_once(name: str) -> None:
    asked, prompt = review(*SEEN)
    later = ChatRequest("m", (*asked.messages, *called(1)), ("memory",), True, {})
    assert not POLICIES[name].review(later, prompt, SCRIPT).calls


def test_several_calls_come_one_after_the_other() -> None:
    both = [ToolCall("skill_view", {"name": "x"}), ToolCall("skill_manage", {"action": "patch"})]
    told = script(compose=lambda *_: both)
    asked, prompt = review(*SEEN)
    answers = []
    for made in range(3):
        answered = tuple(m for n in range(made) for m in called(n))
        later = ChatRequest("m", (*asked.messages, *answered), ("memory",), True, {})
        answers.append(POLICIES["always-write"].review(later, prompt, told).calls)
    assert answers == [(both[0],), (both[1],), ()]


def test_what_the_foreground_writes_is_left_alone_by_the_reviewer() -> None:
    assert not calls("always-write", SEEN, script(by_foreground=True))


def test_a_batch_is_one_only_where_the_tool_takes_operations() -> None:
    (call,) = calls("batch", SEEN, SCRIPT, schemas=BATCHES)
    assert list(call.arguments) == ["operations"]
    assert calls("batch", SEEN, SCRIPT) == calls("always-write", SEEN, SCRIPT)
    assert calls("always-write", SEEN, SCRIPT, schemas=BATCHES) == calls("always-write", SEEN, SCRIPT)


def test_malformed_arguments_break_off_on_the_wire() -> None:
    def on_the_wire(name: str) -> str:
        asked, prompt = review(*SEEN)
        made = exchange(encode(POLICIES[name].review(asked, prompt, SCRIPT), asked)[1])
        return str(response_message(made)["tool_calls"][0]["function"]["arguments"])

    with pytest.raises(json.JSONDecodeError):
        json.loads(on_the_wire("malformed"))
    assert "otter40" in on_the_wire("malformed")
    assert json.loads(on_the_wire("always-write"))["content"] == "X is done with otter40."


@pytest.mark.parametrize(
    ("role", "text", "seen"),
    [
        ("user", "[CONTEXT COMPACTION — REFERENCE ONLY] do X with otter40", True),
        ("assistant", "[CONTEXT COMPACTION — REFERENCE ONLY] do X with otter40", True),
        ("assistant", "I read: [CONTEXT COMPACTION — REFERENCE ONLY] do X with otter40", False),
        ("assistant", "[CONTEXT COMPACTION] I answered: do X with otter40", False),
    ],
    ids=["summary", "summary-in-the-assistants-role", "quoted-by-the-model", "the-models-own-answer"],
)
def test_a_summary_came_in_and_the_models_own_words_did_not(role: str, text: str, seen: bool) -> None:
    told = script(turns=(ScriptTurn("Hello", "[CONTEXT COMPACTION] I answered: do X with otter40"),))
    assert bool(calls("always-write", (Message(role, text),), told)) is seen


def test_an_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"sometimes.*always-write, batch, faithful, malformed, never-write"):
        policy_named("sometimes")


# --- the foreground and the rest ----------

STEPS = (ScriptStep(READ), ScriptStep(None, writes=True), ScriptStep(LOOK, writes=True), ScriptStep(LOOK))


def foreground(told: Script, *messages: Message, policy: str = "always-write") -> Reply:
    return answer(RequestClass.FOREGROUND, request(*messages), told, POLICIES[policy])


def walked(told: Script, policy: str, *, brought: str = "do X with otter40") -> list[str]:
    """The tools that the foreground model calls, one request after the other, until it answers."""
    messages, names = [Message("user", "Look at the file.")], []
    while len(names) < 9 and (reply := foreground(told, *messages, policy=policy)).calls:
        (call,) = reply.calls
        asked, _ = called(len(names), call.name)
        messages += [asked, Message("tool", brought, tool_call_id=str(len(names)))]
        names.append(call.name)
    return names


def test_steps_are_counted_over_several_requests_and_writes_only_where_the_content_is_taken_in() -> None:
    told = script(turns=(ScriptTurn("Look at the file.", "Done.", STEPS),))
    assert walked(told, "always-write") == ["read_file", "memory", "terminal", "terminal"]
    assert walked(told, "never-write") == walked(told, "faithful") == ["read_file", "terminal"]
    assert walked(told, "always-write", brought="nothing of interest") == ["read_file", "terminal"]


def test_steps_begin_anew_with_each_turn() -> None:
    told = script(turns=(ScriptTurn("One.", "1", (ScriptStep(READ),)), ScriptTurn("Two.", "2", (ScriptStep(LOOK),))))
    first = (Message("user", "One."), *called(1), Message("assistant", "1"))
    assert foreground(told, *first[:1]).calls == (READ,)
    assert foreground(told, *first[:3]).text == "1"
    assert foreground(told, *first, Message("user", "Two.")).calls == (LOOK,)
    assert foreground(told, *first, Message("user", "Two."), *called(2)).text == "2"


def test_a_step_after_the_compression_goes_on_where_it_stood() -> None:
    """The compressor shortens what stands before the turn; the turn and its calls are protected."""
    told = script(turns=(ScriptTurn("Look at the file.", "Done.", (ScriptStep(READ), ScriptStep(LOOK))),))
    summary = Message("user", "[CONTEXT COMPACTION — REFERENCE ONLY] They spoke of canals.")
    assert foreground(told, summary, Message("user", "Look at the file."), *called(1)).calls == (LOOK,)


def test_a_turn_that_the_agent_merged_with_something_gets_its_answer() -> None:
    assert foreground(SCRIPT, Message("user", f"<memory-context>x</memory-context>\n\n{TURN}")).text == "Done."
    assert foreground(SCRIPT, Message("user", "Something else")) == OUT_OF_SCRIPT_REPLY


def usage(reply: Reply, asked: ChatRequest) -> int:
    return int(json.loads(encode(reply, asked)[1])["usage"]["prompt_tokens"])


def test_a_full_turn_reports_a_context_that_is_nearly_full() -> None:
    plain = ChatRequest("m", (Message("user", "Look."),), ("memory",), False, {})
    for full, wanted in ((True, NEARLY_FULL), (False, 1)):
        told = script(turns=(ScriptTurn("Look.", "Done.", (ScriptStep(READ),), full),))
        assert usage(answer(RequestClass.FOREGROUND, plain, told, POLICIES["never-write"]), plain) == wanted


def test_compression_is_answered_with_the_summary() -> None:
    for told, wanted in ((script(summary="They spoke of canals."), "They spoke of canals."), (SCRIPT, "OK")):
        assert answer(RequestClass.COMPRESSION, request(), told, POLICIES["never-write"]).text == wanted


def test_a_child_does_its_steps_and_reports() -> None:
    told = script(report="They deliver on Tuesdays.", child_steps=(ScriptStep(READ),))
    goal = Message("user", "Find out the day")
    child = [
        answer(RequestClass.DELEGATE, request(goal, *more), told, POLICIES["never-write"]) for more in ((), called(1))
    ]
    assert [(c.calls, c.text) for c in child] == [((READ,), ""), ((), "They deliver on Tuesdays.")]
    assert answer(RequestClass.DELEGATE, request(goal), SCRIPT, POLICIES["never-write"]) == AUXILIARY_REPLY
    for kind in (RequestClass.TITLE, RequestClass.AUXILIARY):
        assert answer(kind, request(goal), told, POLICIES["always-write"]) == AUXILIARY_REPLY


# --- on the wire ----------


def exchange(data: bytes) -> Exchange:
    return Exchange(
        seq=1,
        phase="session",
        method="POST",
        path="/",
        kind=RequestClass.REVIEW,
        request=Body.of(b""),
        status=200,
        response=Body.of(data),
    )


@pytest.mark.parametrize("stream", [True, False])
def test_the_same_reply_has_the_same_bytes_and_reads_back(stream: bool) -> None:
    asked = ChatRequest("m", (Message("user", "x"),), (), stream, {})
    reply = Reply("sê", (ToolCall("memory", {"content": "ü\u202e"}),))
    kind, data = encode(reply, asked)
    assert (kind, data) == encode(reply, asked)
    message = response_message(exchange(data))
    assert message["content"] == "sê"
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"content": "ü\u202e"}
