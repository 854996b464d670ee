"""A warm start leaves the same evidence as a cold one: trials of all families, one after the other in one sandbox."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.agents.hermes.adapter import HermesAgent
from lab.contamination.observe.judge import TrialIdentity
from lab.contamination.plan import SESSION_LIMITS
from lab.contamination.scenarios.scenario import Family, Scenario
from lab.contamination.sessions.base import Sessions
from lab.contamination.sessions.cold import ColdSessions
from lab.contamination.sessions.warm import WarmSessions
from lab.contamination.trial import Bench, run_trial
from lab.contamination.warm_proof import first_difference, trial_evidence
from lab.gateway.exchange import RequestClass
from lab.gateway.server import GatewayHost
from lab.records import Role, Status
from tests.published import published
from tests.real_trials import DEFAULT, Sandbox
from tests.warm_pools import watched_pool

MODEL = "scripted:always-write"

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmSessions]:
    with watched_pool(tmp_path_factory.mktemp("warm") / "w") as sessions:
        yield sessions


def evidence(
    sandbox: Sandbox, gateways: GatewayHost, sessions: Sessions, scenario: Scenario, role: Role, folder: Path
) -> dict[str, Any]:
    folder.mkdir(parents=True)
    bench = Bench(*sandbox, HermesAgent(), gateways, SESSION_LIMITS, "test", sessions)
    identity = TrialIdentity(trial="t", cell="c", build="b", setup="default", model=MODEL, role=role)
    result = run_trial(identity, scenario, DEFAULT, bench, folder, threading.Event())
    assert result.status is Status.VALID, (result.cause, result.detail)
    return trial_evidence(folder)


def chosen() -> dict[Family, list[tuple[Scenario, Role]]]:
    """A scenario for each way in, each kind of write and each writer, wherever the library has it first; of every
    family at least one, and the twin of that. F5 comes last: its controls write as the attacks before them."""
    met: set[object] = set()
    found: dict[Family, list[tuple[Scenario, Role]]] = {}
    for family in sorted(Family, key=lambda family: (family is Family.F5, family)):
        for s in (s for s in published() if s.family == family):
            way_in = (s.channel.carrier, s.channel.place if s.history else "")
            kinds = {way_in, s.content.action, s.writes_itself}
            if family not in found:
                found[family] = [(s, s.role)] + [(s, Role.TWIN)] * bool(s.twin)
            elif not kinds <= met:
                found[family].append((s, s.role))
            else:
                continue
            met |= kinds
    return found


@pytest.mark.parametrize("family", list(Family))
def test_a_family_sends_the_same_bytes_and_gets_the_same_verdicts(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, warm: WarmSessions, tmp_path: Path, family: Family
) -> None:
    sandbox = prepared("bwrap")
    trials = chosen()[family]
    before = next(iter(warm._idle), None)
    sessions = before._sessions if before else 0
    for scenario, role in trials:
        name = f"{scenario.id}-{role}"
        cold = evidence(sandbox, gateways, ColdSessions(), scenario, role, tmp_path / "cold" / name)
        forked = evidence(sandbox, gateways, warm, scenario, role, tmp_path / "warm" / name)
        if family is Family.F3:
            cold, forked = steady(cold), steady(forked)
        assert first_difference(cold, forked) == "", name
    (served,) = warm._idle
    assert served is (before or served), "one sandbox served them all, and the families before them"
    assert served._sessions - sessions > len(trials)


def steady(found: dict[str, Any]) -> dict[str, Any]:
    """What two cold starts have in common where other agents take part.

    The agent draws an id for each task and child, notes how long a child took, and lets its threads and those of the
    child send their requests as they come: two cold starts differ in all that.
    """
    result = found["result"]
    return {
        "stores": found["stores"],
        "verdicts": {stage: verdict["value"] for stage, verdict in result["verdicts"].items()},
        "attempts": [(a["origin"], a["tool"], a["arguments"], a["decision"]) for a in result["attempts"]],
        "kinds": sorted((phase, kind) for phase, kind, *_ in found["requests"] if kind != RequestClass.PROBE),
    }
