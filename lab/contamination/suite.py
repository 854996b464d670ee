"""A contamination run read back: worked off, judged again, its results."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import ValidationError

from lab.agents.select import agent_for
from lab.contamination.answering import Answering, Scripted
from lab.contamination.judgements import Rescored, write_judgement
from lab.contamination.locked import read_locked
from lab.contamination.observe.detectors import detectors
from lab.contamination.observe.judge import COURSE, judge
from lab.contamination.plan import LOCK, PLAN, SCENARIOS, start_order
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.secrets import Secrets
from lab.contamination.sessions.base import Start
from lab.contamination.trial import Bench, run_trial
from lab.contamination.warm_proof import sessions_named
from lab.errors import ErrorBudgetExceeded, InputError
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, PreparedEnvironment
from lab.records import Status, TrialResult, digest
from lab.runs.folder import RESULT, RunFolder
from lab.runs.runner import Ended, Progress, run_trials


class Suite:
    """A run folder read back: its plan, scenarios and setups, all checked against the lock.

    Results stay on disk: whoever needs them reads them one by one, so that a run of any length takes the same memory.

    Args:
        folder: The run folder.

    Raises:
        InputError: A part of the folder is missing, damaged or was changed.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.lock = folder.read(LOCK)
        self.plan = folder.read(PLAN)
        self.locked = read_locked(folder.path, self.lock, self.plan)
        self.trials = self.locked.trials
        self.agents = {name: agent_for(build.product) for name, build in self.locked.builds.items()}
        self.scenarios = {name: self._scenario(name, value) for name, value in self.locked.scenarios.items()}

    def _scenario(self, name: str, locked: str) -> Scenario:
        path = self.folder.path / SCENARIOS / f"{name}.json"
        try:
            data = path.read_bytes()
            scenario = Scenario.model_validate_json(data)
        except (OSError, ValidationError) as error:
            raise InputError(f"{path} is missing or damaged", "start a new run: lab run") from error
        # Of the copy as it stands: a field that came later would be in a digest of what it is read as.
        if digest(json.loads(data)) != locked:
            raise InputError(f"{path} was changed after the run was locked", "start a new run: lab run")
        return scenario

    def result(self, trial: str) -> TrialResult | None:
        """The result of one trial; None where it has none yet.

        Raises:
            InputError: The result is damaged.
        """
        path = self.folder.trial(trial) / RESULT
        if not path.is_file():
            return None
        try:
            return TrialResult.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise InputError(f"{path} is damaged", f"lab rescore {self.folder.path}") from error

    def each_result(self) -> Iterator[TrialResult]:
        """The results so far, in the order of the plan, each read when it is asked for.

        Raises:
            InputError: A result is damaged.
        """
        yield from filter(None, map(self.result, self.trials))

    def results(self) -> list[TrialResult]:
        """All results so far at once, for a report.

        Raises:
            InputError: A result is damaged.
        """
        return list(self.each_result())

    def pending(self, retry_errors: bool = False) -> list[str]:
        """Trials without a final result, in the order in which they are started.

        What ended in an error that the table of retries has another attempt for is among them: a run that was killed
        before that attempt goes on as if it had not been.

        Args:
            retry_errors: Also give every other trial that ended in an infrastructure error.

        Raises:
            InputError: A result is damaged.
        """
        attempts = self.attempts()
        final = set()
        for result in self.each_result():
            again = self.locked.retries.again(result.status, result.cause, attempts[result.trial])
            if not again and not (retry_errors and result.status is Status.ERROR):
                final.add(result.trial)
        return start_order([t for t in self.trials if t not in final], self.locked.seed)

    def attempts(self) -> Counter[str]:
        """How many attempts of each trial have a result; a trial without one is not in it."""
        found = Counter(trial for trial, _ in self.folder.earlier() if trial in self.trials)
        found.update(trial for trial in self.trials if self.folder.is_done(trial))
        return found

    def retried(self) -> Counter[str]:
        """How many trials were tried again, by the cause of an earlier attempt.

        Attempts are never replicates: only the last one of a trial is its result, and it counts once.

        Raises:
            InputError: The result of an earlier attempt is damaged.
        """
        causes = set()
        for trial, path in self.folder.earlier():
            try:
                cause = TrialResult.model_validate_json((path / RESULT).read_bytes()).cause
            except (OSError, ValidationError) as error:
                raise InputError(f"{path / RESULT} is missing or damaged", "remove that folder") from error
            causes.add((trial, cause))
        return Counter(cause for _, cause in causes)

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
        valid = {r.trial: r.cell for r in earlier.each_result() if r.status is Status.VALID}
        equal = [t for t, planned in self.trials.items() if valid.get(t) == planned["cell"]]
        for trial in equal:
            source, target = earlier.folder.trial(trial), self.folder.fresh_trial(trial)
            shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns(RESULT))
            write_judgement(target, self._judge(trial))
        return len(equal)

    def _judge(self, trial: str) -> TrialResult:
        planned, path = self.trials[trial], self.folder.trial(trial)
        setup, agent = self.locked.setups[planned["setup"]], self.agents[planned["build"]]
        return judge(self.locked.identity(trial), self.scenarios[planned["scenario"]], setup, agent, path)

    def rescore(self) -> Rescored:
        """Judges every trial again from its evidence, without running anything; earlier judgements are kept.

        Returns:
            What changed, against the judgements that were sealed.

        Raises:
            InputError: Evidence is damaged.
        """
        seal = self.folder.sealed()
        ended = [trial for trial in self.trials if (self.folder.trial(trial) / COURSE).is_file()]
        sealed_as = {trial: seal.get(f"trials/{trial}/{RESULT}", "") if seal else None for trial in ended}
        again = (write_judgement(self.folder.trial(t), self._judge(t), sealed_as[t]) for t in ended)
        return Rescored.of(detectors(), again)

    def run(
        self,
        backend: Backend,
        environments: Mapping[str, PreparedEnvironment],
        pending: Sequence[str],
        *,
        workers: int,
        error_budget: float,
        on_progress: Callable[[Progress], None] = lambda _: None,
        answering: Answering | None = None,
    ) -> bool:
        """Runs trials, each in the environment of its build.

        Args:
            backend: Isolation; must be the one of the lock.
            environments: The prepared environment of each build; must be those of the lock.
            pending: What to run, as ``pending`` gave it.
            workers: Trials at once.
            error_budget: Share of the planned trials that may end in an infrastructure error; a trial that is tried
                again counts by its last attempt, once.
            on_progress: Told of each end.
            answering: Who answers the agent; the scripted models by default.

        Returns:
            False when interrupted by Ctrl-C.

        Raises:
            InputError: Backend or an environment differ from the lock, or a scenario holds a secret.
            EnvironmentUnusable: The machine gave out.
            BudgetSpent: What may be spent on live models is spent.
            ErrorBudgetExceeded: Too many errors; the run stops early.
        """
        self.locked.check_same(backend, environments)
        secrets = Secrets.of()
        secrets.refuse(self.scenarios.values())
        self.folder.unseal()
        waiting = set(pending)
        errors = {r.trial for r in self.each_result() if r.status is Status.ERROR} - waiting
        attempts = self.attempts()
        allowed = error_budget * len(self.trials)
        blown = threading.Event()

        def again(trial: str, end: Ended) -> float | None:
            attempts[trial] += 1
            rule = self.locked.retries.again(end.status, end.cause, attempts[trial])
            return rule.pause_seconds if rule else None

        def count(progress: Progress) -> None:
            if progress.status == Status.ERROR and not progress.again:
                errors.add(progress.trial)
                if len(errors) > allowed:
                    blown.set()
            on_progress(progress)

        with GatewayHost() as gateways, contextlib.ExitStack() as ends:
            ways = {start: ends.enter_context(contextlib.closing(sessions_named(start))) for start in Start}
            benches = {
                (build, setup): Bench(
                    backend,
                    environments[build],
                    self.agents[build],
                    gateways,
                    self.locked.limits,
                    self.folder.run_id,
                    ways[self.locked.starts.of(build, setup)],
                    answering or Scripted(),
                    secrets,
                )
                for build in self.locked.builds
                for setup in self.locked.setups
            }

            def execute(trial: str, cancel: threading.Event) -> Ended:
                planned = self.trials[trial]
                setup, scenario = self.locked.setups[planned["setup"]], self.scenarios[planned["scenario"]]
                identity, folder = self.locked.identity(trial), self.folder.fresh_trial(trial)
                result = run_trial(
                    identity, scenario, setup, benches[planned["build"], planned["setup"]], folder, cancel
                )
                return Ended(result.status.value, result.cause)

            total = len(self.trials)
            finished = run_trials(
                pending, execute, workers=workers, total=total, on_progress=count, again=again, stop=blown
            )
        if len(errors) > allowed:
            raise ErrorBudgetExceeded(
                f"{len(errors)} of {total} planned trials ended in an infrastructure error, "
                f"the budget is {error_budget:.0%}",
                f"see the causes in the report, then: lab resume --retry-errors {self.folder.path}",
            )
        return finished
