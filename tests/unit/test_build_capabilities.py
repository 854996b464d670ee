"""A build is asked what it can do; whatever it lacks is told in one line, whatever it calls itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.agents.hermes import capabilities
from lab.agents.hermes.capabilities import PROGRAM, inspect_environment, missing
from lab.agents.hermes.inside import program_text
from lab.cli import build
from lab.cli.build import prepare
from lab.errors import EnvironmentUnusable
from lab.isolation.base import PreparedEnvironment
from lab.isolation.bwrap import BwrapBackend

ENVIRONMENT = PreparedEnvironment("bwrap", "/nowhere", "d")
AGENT = """
print("a banner of the agent's own")
class AIAgent:
    def run_conversation(self): ...
    def _spawn_background_review(self): ...
    def shutdown_memory_provider(self): ...
    def close(self): ...
"""
TOOLS = """
def get_tool_definitions(quiet_mode):
    action = {"type": "string", "enum": ["add", "remove"]}
    nested = {"anyOf": [{"properties": {"action": {"const": a}}} for a in ("create", "patch")]}
    return [
        {"function": {"name": "memory", "parameters": {"properties": {"action": action}}}},
        {"function": {"name": "skill_manage", "parameters": {"properties": {"operations": {"items": nested}}}}},
    ]
"""


def ask(folder: Path, agent: str = AGENT, tools: str = TOOLS) -> dict[str, Any]:
    (folder / "run_agent.py").write_text(agent)
    (folder / "model_tools.py").write_text(tools)
    (folder / "tools").mkdir(exist_ok=True)
    (folder / "tools" / "__init__.py").touch()
    (folder / "tools" / "write_approval.py").touch()
    command = [sys.executable, "-c", program_text(PROGRAM)]
    done = subprocess.run(command, capture_output=True, check=True, env={"PYTHONPATH": str(folder)})
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_whole_build_lacks_nothing_and_shows_its_shape(tmp_path: Path) -> None:
    answer = ask(tmp_path)
    assert answer["missing"] == []
    assert answer["memory_actions"] == ["add", "remove"] and answer["memory_batch"] is False
    assert answer["skill_manage_actions"] == ["create", "patch"] and answer["skill_manage_batch"] is True
    assert answer["approval_gate"] is True and answer["compressor"] is False


@pytest.mark.parametrize(
    ("agent", "tools", "words"),
    [
        (AGENT.replace("_spawn_background_review", "_review"), TOOLS, "the background reviewer"),
        (AGENT.replace("run_conversation", "talk"), TOOLS, "AIAgent.run_conversation"),
        (AGENT.replace("AIAgent", "Agent"), TOOLS, "an importable run_agent.AIAgent (ImportError"),
        ("import not_there_at_all", TOOLS, "an importable run_agent.AIAgent (ModuleNotFoundError"),
        ("raise SystemExit('no\\nconfig')", TOOLS, "an importable run_agent.AIAgent (SystemExit: no config)"),
        (AGENT, TOOLS.replace('"memory"', '"remember"'), "the memory tool"),
        (AGENT, "", "a list of tools"),
    ],
)
def test_what_a_build_lacks_is_named(tmp_path: Path, agent: str, tools: str, words: str) -> None:
    (what,) = ask(tmp_path, agent, tools)["missing"]
    assert what.startswith(words) or words in what
    assert "\n" not in what


def test_a_build_that_lacks_something_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    described = {"product": "hermes-agent", "version": "0.99.0", "capabilities": {"missing": ["the memory tool"]}}
    monkeypatch.setattr(build, "ensure", lambda *_, **__: ENVIRONMENT)
    monkeypatch.setattr(build, "describe", lambda _: described)
    with pytest.raises(EnvironmentUnusable, match=r"^hermes-agent-0\.99\.0 lacks the memory tool"):
        prepare(BwrapBackend(), "0.99.0", "auto")
    described["capabilities"] = {"missing": []}
    made = prepare(BwrapBackend(), "0.99.0", "auto")
    assert (made.name, made.source) == ("hermes-agent-0.99.0", "hermes-agent==0.99.0")


def test_no_answer_is_a_lack_and_no_pass() -> None:
    assert missing({"capabilities": {"missing": []}}) == ()
    for described in ({}, {"capabilities": None}, {"capabilities": {}}, {"capabilities": {"missing": "no"}}):
        assert missing(described)


def test_hostile_answers_are_bounded_and_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"missing": ["\x1b[31mred\n" + "x" * 9999] * 999, "k\n": {"a": 1}, **{f"n{i}": "v" for i in range(999)}}
    monkeypatch.setattr(capabilities, "ask_inside", lambda *_, **__: answer)
    told = json.dumps(inspect_environment(ENVIRONMENT), ensure_ascii=False)
    assert len(told) < 100_000 and "\x1b" not in told and "\\n" not in told
