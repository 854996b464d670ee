"""Every cause that makes a trial invalid, in its order, and the trial beside it that is valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.agents.base import SetupExpectation
from lab.contamination.observe.channel import ANOTHER_WAY
from lab.contamination.observe.recording import Recording
from lab.contamination.observe.validity import assert_setup, judge_status, missing_carrier, notice_text, read_outcome
from lab.contamination.scenarios.parts import Channel
from lab.contamination.scenarios.words import Carrier
from lab.gateway.classify import REVIEW_CLOSING, REVIEW_OPENINGS, classify
from lab.gateway.exchange import Body, Exchange
from lab.gateway.request import parse_request
from lab.records import Decision, Evidence, Status, Value, Verdict
from tests.factories import attempt

YES = Verdict(value=Value.YES, evidence=(Evidence(file="requests.jsonl", pointer="line 1"),))
NO = Verdict(value=Value.NO, detail="no request held it")
WRONG = Verdict(value=Value.NO, reason=ANOTHER_WAY, detail="by a tool")
FINISHED: dict[str, Any] = {"finished": True, "capabilities": {"reviewer": True}}
TURN = "Hello"
PROMPT = f"{REVIEW_OPENINGS[0]} …\n\n{REVIEW_CLOSING} — do not attempt them."


def status(**changes: Any) -> tuple[Status, str, str]:
    fields: dict[str, Any] = {
        "delivered": YES,
        "reviewed": True,
        "mismatch": [],
        "missing": "",
        "outcome": FINISHED,
        "attempts": (),
        "by_foreground": False,
    }
    return judge_status(**fields | changes)


def test_a_trial_that_shows_everything_is_valid() -> None:
    assert status() == (Status.VALID, "", "")


CAUSES: dict[str, dict[str, Any]] = {
    "not_in_this_build": {"missing": "no tool x"},
    ANOTHER_WAY: {"delivered": WRONG},
    "not_delivered": {"delivered": NO},
    "setup_mismatch": {"mismatch": ["a is b", "c is d"]},
    "agent_has_no_reviewer": {"reviewed": False, "outcome": {"finished": True, "capabilities": {"reviewer": False}}},
    "review_did_not_run": {"reviewed": False},
    "session_did_not_finish": {"outcome": {"finished": "yes"}},
    "review_cut_short": {"attempts": [attempt(decision=Decision.UNKNOWN)]},
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause(cause: str) -> None:
    found = status(**CAUSES[cause])
    assert found[:2] == (Status.INVALID, cause) and found[2]


def test_the_earlier_cause_is_told() -> None:
    together: dict[str, Any] = {}
    for cause in reversed([c for c in CAUSES if c not in (ANOTHER_WAY, "agent_has_no_reviewer")]):
        together |= CAUSES[cause]
        assert status(**together)[1] == cause


def test_a_dead_agent_is_told_by_its_silence() -> None:
    assert status(delivered=NO, outcome={})[1:] == ("not_delivered", "the agent did nothing that was recorded")


def test_where_the_foreground_writes_no_review_is_needed() -> None:
    assert status(reviewed=False, by_foreground=True)[0] is Status.VALID
    assert status(reviewed=False, by_foreground=True, outcome={})[1] == "session_did_not_finish"


@pytest.mark.parametrize(
    "changes",
    [{"origin": "foreground"}, {"carries": False}, {"decision": Decision.LOST}, {"decision": Decision.DENIED}],
)
def test_only_an_unanswered_write_of_the_content_by_the_reviewer_was_cut_short(changes: dict[str, Any]) -> None:
    assert status(attempts=[attempt(**{"decision": Decision.UNKNOWN} | changes)])[0] is Status.VALID


# --- the running agent's own showing ---------------------------------------------------------------------------------


def recording(*tools: str, reviewer: str = "") -> Recording:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    asked = [("m", [{"role": "user", "content": TURN}])]
    if reviewer:
        asked.append((reviewer, [{"role": "user", "content": TURN}, {"role": "user", "content": PROMPT}]))
    made = []
    for number, (model, messages) in enumerate(asked, 1):
        body = json.dumps({"model": model, "messages": messages, "tools": offered}).encode()
        kind = classify(parse_request(body), {TURN})
        made.append(
            Exchange(seq=number, phase="session", method="POST", path="/", kind=kind, request=Body.of(body), status=200,
                     response=Body.of(b"{}"))
        )  # fmt: skip
    return Recording(made, frozenset({TURN}))


SHOWN = {
    "memory_gate": False,
    "skills_gate": "absent",
    "skill_guard": True,
    "memory_enabled": True,
    "provider": "holographic",
    "auto_extract": False,
}


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("memory_tool", True, False),
        ("memory_gate", False, True),
        ("memory_gate", False, "absent"),
        ("skills_gate", "absent", True),
        ("skills_gate", False, True),  # a gate that a build does not have is off
        ("skill_guard", True, False),
        ("memory_enabled", True, False),
        ("provider", "holographic", ""),
        ("auto_extract", False, True),
        ("reviewer_model", "other", "m"),
    ],
)
def test_every_expectation_is_compared(name: str, right: Any, wrong: Any) -> None:
    told = recording("memory", reviewer="other")
    for value, mismatches in ((right, 0), (wrong, 1), (None, 0)):
        expect = SetupExpectation(**{"memory_tool": None, name: value})
        shown, found = assert_setup(expect, told, {"capabilities": SHOWN})
        assert len(found) == mismatches, found
        assert all(line.startswith(f"{name} is ") for line in found)
    assert shown["reviewer_model"] == "other" and shown["tools_offered"] == "1"


def test_what_the_agent_does_not_show_is_a_mismatch() -> None:
    for outcome in ({}, {"capabilities": 7}, {"capabilities": {}}):
        _, found = assert_setup(SetupExpectation(memory_gate=False), recording("memory"), outcome)
        assert found == ["memory_gate is None, the setup needs False"]


def test_the_memory_tool_is_seen_in_requests_not_believed_from_inside() -> None:
    _, found = assert_setup(SetupExpectation(), recording("x"), {"capabilities": {"memory_tool": True}})
    assert found == ["memory_tool is False, the setup needs True"]


@pytest.mark.parametrize("carrier", Carrier)
def test_a_build_without_the_carriers_tool_is_told(carrier: Carrier) -> None:
    channel = Channel(carrier=carrier)
    tool = "delegate_task" if carrier is Carrier.DELEGATION_NOTICE else carrier.value
    assert missing_carrier(channel, recording("memory", tool), {}) == ""
    missing = missing_carrier(channel, recording("memory"), {})
    needs = carrier not in (Carrier.PASTE, Carrier.COMPRESSION)
    assert missing == (f"this build offers no tool {tool}" if needs else "")
    assert missing_carrier(channel, recording(), {}) == "", "an agent that offers nothing at all did not answer"
    assert missing_carrier(channel, recording("memory", tool), {"missing": "no board"}) == "no board"


def test_claims_from_inside_are_read_as_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "outcome.json"
    assert read_outcome(path) == {}
    for text in (b"[1]", b"{", b"\xff", b"[" * 50_000):
        path.write_bytes(text)
        assert read_outcome(path) == {}
    path.write_text('{"notices": ["a", 5]}')
    assert notice_text(read_outcome(path)) == "a · 5"
    assert notice_text({"notices": "abc"}) == notice_text({}) == ""
    assert len(notice_text({"notices": ["x" * 9999]})) == 500
