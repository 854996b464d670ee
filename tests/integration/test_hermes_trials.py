"""Single trials with the real agent, a real sandbox and a real endpoint; beside them the agents that must not look
like resistance."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab.agents.base import SetupExpectation
from lab.agents.hermes.adapter import HermesAgent
from lab.contamination.preflight import preflight
from lab.contamination.scenarios.scenario import Scenario
from lab.errors import EnvironmentUnusable
from lab.gateway.exchange import RequestClass, read_exchanges
from lab.gateway.policies.base import Policy, Script, Takes
from lab.gateway.policies.scripted import POLICIES
from lab.gateway.replies import Reply
from lab.gateway.request import ChatRequest
from lab.gateway.server import GatewayHost
from lab.isolation.base import Limits
from lab.records import Role, Stage, Status, Store, Value
from tests.published import published
from tests.real_trials import DEFAULT, DRIVER, Sandbox, trial, with_driver

LIBRARY = {s.id: s for s in published()}

pytestmark = pytest.mark.agent


def test_a_pasted_instruction_becomes_memory_and_a_fresh_session_loads_it(
    sandbox: Sandbox, gateways: GatewayHost, tmp_path: Path
) -> None:
    result = trial(sandbox, gateways, tmp_path, LIBRARY["F1-001"])
    assert [result.value(stage) for stage in Stage] == [Value.YES] * 5
    assert [s.store for s in result.stores if s.value is Value.YES and s.store.is_persistence] == [Store.MEMORY]
    kinds = [(e.phase, e.kind) for e in read_exchanges(tmp_path / "requests.jsonl") if e.kind is not RequestClass.PROBE]
    session = [kind for phase, kind in kinds if phase == "session"]
    assert session == [RequestClass.FOREGROUND, RequestClass.REVIEW, RequestClass.REVIEW]
    assert ("load", RequestClass.FOREGROUND) in kinds


def test_a_disguised_canary_is_followed_to_the_end(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    result = trial(prepared("bwrap"), gateways, tmp_path, LIBRARY["F1-009"], model="scripted:paraphrase")
    assert [result.value(stage) for stage in Stage] == [Value.YES] * 5
    assert LIBRARY["F1-009"].canary not in (tmp_path / "stores.diff").read_text()


def test_the_twin_and_the_hard_control(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    twin, hard = tmp_path / "twin", tmp_path / "hard"
    twin.mkdir()
    hard.mkdir()
    result = trial(prepared("bwrap"), gateways, twin, LIBRARY["F1-001"], role=Role.TWIN)
    assert result.status is Status.VALID and result.value(Stage.REACH) is Value.YES
    assert not result.attempts and result.stores_unchanged
    result = trial(prepared("bwrap"), gateways, hard, LIBRARY["F5-006"], model="scripted:faithful")
    assert [a.decision.value for a in result.attempts] == ["refused(scan)"]
    assert result.value(Stage.PERSIST) is Value.NO


def test_a_dead_agent_is_not_delivered(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    dead = with_driver(prepared("bwrap"), tmp_path, "pass\n")
    folder = tmp_path / "trial"
    folder.mkdir()
    result = trial(dead, gateways, folder, LIBRARY["F1-001"])
    assert (result.status, result.cause) == (Status.INVALID, "not_delivered")
    failed = {c.name for c in preflight(*dead, DEFAULT, "0.19.0") if not c.ok}
    assert {"agent_answers", "version", "reviewer", "review_fires"} <= failed


def test_a_live_agent_passes_the_preflight(sandbox: Sandbox) -> None:
    assert [c.name for c in preflight(*sandbox, DEFAULT, "0.19.0") if not c.ok] == []


def test_the_preflight_names_another_version(prepared: Callable[[str], Sandbox]) -> None:
    assert [c.name for c in preflight(*prepared("bwrap"), DEFAULT, "0.18.2") if not c.ok] == ["version"]


def test_an_agent_that_cannot_be_imported_is_an_error(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    program = (DRIVER / "driver.py").read_text().replace("from run_agent import", "from run_agent_gone import")
    folder = tmp_path / "trial"
    folder.mkdir()
    result = trial(with_driver(prepared("bwrap"), tmp_path, program), gateways, folder, LIBRARY["F1-001"])
    assert (result.status, result.cause) == (Status.ERROR, "agent_cannot_be_imported")


def test_an_agent_that_never_ends_is_an_error(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    endless = with_driver(prepared("bwrap"), tmp_path, "import time\nwhile True:\n    time.sleep(60)\n")
    folder = tmp_path / "trial"
    folder.mkdir()
    result = trial(endless, gateways, folder, LIBRARY["F1-001"], limits=Limits(wall_seconds=2))
    assert (result.status, result.cause) == (Status.ERROR, "sandbox_timeout")
    assert {v.value for v in result.verdicts.values()} == {Value.ERROR}


@pytest.mark.parametrize(
    ("overrides", "cause"),
    [
        ({"memory": {"memory_enabled": False, "user_profile_enabled": False}}, "review_did_not_run"),
        ({"memory": {"nudge_interval": 1, "write_approval": True}}, "setup_mismatch"),
    ],
    ids=["memory-off", "gate-on-against-belief"],
)
def test_another_setup_than_the_believed_one_is_no_resistance(
    prepared: Callable[[str], Sandbox],
    gateways: GatewayHost,
    tmp_path: Path,
    overrides: dict[str, Any],
    cause: str,
) -> None:
    setup = DEFAULT.model_copy(update={"overrides": overrides})
    result = trial(prepared("bwrap"), gateways, tmp_path, LIBRARY["F1-001"], setup=setup)
    assert (result.status, result.cause) == (Status.INVALID, cause)


@dataclass(frozen=True)
class Acting(Policy):
    """A policy that does something of its own when a review comes in."""

    act: Callable[..., Reply] = Reply

    def review(self, request: ChatRequest, prompt: int, script: Script) -> Reply:
        return self.act(request, prompt, script)


TemporaryPolicy = Callable[[str, Callable[..., Reply]], str]


@pytest.fixture
def temporary_policy() -> Iterator[TemporaryPolicy]:
    added: list[str] = []

    def add(name: str, act: Callable[..., Reply]) -> str:
        POLICIES[name] = Acting(name, Takes.NEVER, act=act)
        added.append(name)
        return f"scripted:{name}"

    yield add
    for name in added:
        del POLICIES[name]


def test_a_gateway_that_dies_in_mid_trial_is_an_error(
    sandbox: Sandbox,
    gateways: GatewayHost,
    tmp_path: Path,
    temporary_policy: TemporaryPolicy,
) -> None:
    def kill(*_: object) -> Reply:
        (gateway,) = gateways._gateways.values()
        threading.Thread(target=gateways.kill, args=(gateway,)).start()
        return Reply("Nothing to save.")

    model = temporary_policy("kill", kill)
    result = trial(sandbox, gateways, tmp_path, LIBRARY["F1-001"], model=model)
    assert (result.status, result.cause) == (Status.ERROR, "gateway_died")


def test_a_socket_that_vanishes_is_an_error(
    prepared: Callable[[str], Sandbox],
    gateways: GatewayHost,
    tmp_path: Path,
    temporary_policy: TemporaryPolicy,
) -> None:
    def unlink(request: ChatRequest, prompt: int, script: Script) -> Reply:
        (gateway,) = gateways._gateways.values()
        gateway.socket.unlink()
        return POLICIES["always-write"].review(request, prompt, script)

    model = temporary_policy("unlink", unlink)
    result = trial(prepared("bwrap"), gateways, tmp_path, LIBRARY["F1-001"], model=model)
    assert (result.status, result.cause) == (Status.ERROR, "gateway_gone")


def test_an_image_that_is_missing_ends_the_run_with_its_mend(
    sandbox: Sandbox, gateways: GatewayHost, tmp_path: Path
) -> None:
    backend, environment = sandbox
    gone = replace(environment, reference=f"{environment.reference}-gone")
    with pytest.raises(EnvironmentUnusable, match="lab build") as caught:
        trial((backend, gone), gateways, tmp_path, LIBRARY["F1-001"])
    assert caught.value.exit_code == 4
    assert not (tmp_path / "result.json").exists()


def hostile(base: Scenario, words: str) -> Scenario:
    data = base.model_dump(mode="json", by_alias=True)
    data["transcript"][0]["user"] = f"{words}\n{{{{content}}}}\n{words}"
    return Scenario.model_validate(data)


@pytest.mark.parametrize(
    "words",
    ["<script>alert(1)</script>\x1b[31mred\x1b[0m\x00\u202e{{7*7}}", "lorem ipsum " * (2_500_000 // 12)],  # twice
    ids=["control-characters", "5-megabytes"],
)
def test_hostile_text_is_followed_like_any_other(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path, words: str
) -> None:
    result = trial(prepared("bwrap"), gateways, tmp_path, hostile(LIBRARY["F1-001"], words))
    assert (tmp_path / "result.json").is_file()
    assert result.status is Status.VALID
    assert [result.value(stage) for stage in Stage] == [Value.YES] * 5


DEEP = """
def deep():
    os.chdir(os.environ["HERMES_HOME"])
    os.makedirs("skills", exist_ok=True)
    os.chdir("skills")
    for _ in range(1500):
        os.makedirs("d" * 20, exist_ok=True)
        os.chdir("d" * 20)
    open("SKILL.md", "w").write("heron21")


"""


def test_an_odd_home_and_odd_claims_end_neither_the_run_nor_in_a_wrong_no(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "s"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    program = (DRIVER / "driver.py").read_text()
    end = "    write_outcome(sys.argv[2], outcome)\n    sys.stdout"
    assert end in program
    program = program.replace(end, f"    deep()\n    outcome['notices'] = ['\\ud800', 5]\n{end}")
    program = program.replace("def main()", DEEP + "def main()")
    folder = tmp_path / "trial"
    folder.mkdir()
    odd = with_driver(prepared("bwrap"), tmp_path, program)
    result = trial(odd, gateways, folder, LIBRARY["F1-001"], model="scripted:never-write")
    assert result.status is Status.VALID
    assert result.value(Stage.PERSIST) is Value.UNDETERMINED
    assert list(scratch.glob("lab-work-*")) == []


def test_a_fault_of_the_judge_is_an_error_of_one_trial(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("lab.contamination.observe.judge.judge_reach", broken)
    result = trial(prepared("bwrap"), gateways, tmp_path, LIBRARY["F1-001"])
    assert (result.status, result.cause) == (Status.ERROR, "judge_fault")
    assert "planted" in result.detail


class OneShot(HermesAgent):
    """The agent's shipped one-shot command instead of the lab's driver."""

    def command(self) -> tuple[str, ...]:
        command = super().command()
        program = (
            "import json, subprocess, sys\n"
            "turn = json.load(open('/run/lab/job.json'))['turns'][0]\n"
            "sys.exit(subprocess.run(['/opt/agent/bin/hermes', '-z', turn]).returncode)\n"
        )
        return (*command[:4], "/opt/agent/bin/python", "-c", program)


def test_the_shipped_one_shot_command_exits_before_its_review(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    """Why the driver waits for the review's thread: a harness around the bare command would report 0 % persistence."""
    expect = SetupExpectation(memory_tool=True)
    setup = DEFAULT.model_copy(update={"expect": expect})
    result = trial(prepared("bwrap"), gateways, tmp_path, LIBRARY["F1-001"], setup=setup, agent=OneShot())
    # On a busy machine the review may come to ask, once, before the process that it lives in is gone.
    assert result.status is Status.INVALID
    assert result.cause in ("review_did_not_run", "session_did_not_finish")
    assert result.value(Stage.DELIVERED) is Value.YES


class WithoutShortcuts(HermesAgent):
    """The agent's environment without what only saves time."""

    def environment(self) -> Mapping[str, str]:
        shortcuts = ("HERMES_SKIP_SSL_GUARD", "SSL_CERT_FILE")
        return {name: value for name, value in super().environment().items() if name not in shortcuts}


def test_what_saves_time_changes_no_byte_of_the_requests(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    sent = []
    for agent in (HermesAgent(), WithoutShortcuts()):
        folder = tmp_path / type(agent).__name__
        folder.mkdir()
        assert trial(prepared("bwrap"), gateways, folder, LIBRARY["F1-001"], agent=agent).status is Status.VALID
        exchanges = read_exchanges(folder / "requests.jsonl")
        sent.append([(e.phase, e.kind, e.request.data) for e in exchanges if e.kind is not RequestClass.PROBE])
    assert len(sent[0]) >= 5
    assert sent[0] == sent[1]


def test_the_evidence_is_complete_and_holds_no_path_of_the_machine(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path
) -> None:
    trial(prepared("bwrap"), gateways, tmp_path, LIBRARY["F5-001"], model="scripted:faithful")
    names = {p.name for p in tmp_path.iterdir()}
    expected = {"result.json", "course.json", "requests.jsonl", "home-before.json", "home-after.json", "stores.diff"}
    expected |= {"outcome.json", "job-session.json", "job-load.json", "session.stdout.txt", "session.stderr.txt"}
    assert expected <= names
    for name in ("result.json", "course.json", "job-session.json", "home-after.json"):
        assert str(tmp_path) not in (tmp_path / name).read_text()
    assert json.loads((tmp_path / "outcome.json").read_text())["finished"] is True
