"""Works a run off with progress and writes its report: what ``lab run``, ``lab resume`` and a replay have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import typer

from lab.cli.build import prepare
from lab.cli.output import console, counting_bar, safe
from lab.cli.report import report_on
from lab.contamination.answering import Answering
from lab.contamination.suite import Suite
from lab.errors import BudgetSpent, ErrorBudgetExceeded, ExitCode, LabError
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.runs import capacity, runner


def prepare_again(suite: Suite, backend: Backend, base: str) -> dict[str, PreparedEnvironment]:
    """Prepares every locked build from its source, and checks that it is the same to the byte.

    Raises:
        LabError: One cannot be prepared any more, or is another now; with the exit code of the cause.
    """
    environments = {}
    for name, locked in suite.locked.builds.items():
        try:
            environment = prepare(backend, locked.source, base).environment
        except LabError as error:
            told = f"build {name} of the run cannot be prepared again from {locked.source}: {error.message}"
            raise type(error)(told, error.mend) from error
        locked.check(environment)
        environments[name] = environment
    return environments


def work_off(
    suite: Suite,
    backend: Backend,
    environments: Mapping[str, PreparedEnvironment],
    workers: int,
    error_budget: float,
    *,
    json: bool,
    retry_errors: bool = False,
    answering: Answering | None = None,
) -> None:
    """Runs what has no final result yet, then writes the report.

    Args:
        suite: The run.
        backend: Isolation.
        environments: The prepared environment of each build.
        workers: Trials at once.
        error_budget: Share of the planned trials that may end in an error.
        json: Whether the report is printed as JSON.
        retry_errors: Also run again what ended in an error.
        answering: Who answers the agent; the scripted models by default.

    Raises:
        ErrorBudgetExceeded: Too many errors; the report is written before.
        BudgetSpent: What may be spent on live models is spent; the report is written before.
    """
    console.print(f"run folder: {safe(str(suite.folder.path))}", soft_wrap=True)
    blown: ErrorBudgetExceeded | BudgetSpent | None = None
    finished = True
    with counting_bar() as bar:
        task = bar.add_task("trials", total=len(suite.trials))
        pending = suite.pending(retry_errors)
        bar.update(task, completed=len(suite.trials) - len(pending))
        counts: Counter[str] = Counter()

        def show(step: runner.Progress) -> None:
            counts["to be tried again" if step.again else step.status] += 1
            told = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
            bar.update(task, completed=step.done, description=f"trials ({told})")

        try:
            finished = suite.run(
                backend,
                environments,
                pending,
                workers=workers,
                error_budget=error_budget,
                on_progress=show,
                answering=answering,
            )
        except (ErrorBudgetExceeded, BudgetSpent) as error:
            blown = error
    report_on(suite, json=json)
    if retried := suite.retried():
        causes = ", ".join(f"{n} after {safe(cause)}" for cause, n in sorted(retried.items()))
        console.print(f"tried again: {causes}; a trial counts by its last attempt, earlier ones are under earlier/")
    if blown:
        raise blown
    if not finished:
        console.print(f"interrupted; go on with: lab resume {safe(str(suite.folder.path))}", soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED)


def workers_for(wanted: int, limits: Limits, most: int | None = None) -> int:
    """Trials at once; says so where memory or a model, and not the number of cores, decides.

    Args:
        wanted: As the user says; 0 for what the machine can do.
        limits: Bounds of a session.
        most: Requests that live models answer at once; None without them.
    """
    jobs, reason = capacity.measure().jobs(limits.memory_bytes, wanted)
    if reason:
        console.print(safe(reason), soft_wrap=True)
    if most is not None and most < jobs:
        console.print(f"{most} at once, as many as the live models answer (--concurrency)")
        return most
    return jobs
