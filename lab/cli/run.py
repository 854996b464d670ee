"""``lab run`` and ``lab resume``: work a plan off with progress, then write the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lab.agents.hermes.sources import DEFAULT_BUILD, parse_source, split_sources
from lab.cli.build import prepare
from lab.cli.output import console, counting_bar, safe
from lab.cli.places import (
    DEFAULT_REPORTS,
    DEFAULT_SCENARIOS,
    BackendOption,
    BaseOption,
    JsonOption,
    ReportsOption,
    ScenariosOption,
    setup_path,
)
from lab.cli.plan_table import print_plan_json, show_plan
from lab.cli.report import DERIVED, open_run, report_on
from lab.contamination.plan import (
    DEFAULT_MODELS,
    LOCK,
    SESSION_LIMITS,
    check_models,
    check_once,
    create_run,
    load_setup,
    plan_trials,
)
from lab.contamination.scenarios.library import load_library
from lab.contamination.scenarios.words import Family
from lab.contamination.selection import Shard, select, take_shard
from lab.contamination.sessions.base import MIXED, Start
from lab.contamination.suite import Suite
from lab.contamination.warm_proof import AUTO, settle_starts
from lab.errors import ErrorBudgetExceeded, ExitCode, InputError, LabError
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.isolation.select import select_backend
from lab.isolation.work import sweep_work_directories
from lab.runs import capacity, runner
from lab.runs.folder import RESULT, RunFolder
from lab.runs.pace import estimate

ALL_FAMILIES = ",".join(Family)
ALL_DEFAULT_MODELS = ",".join(DEFAULT_MODELS)
DEFAULT_BUILDS = [DEFAULT_BUILD]
FamiliesOption = Annotated[str, typer.Option("--families", envvar="LAB_FAMILIES", help="Families, comma-separated.")]
SelectOption = Annotated[
    str,
    typer.Option(
        "--select", help="Scenario ids and globs, comma-separated; '!' in front leaves out: 'F1-00?,F5-*,!F5-003'."
    ),
]
TagsOption = Annotated[
    str, typer.Option("--tags", help="Comma-separated: scenarios that have one of these tags; empty for all.")
]
ShardOption = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="K/N",
        help="Run the K-th of N parts, decided by scenario id; lab merge puts the parts together.",
    ),
]
BuildsOption = Annotated[
    list[str],
    typer.Option(
        "--builds",
        envvar="LAB_BUILDS",
        metavar="SPEC[,SPEC…]",
        help="Builds of the agent, comma-separated or repeated: 0.17.0, product==version, a source folder, a wheel.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**31 - 1,
        help="Order in which trials are started (0: as planned) and seeds of the trials.",
    ),
]
ModelsOption = Annotated[
    str,
    typer.Option(
        "--models",
        envvar="LAB_MODELS",
        help="Comma-separated scripted:POLICY of always-write, never-write, faithful, paraphrase, batch, malformed.",
    ),
]
SetupsOption = Annotated[str, typer.Option("--setups", envvar="LAB_SETUPS", help="Setups, comma-separated.")]
RepeatsOption = Annotated[int, typer.Option("--repeats", min=1, max=1000, help="Trials of each cell.")]
JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", min=0, max=64, envvar="LAB_JOBS", help="Trials at once; 0: by cores and free memory."),
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
    families: FamiliesOption = ALL_FAMILIES,
    select_: SelectOption = "",
    tags: TagsOption = "",
    shard: ShardOption = "",
    models: ModelsOption = ALL_DEFAULT_MODELS,
    setups: SetupsOption = "default",
    builds: BuildsOption = DEFAULT_BUILDS,
    repeats: RepeatsOption = 1,
    seed: SeedOption = 0,
    backend: BackendOption = "auto",
    base: BaseOption = "auto",
    jobs: JobsOption = 0,
    error_budget: BudgetOption = runner.ERROR_BUDGET,
    timeout: TimeoutOption = SESSION_LIMITS.wall_seconds,
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    reports: ReportsOption = DEFAULT_REPORTS,
    reuse: ReuseOption = None,
    start: StartOption = AUTO,
    plan: DryOption = False,
    json: JsonOption = False,
) -> None:
    """Run scenarios through the agent's real background review and write the report."""
    if start not in (*Start, AUTO):
        raise InputError(f"unknown start {start!r}", "use cold, warm or auto")
    sweep_work_directories()
    # Everything that can be refused is, before the first build is prepared: that may take minutes.
    part = Shard.parse(shard) if shard else None
    library = select(load_library(scenarios, _split(families)), _split(select_), _split(tags))
    mine = take_shard(library, part) if part else library
    chosen = [load_setup(setup_path(name)) for name in _split(setups)]
    named = _split(models)
    check_models(named)
    specs = [spec for given in builds for spec in split_sources(given)]
    check_once("build", [parse_source(spec).name for spec in specs])
    limits = replace(SESSION_LIMITS, wall_seconds=timeout)
    isolation = select_backend(backend)
    isolation.reap()  # what a killed lab left
    prepared = [prepare(isolation, spec, base) for spec in specs]
    trials = plan_trials(mine, prepared, chosen, named, repeats, seed)
    workers = _workers(jobs, limits)
    expected = estimate(len(trials), workers, isolation.name, reports)
    show_plan(trials, isolation.name, expected, seed=seed, shard=shard, cold=start == Start.COLD)
    if plan:
        if json:
            print_plan_json(trials, expected, seed=seed, shard=shard)
        return
    earlier = RunFolder.open(reuse) if reuse else None
    if earlier:
        locked = str(earlier.read(LOCK).get("start", Start.COLD))
        if start not in (AUTO, locked) and locked != MIXED:
            told = f"{safe(earlier.run_id)} was started {safe(locked)}"
            raise InputError(told, f"lab run --start {safe(locked)} --reuse {safe(str(reuse))}")
        start = AUTO if locked == MIXED else locked
    # What a comparison tells may quote the sandbox.
    starts = settle_starts(
        start, isolation, prepared, chosen, limits, lambda line: console.print(safe(line), soft_wrap=True)
    )
    folder = create_run(
        reports,
        scenarios=library,
        builds=prepared,
        setups=chosen,
        models=named,
        backend=isolation,
        repeats=repeats,
        seed=seed,
        shard=part,
        limits=limits,
        reused=earlier.run_id if earlier else "",
        starts=starts,
    )
    with folder.lock():
        suite = Suite(folder)
        if earlier:
            with earlier.lock():
                earlier.check_seal({*DERIVED, RESULT})
                console.print(f"taken over from {safe(earlier.run_id)}: {suite.take_over(Suite(earlier))} trials")
        environments = {build.name: build.environment for build in prepared}
        _work_off(suite, isolation, environments, workers, error_budget, json=json)


def resume(
    path: Annotated[Path | None, typer.Argument(help="Run folder; the newest one by default.")] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Also run again what ended in an infrastructure error.")
    ] = False,
    base: BaseOption = "auto",
    jobs: JobsOption = 0,
    error_budget: BudgetOption = runner.ERROR_BUDGET,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Go on with an interrupted run: what has a result is kept, the rest is run, the report is written."""
    sweep_work_directories()
    with open_run(path, reports) as suite:
        isolation = select_backend(suite.locked.backend)
        isolation.reap()
        environments = _prepare_again(suite, isolation, base)
        workers = _workers(jobs, suite.locked.limits)
        _work_off(suite, isolation, environments, workers, error_budget, json=json, retry_errors=retry_errors)


def _prepare_again(suite: Suite, backend: Backend, base: str) -> dict[str, PreparedEnvironment]:
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


def _work_off(
    suite: Suite,
    backend: Backend,
    environments: Mapping[str, PreparedEnvironment],
    workers: int,
    error_budget: float,
    *,
    json: bool,
    retry_errors: bool = False,
) -> None:
    console.print(f"run folder: {safe(str(suite.folder.path))}", soft_wrap=True)
    blown: ErrorBudgetExceeded | None = None
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
            )
        except ErrorBudgetExceeded as error:
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


def _workers(wanted: int, limits: Limits) -> int:
    """Trials at once; says so where memory and not the number of cores decides."""
    jobs, reason = capacity.measure().jobs(limits.memory_bytes, wanted)
    if reason:
        console.print(safe(reason), soft_wrap=True)
    return jobs


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
