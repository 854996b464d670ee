"""A contamination run read back: worked off, judged again, its results."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from lab.agents.base import Setup
from lab.agents.hermes.adapter import HermesAgent
from lab.contamination.observe.judge import COURSE, TrialIdentity, judge
from lab.contamination.plan import LOCK, PLAN, SCENARIOS
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.sessions.base import Start
from lab.contamination.trial import Bench, run_trial
from lab.contamination.warm_proof import sessions_named
from lab.errors import ErrorBudgetExceeded, InputError
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import TrialResult, digest
from lab.runs.folder import RESULT, RunFolder, write_atomic
from lab.runs.runner import Progress, run_trials


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
        self.agent = HermesAgent()
        try:
            if digest(self.plan) != self.lock["plan_digest"]:
                raise InputError(
                    f"{folder.path / PLAN} was changed after the run was locked", "start a new run: lab run"
                )
            self.trials: dict[str, dict[str, Any]] = {t["trial"]: t for t in self.plan["trials"]}
            self.identities = {
                name: TrialIdentity(**{part: planned[part] for part in TrialIdentity.model_fields})
                for name, planned in self.trials.items()
            }
            self.setups = {name: Setup.model_validate(data) for name, data in self.lock["setups"].items()}
            self.backend_name = str(self.lock["backend"]["name"])
            self.versions = [str(b["version"]) for b in self.lock["builds"].values()]
            self.environments = {str(b["environment_digest"]) for b in self.lock["builds"].values()}
            self.start = Start(self.lock.get("start", Start.COLD))
            bounds = self.lock["limits"]
            self.limits = Limits(int(bounds["memory_bytes"]), wall_seconds=float(bounds["wall_seconds"]))
            locked = {str(name): str(value) for name, value in self.lock["scenarios"].items()}
            planned_names = {(t["scenario"], t["setup"]) for t in self.trials.values()}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"{folder.path}: lock.json or plan.json has not the form of a run ({type(error).__name__}: {error})"
            raise InputError(what.splitlines()[0], "start a new run: lab run") from error
        self.scenarios = {name: self._scenario(name, value) for name, value in locked.items()}
        for scenario, setup in planned_names:
            if scenario not in self.scenarios or setup not in self.setups:
                raise InputError(
                    f"{folder.path}: the plan names what the lock does not hold", "start a new run: lab run"
                )

    def _scenario(self, name: str, locked: str) -> Scenario:
        path = self.folder.path / SCENARIOS / f"{name}.json"
        try:
            scenario = Scenario.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise InputError(f"{path} is missing or damaged", "start a new run: lab run") from error
        if scenario.digest != locked:
            raise InputError(f"{path} was changed after the run was locked", "start a new run: lab run")
        return scenario

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

    def take_over(self, earlier: Suite) -> int:
        """Copies the evidence of equal cells from an earlier run and judges it again.

        A cell is equal when scenario, build, setup and model are, to the byte; only valid trials are taken over.

        Args:
            earlier: The earlier run, whose evidence has been checked.

        Returns:
            How many trials were taken over.

        Raises:
            InputError: Evidence of the earlier run is damaged.
        """
        valid = {r.trial: r.cell for r in earlier.results() if r.status == "valid"}
        equal = [t for t, identity in self.identities.items() if valid.get(t) == identity.cell]
        for trial in equal:
            target = self.folder.fresh_trial(trial)
            shutil.copytree(earlier.folder.trial(trial), target, dirs_exist_ok=True, symlinks=True)
            (target / RESULT).unlink()
            self._judge(trial)
        return len(equal)

    def _judge(self, trial: str) -> None:
        planned, path = self.trials[trial], self.folder.trial(trial)
        expect = self.setups[planned["setup"]].expect
        result = judge(self.identities[trial], self.scenarios[planned["scenario"]], expect, self.agent, path)
        write_atomic(path / RESULT, result.model_dump_json(indent=2).encode() + b"\n")

    def rescore(self) -> int:
        """Judges every trial again from its evidence, without running anything; returns how many.

        Raises:
            InputError: Evidence is damaged.
        """
        ended = [trial for trial in self.trials if (self.folder.trial(trial) / COURSE).is_file()]
        for trial in ended:
            self._judge(trial)
        return len(ended)

    def run(
        self,
        backend: Backend,
        environment: PreparedEnvironment,
        *,
        workers: int,
        error_budget: float,
        retry_errors: bool = False,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> bool:
        """Runs what has no result yet.

        Args:
            backend: Isolation; must be the one of the lock.
            environment: The prepared build; must be the one of the lock.
            workers: Trials at once.
            error_budget: Share of the planned trials that may end in an infrastructure error.
            retry_errors: Also run again what ended in an error.
            on_progress: Told of each end.

        Returns:
            False when interrupted by Ctrl-C.

        Raises:
            InputError: Backend or environment differ from the lock.
            EnvironmentUnusable: The machine gave out.
            ErrorBudgetExceeded: Too many errors; the run stops early.
        """
        self._check_same(backend, environment)
        self.folder.unseal()
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

        with GatewayHost() as gateways, contextlib.closing(sessions_named(self.start)) as sessions:
            bench = Bench(backend, environment, self.agent, gateways, self.limits, self.folder.run_id, sessions)

            def execute(trial: str, cancel: threading.Event) -> str:
                planned = self.trials[trial]
                folder = self.folder.fresh_trial(trial)
                setup, scenario = self.setups[planned["setup"]], self.scenarios[planned["scenario"]]
                return run_trial(self.identities[trial], scenario, setup, bench, folder, cancel).status.value

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
        if backend.name != self.backend_name:
            told = f"the run was locked with backend {self.backend_name}, not {backend.name}"
            raise InputError(told, "start a new run: lab run")
        if environment.digest not in self.environments:
            told = f"the build's environment {environment.digest[:12]} is not the locked one"
            raise InputError(told, "start a new run: lab run")
