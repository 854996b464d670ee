"""Runs one trial with the real agent in a real sandbox, or with another program in the agent's place."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path

from lab.agents.base import Setup
from lab.agents.hermes.adapter import HermesAgent
from lab.contamination.observe.judge import TrialIdentity
from lab.contamination.plan import SESSION_LIMITS, load_setup
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.sessions.base import Sessions
from lab.contamination.sessions.cold import ColdSessions
from lab.contamination.trial import Bench, run_trial
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import Role, TrialResult

PROJECT = Path(__file__).parents[1]
DRIVER = PROJECT / "containers" / "hermes"
DEFAULT = load_setup(DRIVER / "setups" / "default.yaml")
Sandbox = tuple[Backend, PreparedEnvironment]


def trial(
    sandbox: Sandbox,
    gateways: GatewayHost,
    folder: Path,
    scenario: Scenario,
    *,
    model: str = "scripted:always-write",
    role: Role | None = None,
    setup: Setup = DEFAULT,
    limits: Limits = SESSION_LIMITS,
    agent: HermesAgent | None = None,
    sessions: Sessions | None = None,
) -> TrialResult:
    """Runs a trial; its sessions are started cold where no others are given."""
    backend, environment = sandbox
    bench = Bench(backend, environment, agent or HermesAgent(), gateways, limits, "test", sessions or ColdSessions())
    identity = TrialIdentity(trial="t", cell="c", build="b", setup=setup.name, model=model, role=role or scenario.role)
    return run_trial(identity, scenario, setup, bench, folder, threading.Event())


def with_driver(sandbox: Sandbox, folder: Path, program: str) -> Sandbox:
    """The same environment with another driver in the agent's place."""
    driver = folder / "driver"
    shutil.copytree(DRIVER, driver, ignore=shutil.ignore_patterns("setups", "*.lock", "__pycache__"))
    (driver / "driver.py").write_text(program)
    for path in (driver, *driver.iterdir()):
        path.chmod(0o755)
    backend, environment = sandbox
    return backend, replace(environment, driver=driver)
