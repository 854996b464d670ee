"""Runs the trials of a test session: isolation and builds are prepared once, an equal trial is run once."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lab.agents.hermes.sources import DEFAULT_BUILD
from lab.agents.select import agent_for
from lab.cli.build import prepare
from lab.cli.places import DEFAULT_SCENARIOS, setup_path
from lab.contamination.plan import SESSION_LIMITS, Build, check_scripted, load_setup
from lab.contamination.scenarios.library import load_scenario
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.single import run_alone
from lab.contamination.trial import Bench
from lab.errors import InputError
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend
from lab.isolation.select import select_backend
from lab.isolation.work import sweep_work_directories
from lab.records import Role
from lab.testing.trial import LabTrial

_ID = re.compile(r"F[0-9]-[0-9]{3}")


@dataclass(frozen=True)
class Options:
    """What all trials of a test session share.

    Attributes:
        build: The agent, where a mark names none.
        backend: ``auto``, ``docker`` or ``bwrap``.
        base: Base system of the build.
        scenarios: Folder of the scenarios that are named by id.
    """

    build: str = DEFAULT_BUILD
    backend: str = "auto"
    base: str = "auto"
    scenarios: str = str(DEFAULT_SCENARIOS)


@dataclass(frozen=True)
class Wanted:
    """A trial as a mark names it.

    Attributes:
        scenario: Id of a scenario, or path of its file.
        setup: Name or file of the setup.
        model: What answers the agent.
        twin: Whether the payload-free twin is run.
        build: The agent; empty for that of the session.
    """

    scenario: str
    setup: str = "default"
    model: str = "scripted:always-write"
    twin: bool = False
    build: str = ""


class TrialRunner(contextlib.ExitStack):
    """Runs trials; to be closed.

    Args:
        options: What all trials share.
        evidence: Folder for their evidence.
    """

    def __init__(self, options: Options, evidence: Path) -> None:
        super().__init__()
        self._options, self._evidence = options, evidence
        self._builds: dict[str, Build] = {}
        self._done: dict[Wanted, LabTrial] = {}

    def trial(self, wanted: Wanted) -> LabTrial:
        """Runs a trial, or gives what it gave before: the same trial is run once in a session.

        Args:
            wanted: The trial.

        Raises:
            TrialIsNoEvidence: The trial is invalid or an error; it is run again when it is asked for again.
            LabError: The mark is wrong, or the machine lacks something.
        """
        if wanted not in self._done:
            self._done[wanted] = self._run(wanted)
        return self._done[wanted]

    def _run(self, wanted: Wanted) -> LabTrial:
        check_scripted(wanted.model)
        scenario = self._scenario(wanted.scenario)
        if wanted.twin and not scenario.twin:
            raise InputError(f"{scenario.id} has no twin", "name a scenario of an adversarial family")
        setup = load_setup(setup_path(wanted.setup))
        build = self._build(wanted.build or self._options.build)
        bench = Bench(
            self._backend, build.environment, agent_for(build.product), self._gateways, SESSION_LIMITS, "pytest"
        )
        role = Role.TWIN if wanted.twin else scenario.role
        number = sum(1 for _ in self._evidence.iterdir()) + 1
        folder = self._evidence / f"{number:03}-{scenario.id}"
        result = run_alone(bench, scenario, role, setup, wanted.model, keep=folder)
        return LabTrial(result.model_copy(update={"build": build.name}), folder)

    def _scenario(self, given: str) -> Scenario:
        if _ID.fullmatch(given):
            return load_scenario(Path(self._options.scenarios) / given[:2] / f"{given}.yaml")
        return load_scenario(Path(given))

    def _build(self, spec: str) -> Build:
        if spec not in self._builds:
            self._builds[spec] = prepare(self._backend, spec, self._options.base)
        return self._builds[spec]

    @cached_property
    def _backend(self) -> Backend:
        sweep_work_directories()
        return select_backend(self._options.backend)

    @cached_property
    def _gateways(self) -> GatewayHost:
        return self.enter_context(GatewayHost())
