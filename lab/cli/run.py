"""``lab run`` and ``lab resume``: work a plan off with progress, then write the report."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lab.cli.build import prepare
from lab.cli.output import console, print_json, safe
from lab.cli.places import (
    DEFAULT_REPORTS,
    DEFAULT_SCENARIOS,
    DEFAULT_VERSION,
    BackendOption,
    BaseOption,
    JsonOption,
    ReportsOption,
    ScenariosOption,
    VersionOption,
    setup_path,
)
from lab.cli.report import DERIVED, open_run, report_on
from lab.contamination.plan import DEFAULT_MODELS, LOCK, SESSION_LIMITS, create_run, load_setup, plan_trials
from lab.contamination.scenarios.library import load_library
from lab.contamination.sessions.base import Start
from lab.contamination.sessions.work import sweep_work_directories
from lab.contamination.suite import Suite
from lab.contamination.warm_proof import AUTO, settle_start
from lab.errors import ErrorBudgetExceeded, ExitCode, InputError
from lab.isolation.base import Backend, PreparedEnvironment
from lab.isolation.select import select_backend
from lab.runs import runner
from lab.runs.folder import RESULT, RunFolder

ALL_DEFAULT_MODELS = ",".join(DEFAULT_MODELS)
FamiliesOption = Annotated[str, typer.Option("--families", envvar="LAB_FAMILIES", help="Families, comma-separated.")]
SelectOption = Annotated[str, typer.Option("--select", help="Scenario ids: a glob such as 'F1-00?'.")]
ModelsOption = Annotated[
    str,
    typer.Option(
        "--models",
        envvar="LAB_MODELS",
        help="Comma-separated: scripted:always-write, scripted:never-write, scripted:faithful, scripted:paraphrase.",
    ),
]
SetupsOption = Annotated[str, typer.Option("--setups", envvar="LAB_SETUPS", help="Setups, comma-separated.")]
RepeatsOption = Annotated[int, typer.Option("--repeats", min=1, max=1000, help="Trials of each cell.")]
JobsOption = Annotated[
    int, typer.Option("--jobs", "-j", min=0, max=64, envvar="LAB_JOBS", help="Trials at once; 0: one for each core.")
]
BudgetOption = Annotated[
    float,
    typer.Option(
        "--error-budget", min=0, max=1, help="Share of planned trials that may end in an infrastructure error."
    ),
]
TimeoutOption = Annotated[float, typer.Option("--timeout", min=1, help="Wall seconds for one session of the agent.")]
ReuseOption = Annotated[
    Path | None,
    typer.Option("--reuse", help="Earlier run folder: equal cells are taken over, the rest is run."),
]
StartOption = Annotated[
    str,
    typer.Option(
        "--start",
        envvar="LAB_START",
        help="How the agent's sessions are started: cold, warm (forked from an imported agent), or auto.",
    ),
]
DryOption = Annotated[bool, typer.Option("--plan", help="Print the plan and stop.")]


def run(
    families: FamiliesOption = "F1,F5",
    select: SelectOption = "*",
    models: ModelsOption = ALL_DEFAULT_MODELS,
    setups: SetupsOption = "default",
    repeats: RepeatsOption = 1,
    backend: BackendOption = "auto",
    agent_version: VersionOption = DEFAULT_VERSION,
    base: BaseOption = "auto",
    jobs: JobsOption = 0,
    error_budget: BudgetOption = 0.1,
    timeout: TimeoutOption = SESSION_LIMITS.wall_seconds,
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    reports: ReportsOption = DEFAULT_REPORTS,
    reuse: ReuseOption = None,
    start: StartOption = Start.COLD.value,
    plan: DryOption = False,
    json: JsonOption = False,
) -> None:
    """Run scenarios through the agent's real background review and write the report."""
    if start not in (*Start, AUTO):
        raise InputError(f"unknown start {start!r}", "use cold, warm or auto")
    sweep_work_directories()
    library = load_library(scenarios, _split(families), select)
    chosen = [load_setup(setup_path(name)) for name in _split(setups)]
    isolation = select_backend(backend)
    isolation.reap()  # what a killed lab left
    build = prepare(isolation, agent_version, base)
    trials = plan_trials(library, build, chosen, _split(models), repeats)
    _print_plan(trials, isolation.name)
    if plan:
        if json:
            print_json({"trials": trials})
        return
    limits = replace(SESSION_LIMITS, wall_seconds=timeout)
    earlier = RunFolder.open(reuse) if reuse else None
    if earlier:
        locked = str(earlier.read(LOCK).get("start", Start.COLD))
        if start not in (AUTO, locked):
            told = f"{safe(earlier.run_id)} was started {safe(locked)}"
            raise InputError(told, f"lab run --start {safe(locked)} --reuse {safe(str(reuse))}")
        start = locked
    settled = settle_start(start, isolation, [build.environment], chosen, limits, console.print)
    folder = create_run(
        reports,
        scenarios=library,
        build=build,
        setups=chosen,
        models=_split(models),
        backend=isolation,
        repeats=repeats,
        limits=limits,
        reused=earlier.run_id if earlier else "",
        start=settled,
    )
    with folder.lock():
        suite = Suite(folder)
        if earlier:
            with earlier.lock():
                earlier.check_seal({*DERIVED, RESULT})
                console.print(f"taken over from {safe(earlier.run_id)}: {suite.take_over(Suite(earlier))} trials")
        _work_off(suite, isolation, build.environment, jobs, error_budget, json=json)


def resume(
    path: Annotated[Path | None, typer.Argument(help="Run folder; the newest one by default.")] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Also run again what ended in an infrastructure error.")
    ] = False,
    base: BaseOption = "auto",
    jobs: JobsOption = 0,
    error_budget: BudgetOption = 0.1,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Go on with an interrupted run: what has a result is kept, the rest is run, the report is written."""
    sweep_work_directories()
    with open_run(path, reports) as suite:
        isolation = select_backend(suite.backend_name)
        isolation.reap()
        build = prepare(isolation, suite.versions[0], base)
        _work_off(suite, isolation, build.environment, jobs, error_budget, json=json, retry_errors=retry_errors)


def _work_off(
    suite: Suite,
    backend: Backend,
    environment: PreparedEnvironment,
    jobs: int,
    error_budget: float,
    *,
    json: bool,
    retry_errors: bool = False,
) -> None:
    console.print(f"run folder: {safe(str(suite.folder.path))}", soft_wrap=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    blown: ErrorBudgetExceeded | None = None
    finished = True
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("trials", total=len(suite.trials))
        bar.update(task, completed=len(suite.trials) - len(suite.pending(retry_errors)))
        counts: Counter[str] = Counter()

        def show(step: runner.Progress) -> None:
            counts[step.status] += 1
            told = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
            bar.update(task, completed=step.done, description=f"trials ({told})")

        try:
            finished = suite.run(
                backend,
                environment,
                workers=jobs or os.cpu_count() or 1,
                error_budget=error_budget,
                retry_errors=retry_errors,
                on_progress=show,
            )
        except ErrorBudgetExceeded as error:
            blown = error
    report_on(suite, json=json)
    if blown:
        raise blown
    if not finished:
        console.print(f"interrupted; go on with: lab resume {safe(str(suite.folder.path))}", soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED)


def _print_plan(trials: list[dict[str, object]], backend: str) -> None:
    by = Counter(f"{t['family']} {t['role']}" for t in trials)
    parts = ", ".join(f"{n} {what}" for what, n in sorted(by.items()))
    console.print(f"plan: {len(trials)} trials in {backend} ({parts})")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
