"""``lab run`` with a live model: a double that answers by a rule, and the ways in which a server can fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.records import Stage, TrialResult
from tests.acceptance.conftest import LabCommand
from tests.doubles.chat_double import (
    ChatDouble,
    Say,
    add,
    chat_double,
    deaf,
    gullible,
    is_review,
    memory_call,
    obliging,
    refusing,
)
from tests.doubles.hostile_model import dead_url

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

KEY = "sk-test-4f9c2b7a1e8d3c60"


MODEL = "openai:double-chat"


def spec(double: ChatDouble) -> str:
    return f"openai:double-chat@{double.url}"


def results(reports: Path) -> list[TrialResult]:
    (folder,) = (p.parent for p in reports.glob("*/lock.json"))
    return [TrialResult.model_validate_json(p.read_bytes()) for p in sorted(folder.glob("trials/*/result.json"))]


@pytest.fixture
def double() -> Iterator[ChatDouble]:
    with chat_double(obliging(gullible)) as serving:
        yield serving


def test_a_live_run_is_told_apart_from_its_ceiling_and_replays_without_the_model(
    lab: LabCommand, bwrap: str, tmp_path: Path, double: ChatDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    chosen = ("--backend", bwrap, "--select", "F1-001,F5-001")
    recording = tmp_path / "recording"
    done = lab(
        *("run", *chosen, "--model", spec(double), "--temperature", "0.2", "--record", recording, "--json"),
    )
    assert done.code == 0, done.err
    found = results(tmp_path / "reports")
    live = {r.scenario: r for r in found if r.model == MODEL and r.role.value != "twin"}
    assert {r.model for r in found} == {MODEL, "scripted:always-write", "scripted:never-write"}
    for result in live.values():
        stages = [result.value(stage).value for stage in Stage]
        assert stages == ["yes"] * 5
        assert result.model_use is not None
        assert (result.model_use.uncounted, result.model_use.unparsable_calls) == (0, 0)
        assert result.model_use.calls == 1
    assert all(r.model_use is None for r in found if r.model.startswith("scripted:"))

    # What was sent, and with which key; which stands nowhere.
    asked = [r for r in double.requests if is_review(r)]
    assert {r["model"] for r in asked} == {"double-chat"}
    assert {r["temperature"] for r in asked} == {0.2}
    assert len({r["seed"] for r in asked}) == 2  # a scenario and its twin draw the same numbers
    assert set(double.headers) == {f"Bearer {KEY}"}
    (folder,) = (p.parent for p in (tmp_path / "reports").glob("*/lock.json"))
    assert not [p for p in folder.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    lock = json.loads((folder / "lock.json").read_bytes())
    assert lock["models"] == [MODEL, "scripted:always-write", "scripted:never-write"]
    assert lock["live"]["models"][MODEL]["context"] == 131_072
    assert lock["live"]["models"][MODEL]["tools"] == "yes"
    assert lock["live"]["key_env"] == "OPENAI_API_KEY"

    assert {p.name for p in recording.glob("trials/*/*")} == {"requests.jsonl", "result.json"}
    asked_so_far = len(double.requests)
    again = lab(
        "run", "--backend", bwrap, "--model", f"replay:{recording}", "--reports", tmp_path / "replays", "--json"
    )
    assert again.code == 0, again.err
    assert "verdicts equal to the recording" in again.err
    assert "9 of 9 trials" in again.err
    assert len(double.requests) == asked_so_far
    replayed = results(tmp_path / "replays")
    assert [(r.trial, r.verdicts, r.model_use) for r in replayed] == [(r.trial, r.verdicts, r.model_use) for r in found]


def test_a_changed_recording_is_noticed(lab: LabCommand, bwrap: str, tmp_path: Path, double: ChatDouble) -> None:
    chosen = ("--backend", bwrap, "--select", "F5-001", "--model", spec(double), "--no-ceiling")
    assert lab("run", *chosen).code == 0
    (folder,) = (p.parent for p in (tmp_path / "reports").glob("*/lock.json"))
    (path,) = folder.glob("trials/*/requests.jsonl")
    path.write_bytes(path.read_bytes().replace(b"otter48", b"otter49"))
    again = lab("run", "--backend", bwrap, "--model", f"replay:{folder}")
    assert again.code == 2
    assert again.is_one_clear_line()


_CUT = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
_HALF_CALL = (
    b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [{"index": 0, "id": "c", "type": '
    b'"function", "function": {"name": "memory", "arguments": "{\\"action\\": \\"ad"}}]}}]}\n\n'
)
BEHAVIOURS: dict[str, tuple[Say, str, str]] = {
    # what it does: status and cause that follow
    "F5-001": (lambda _: None, "error", "model_unreachable"),
    "F5-002": (lambda _: _CUT + _HALF_CALL, "error", "model_stream_cut"),
    "F5-003": (lambda _: b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "error", "model_http_error"),
    "F5-004": (lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n<html></html", "error", "model_garbage"),
    "F5-005": (lambda _: memory_call('{"action": "add", "content": '), "valid", ""),
    "F5-006": (
        lambda r: memory_call(add("First."), add("Second.")) if r["messages"][-1]["role"] != "tool" else deaf(r),
        "valid",
        "",
    ),
    "F5-007": (lambda _: {"role": "assistant", "content": "a" * (4 << 20)}, "valid", ""),
    "F5-008": (refusing, "valid", ""),
}


def test_whatever_a_server_does_has_a_stated_outcome_and_the_run_goes_on(
    lab: LabCommand, bwrap: str, tmp_path: Path, small_library: Path
) -> None:
    begins = {
        path.stem: yaml.safe_load(path.read_text())["transcript"][0]["user"].split("{{")[0].strip()[:60]
        for path in (small_library / "F5").glob("*.yaml")
    }

    def say(request: dict[str, Any]) -> dict[str, Any] | bytes | None:
        typed = " ".join(m["content"] for m in request["messages"] if m["role"] == "user")
        (scenario,) = (name for name, begin in begins.items() if begin in typed)
        return BEHAVIOURS[scenario][0](request)

    with chat_double(obliging(say)) as double:
        done = lab(
            *("run", "--backend", bwrap, "--families", "F5", "--model", spec(double), "--no-ceiling"),
            *("--error-budget", "1", "--json"),
        )
    assert done.code == 0, done.err
    found = {r.scenario: r for r in results(tmp_path / "reports")}
    ended = {name: (r.status.value, r.cause) for name, r in found.items()}
    assert ended == {name: (status, cause) for name, (_, status, cause) in BEHAVIOURS.items()}
    use = {name: r.model_use for name, r in found.items() if r.model_use}
    assert use["F5-005"].unparsable_calls >= 1
    assert use["F5-006"].calls == 2
    assert use["F5-008"].refusals == 1
    # An error moves no numerator and is counted by its cause.
    assert done.json["accounting"]["error"] == 4


def test_a_model_that_calls_no_tools_is_named_before_the_run(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    with chat_double(deaf) as double:
        done = lab("run", "--backend", bwrap, "--select", "F5-001", "--model", spec(double))
    assert done.code == 2
    assert "calls no tools" in done.err
    assert "double-chat" in done.err
    assert done.is_one_clear_line()
    assert not (tmp_path / "reports").exists()


def test_a_probe_that_fails_says_nothing_of_the_model_and_its_trials_are_errors(
    lab: LabCommand, bwrap: str, tmp_path: Path
) -> None:
    with chat_double(lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nno answer") as double:
        done = lab("run", "--backend", bwrap, "--select", "F5-001", "--model", spec(double), "--no-ceiling")
    assert done.code == 3
    assert "calls tools: unknown" in done.err
    (result,) = results(tmp_path / "reports")
    assert (result.status.value, result.cause) == ("error", "model_garbage")


def test_a_dead_endpoint_ends_before_the_run_with_its_mend(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    done = lab("run", "--backend", bwrap, "--select", "F5-001", "--model", f"openai:any@{dead_url()}")
    assert done.code == 4
    assert done.is_one_clear_line()
    assert not (tmp_path / "reports").exists()


def test_a_budget_stops_the_run_and_a_larger_one_goes_on(
    lab: LabCommand, bwrap: str, tmp_path: Path, double: ChatDouble
) -> None:
    chosen = ("--backend", bwrap, "--select", "F5-00[123]", "--model", spec(double), "--no-ceiling")
    stopped = lab("run", *chosen, "--budget-tokens", "6000")
    assert stopped.code == 3
    assert "tokens are used up" in stopped.err
    assert stopped.is_one_clear_line()
    done = results(tmp_path / "reports")
    assert 0 < len(done) < 3
    assert {r.status.value for r in done} == {"valid"}
    went_on = lab("resume", "--budget-tokens", "1000000")
    assert went_on.code == 0, went_on.err
    after = results(tmp_path / "reports")
    assert len(after) == 3
    assert [r for r in after if r.trial in {d.trial for d in done}] == done
