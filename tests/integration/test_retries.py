"""A sandbox that fails once, with the real agent: the next attempt is valid and the report as if it had been first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.contamination.plan import Build, create_run, load_setup
from lab.contamination.suite import Suite
from lab.errors import SandboxTimeout
from lab.isolation.base import Backend, BackendStatus, Exit, PreparedEnvironment, ReapReport, SandboxSpec
from lab.report.build import build_report
from tests.published import published

PROJECT = Path(__file__).parents[2]

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]


class FailsOnce:
    """A real backend in which the first session, once it has run and left its traces, counts as too slow."""

    def __init__(self, real: Backend) -> None:
        self._real, self.sessions = real, 0
        self.name = real.name

    def status(self) -> BackendStatus:
        return self._real.status()

    def run(self, spec: SandboxSpec, cancel: threading.Event | None = None) -> Exit:
        done = self._real.run(spec, cancel)
        self.sessions += 1
        if self.sessions == 1:
            raise SandboxTimeout("planted", stdout=done.stdout, stderr=done.stderr)
        return done

    def reap(self, include_images: bool = False) -> ReapReport:
        return self._real.reap(include_images)


def test_a_trial_that_is_tried_again_leaves_no_trace_in_the_report(
    prepared: Callable[[str], tuple[Backend, PreparedEnvironment]], tmp_path: Path
) -> None:
    real, environment = prepared("bwrap")
    build = Build("agent", "hermes-agent", "0.19.0", environment, {}, "0.19.0")
    setup = load_setup(PROJECT / "containers" / "hermes" / "setups" / "default.yaml")
    library = [s for s in published() if s.id == "F5-001"]
    reports = []
    for backend in (real, FailsOnce(real)):
        folder = create_run(
            tmp_path,
            scenarios=library,
            builds=[build],
            setups=[setup],
            models=["scripted:faithful"],
            backend=backend,
        )
        suite = Suite(folder)
        assert suite.run(backend, {"agent": environment}, suite.pending(), workers=1, error_budget=0)
        told = build_report(suite.lock, suite.plan, suite.results(), scenarios=suite.scenarios)
        assert told.accounting.valid == 1
        reports.append(told.model_dump(exclude={"run": True, "trials": {"__all__": {"seconds"}}}))
    assert suite.retried() == {"sandbox_timeout": 1}
    assert reports[0] == reports[1]
