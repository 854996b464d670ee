"""A contamination run: which trials it has, what locks it, how it is worked off, re-judged and read back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lab.agents.base import Setup
from lab.agents.hermes.adapter import HermesAgent
from lab.contamination.observe.judge import COURSE, TrialIdentity, judge
from lab.contamination.scenario import Scenario
from lab.contamination.trial import SCRIPTED, Bench, run_trial
from lab.errors import EnvironmentUnusable, ErrorBudgetExceeded, InputError
from lab.gateway.policies.base import policy_named
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import Role, TrialResult, digest
from lab.runs.folder import RESULT, RunFolder, write_atomic, write_json
from lab.runs.lock import make_lock, new_run_id
from lab.runs.runner import Progress, run_trials

LOCK, PLAN = "lock.json", "plan.json"
SCENARIOS = "scenarios"
DEFAULT_MODELS = ("scripted:always-write", "scripted:never-write", "scripted:faithful")
SESSION_LIMITS = Limits()


@dataclass(frozen=True)
class Build:
    """One installed agent.

    Attributes:
        name: ``hermes-agent-0.19.0``.
        product: Name on the package registry.
        version: Exact version.
        environment: What was prepared for the backend.
        description: Manifest of the environment: packages, base, digests.
    """

    name: str
    product: str
    version: str
    environment: PreparedEnvironment
    description: Mapping[str, Any]


def load_setup(path: Path) -> Setup:
    """Reads a setup file.

    Raises:
        InputError: It is missing or not a setup.
    """
    try:
        return Setup.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise InputError(f"no setup is named {path.stem!r}", f"known setups: {known}") from error
    except (OSError, yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a setup: {str(error).splitlines()[0]}", "see docs/setups.md") from error


def plan_trials(
    scenarios: Sequence[Scenario], build: Build, setups: Sequence[Setup], models: Sequence[str], repeats: int = 1
) -> list[dict[str, Any]]:
    """Lists the trials: every scenario and its twin × setup × model × repeat, in a fixed order.

    Raises:
        InputError: A model is not known, or there is nothing to run.
    """
    for model in models:
        if not model.startswith(SCRIPTED):
            raise InputError(f"model {model!r} is not known", "scripted:<policy>, e.g. scripted:always-write")
        policy_named(model.removeprefix(SCRIPTED))
    trials = []
    for setup in setups:
        for model in models:
            for scenario in scenarios:
                roles = [scenario.role, Role.TWIN] if scenario.twin else [scenario.role]
                for role in roles:
                    trials += [_planned(scenario, role, build, setup, model, r) for r in range(1, repeats + 1)]
    if not trials:
        raise InputError("the selection holds no scenario", "lab run --families F1,F5")
    return trials


def _planned(scenario: Scenario, role: Role, build: Build, setup: Setup, model: str, repeat: int) -> dict[str, Any]:
    name = f"{scenario.id}-twin" if role is Role.TWIN else scenario.id
    cell = {
        "scenario": scenario.digest,
        "role": role,
        "build": build.environment.digest,
        "setup": setup.model_dump(mode="json"),
        "model": model,
    }
    return {
        "trial": f"{name}.{build.name}.{setup.name}.{model.replace(':', '-')}.r{repeat}",
        "cell": digest(cell),
        "scenario": scenario.id,
        "family": scenario.family.value,
        "role": role.value,
        "build": build.name,
        "setup": setup.name,
        "model": model,
        "repeat": repeat,
    }


def create_run(
    root: Path,
    *,
    scenarios: Sequence[Scenario],
    build: Build,
    setups: Sequence[Setup],
    models: Sequence[str],
    backend: Backend,
    repeats: int = 1,
    limits: Limits = SESSION_LIMITS,
) -> RunFolder:
    """Makes a run folder with its plan, its lock and copies of its scenarios.

    Raises:
        InputError: Nothing to run, or a name is not known.
        EnvironmentUnusable: The backend cannot be used.
        OSError: The folder cannot be written.
    """
    trials = plan_trials(scenarios, build, setups, models, repeats)
    status = backend.status()
    if not status.usable:
        raise EnvironmentUnusable(status.problem, status.mend)
    inputs = {
        "kind": "contamination",
        "backend": {"name": backend.name, "version": status.version, "weaknesses": list(status.weaknesses)},
        "builds": {
            build.name: {
                "product": build.product,
                "version": build.version,
                "environment_digest": build.environment.digest,
                **build.description,
            }
        },
        "setups": {s.name: s.model_dump(mode="json") for s in setups},
        "models": list(models),
        "scenarios": {s.id: s.digest for s in scenarios},
        "limits": {"memory_bytes": limits.memory_bytes, "wall_seconds": limits.wall_seconds},
    }
    folder = RunFolder.create(root, new_run_id(digest([t["cell"] for t in trials])))
    (folder.path / SCENARIOS).mkdir()
    for scenario in scenarios:
        copy = folder.path / SCENARIOS / f"{scenario.id}.json"
        write_atomic(copy, scenario.model_dump_json(by_alias=True, indent=2).encode() + b"\n")
    write_json(folder.path / LOCK, make_lock(folder.run_id, inputs))
    write_json(folder.path / PLAN, {"trials": trials})
    return folder


class Suite:
    """A run folder read back: its plan, scenarios and setups, all checked against the lock.

    Args:
        folder: The run folder.

    Raises:
        InputError: A part of the folder is missing, damaged or was changed.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.lock = folder.read(LOCK)
        self.plan = folder.read(PLAN)
        self.trials: dict[str, dict[str, Any]] = {t["trial"]: t for t in self.plan["trials"]}
        self.setups = {name: Setup.model_validate(data) for name, data in self.lock["setups"].items()}
        self.scenarios = {name: self._scenario(name, locked) for name, locked in self.lock["scenarios"].items()}
        self.agent = HermesAgent()

    def _scenario(self, name: str, locked: str) -> Scenario:
        path = self.folder.path / SCENARIOS / f"{name}.json"
        try:
            scenario = Scenario.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise InputError(f"{path} is missing or damaged", "start a new run: lab run") from error
        if scenario.digest != locked:
            raise InputError(f"{path} was changed after the run was locked", "start a new run: lab run")
        return scenario

    def identity(self, trial: str) -> TrialIdentity:
        """What a result says of itself before it is known."""
        planned = self.trials[trial]
        return TrialIdentity(**{name: planned[name] for name in TrialIdentity.model_fields})

    def results(self) -> list[TrialResult]:
        """The results so far, in the order of the plan.

        Raises:
            InputError: A result is damaged.
        """
        found = []
        for trial in self.trials:
            path = self.folder.trial(trial) / RESULT
            if not path.is_file():
                continue
            try:
                found.append(TrialResult.model_validate_json(path.read_bytes()))
            except ValidationError as error:
                raise InputError(f"{path} is damaged", f"lab rescore {self.folder.path}") from error
        return found

    def pending(self, retry_errors: bool = False) -> list[str]:
        """Trials without a result; with ``retry_errors`` also those that ended in an infrastructure error."""
        errors = {r.trial for r in self.results() if r.status == "error"} if retry_errors else set()
        return [t for t in self.trials if not self.folder.is_done(t) or t in errors]

    def rescore(self) -> int:
        """Judges every trial again from its evidence, without running anything; returns how many.

        Raises:
            InputError: Evidence is damaged.
        """
        count = 0
        for trial, planned in self.trials.items():
            path = self.folder.trial(trial)
            if not (path / COURSE).is_file():
                continue
            expect = self.setups[planned["setup"]].expect
            result = judge(self.identity(trial), self.scenarios[planned["scenario"]], expect, self.agent, path)
            write_atomic(path / RESULT, result.model_dump_json(indent=2).encode() + b"\n")
            count += 1
        return count

    def run(
        self,
        backend: Backend,
        environment: PreparedEnvironment,
        *,
        workers: int,
        error_budget: float,
        retry_errors: bool = False,
        on_progress: Callable[[Progress], None] = lambda _: None,
        limits: Limits | None = None,
    ) -> bool:
        """Runs what has no result yet.

        Args:
            backend: Isolation; must be the one of the lock.
            environment: The prepared build; must be the one of the lock.
            workers: Trials at once.
            error_budget: Share of the planned trials that may end in an infrastructure error.
            retry_errors: Also run again what ended in an error.
            on_progress: Told of each end.
            limits: Bounds of a session; the locked ones by default.

        Returns:
            False when interrupted by Ctrl-C.

        Raises:
            InputError: Backend or environment differ from the lock.
            EnvironmentUnusable: The machine gave out.
            ErrorBudgetExceeded: Too many errors; the run stops early.
        """
        self._check_same(backend, environment)
        bounds = limits or Limits(**self.lock["limits"])
        errors = {r.trial for r in self.results() if r.status == "error"}
        pending = self.pending(retry_errors)
        errors -= set(pending)
        allowed = error_budget * len(self.trials)
        blown = threading.Event()

        def count(progress: Progress) -> None:
            if progress.status == "error":
                errors.add(progress.trial)
                if len(errors) > allowed:
                    blown.set()
            on_progress(progress)

        with GatewayHost() as gateways:
            bench = Bench(backend, environment, self.agent, gateways, bounds, self.folder.run_id)

            def execute(trial: str, cancel: threading.Event) -> str:
                planned = self.trials[trial]
                folder = self.folder.fresh_trial(trial)
                setup, scenario = self.setups[planned["setup"]], self.scenarios[planned["scenario"]]
                return run_trial(self.identity(trial), scenario, setup, bench, folder, cancel).status.value

            finished = run_trials(
                pending, execute, workers=workers, total=len(self.trials), on_progress=count, stop=blown
            )
        if len(errors) > allowed:
            raise ErrorBudgetExceeded(
                f"{len(errors)} of {len(self.trials)} planned trials ended in an infrastructure error, "
                f"the budget is {error_budget:.0%}",
                f"see the causes in the report, then: lab resume --retry-errors {self.folder.path}",
            )
        return finished

    def _check_same(self, backend: Backend, environment: PreparedEnvironment) -> None:
        locked = self.lock["backend"]["name"]
        if backend.name != locked:
            raise InputError(
                f"the run was locked with backend {locked}, not {backend.name}", "start a new run: lab run"
            )
        digests = {b["environment_digest"] for b in self.lock["builds"].values()}
        if environment.digest not in digests:
            raise InputError(
                f"the build's environment {environment.digest[:12]} is not the locked one", "start a new run: lab run"
            )
