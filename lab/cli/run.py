"""``lab run`` and ``lab resume``: work a plan off with progress, then write the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lab.agents.hermes.sources import parse_source, split_sources
from lab.cli.build import prepare
from lab.cli.live import (
    ANSWER_SECONDS,
    SESSION_SECONDS,
    Asking,
    budget_of,
    check_same_models,
    introduce,
    lane_limits,
    lanes,
    live_models,
    token_plan,
    with_ceiling,
)
from lab.cli.output import console, safe
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
from lab.cli.replay import recording_of, replay
from lab.cli.report import DERIVED, open_run
from lab.cli.run_options import (
    ALL_DEFAULT_MODELS,
    ALL_FAMILIES,
    DEFAULT_BUILDS,
    AnswerTimeoutOption,
    BudgetCostOption,
    BudgetOption,
    BudgetTokensOption,
    BuildsOption,
    CeilingOption,
    ConcurrencyOption,
    ContextOption,
    DryOption,
    FamiliesOption,
    JobsOption,
    KeyOption,
    MaxTokensOption,
    ModelsOption,
    PriceInOption,
    PriceOutOption,
    ProbeOption,
    PullOption,
    RecordOption,
    RepeatsOption,
    ReuseOption,
    ScopeOption,
    SeedOption,
    SelectOption,
    SetupsOption,
    ShardOption,
    StartOption,
    TagsOption,
    TemperatureOption,
    TimeoutOption,
    TopKOption,
    TopPOption,
    names_in,
)
from lab.cli.work_off import prepare_again, work_off, workers_for
from lab.contamination.answering import Answering, Replaying
from lab.contamination.plan import (
    LOCK,
    SESSION_LIMITS,
    check_models,
    check_once,
    create_run,
    load_setup,
    plan_trials,
)
from lab.contamination.recordings import check_free, keep_recording
from lab.contamination.scenarios.library import load_library
from lab.contamination.selection import Shard, select, take_shard
from lab.contamination.sessions.base import MIXED, Start
from lab.contamination.suite import Suite
from lab.contamination.warm_proof import AUTO, settle_starts
from lab.errors import InputError
from lab.gateway.upstream.live import Scope
from lab.isolation.select import select_backend
from lab.isolation.work import sweep_work_directories
from lab.models.identity import Sampling
from lab.models.openai import KEY_VARIABLE
from lab.runs import runner
from lab.runs.folder import RESULT, RunFolder
from lab.runs.pace import estimate


def run(
    ctx: typer.Context,
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
    timeout: TimeoutOption = None,
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    reports: ReportsOption = DEFAULT_REPORTS,
    reuse: ReuseOption = None,
    record: RecordOption = None,
    start: StartOption = AUTO,
    plan: DryOption = False,
    live: ScopeOption = Scope.REVIEW,
    ceiling: CeilingOption = True,
    temperature: TemperatureOption = None,
    top_p: TopPOption = None,
    top_k: TopKOption = None,
    max_tokens: MaxTokensOption = None,
    context: ContextOption = None,
    pull: PullOption = False,
    probe: ProbeOption = True,
    key_env: KeyOption = KEY_VARIABLE,
    concurrency: ConcurrencyOption = 1,
    answer_timeout: AnswerTimeoutOption = ANSWER_SECONDS,
    budget_tokens: BudgetTokensOption = None,
    budget_cost: BudgetCostOption = None,
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    json: JsonOption = False,
) -> None:
    """Run scenarios through the agent's real background review and write the report."""
    _check_early(start, record)
    sweep_work_directories()
    named = [name for given in models for name in names_in(given)]
    if recording := recording_of(named, ctx):
        replay(
            recording,
            families=names_in(families),
            select_=names_in(select_),
            tags=names_in(tags),
            backend=backend,
            base=base,
            jobs=jobs,
            error_budget=error_budget,
            reports=reports,
            json=json,
        )
        return
    # Everything that can be refused is, before the first build is prepared: that may take minutes.
    part = Shard.parse(shard) if shard else None
    library = select(load_library(scenarios, names_in(families)), names_in(select_), names_in(tags))
    mine = take_shard(library, part) if part else library
    chosen = [load_setup(setup_path(name)) for name in names_in(setups)]
    model_specs = check_models(named)
    specs = [spec for given in builds for spec in split_sources(given)]
    check_once("build", [parse_source(spec).name for spec in specs])
    asking = Asking(
        scope=live,
        sampling=Sampling(temperature=temperature, top_p=top_p, top_k=top_k, max_tokens=max_tokens, num_ctx=context),
        context=context,
        key_env=key_env,
        limits=lane_limits(concurrency, answer_timeout),
        budget=budget_of(budget_tokens, budget_cost, price_in, price_out),
    )
    lively = introduce(model_specs, asking, pull=pull, probe=probe and not plan)
    # By their names without an address: two runs of one model are runs of one model.
    named = with_ceiling([spec.text for spec in model_specs], lively, ceiling)
    default = SESSION_SECONDS if lively else SESSION_LIMITS.wall_seconds
    limits = replace(SESSION_LIMITS, wall_seconds=timeout or default)
    isolation = select_backend(backend)
    isolation.reap()  # what a killed lab left
    prepared = [prepare(isolation, spec, base) for spec in specs]
    trials = plan_trials(mine, prepared, chosen, named, repeats, seed, lively)
    workers = workers_for(jobs, limits, most=lanes(lively, asking))
    expected = estimate(len(trials), workers, isolation.name, reports)
    tokens = token_plan(trials, lively, asking, reports)
    cold = start == Start.COLD
    show_plan(trials, isolation.name, expected, seed=seed, shard=shard, cold=cold, tokens=tokens)
    if plan:
        if json:
            print_plan_json(trials, expected, seed=seed, shard=shard, tokens=tokens)
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
        live=lively,
    )
    with folder.lock():
        suite = Suite(folder)
        if earlier:
            with earlier.lock():
                earlier.check_seal({*DERIVED, RESULT})
                console.print(f"taken over from {safe(earlier.run_id)}: {suite.take_over(Suite(earlier))} trials")
        environments = {build.name: build.environment for build in prepared}
        answering = live_models(lively, asking, suite) if lively else None
        work_off(suite, isolation, environments, workers, error_budget, json=json, answering=answering)
        if record:
            _keep(folder, record)


def _check_early(start: str, record: Path | None) -> None:
    if start not in (*Start, AUTO):
        raise InputError(f"unknown start {start!r}", "use cold, warm or auto")
    if record:
        check_free(record)


def _keep(folder: RunFolder, record: Path) -> None:
    kept = keep_recording(folder, record)
    console.print(f"recorded: {kept} trials in {safe(str(record))}", soft_wrap=True)


def resume(
    path: Annotated[Path | None, typer.Argument(help="Run folder; the newest one by default.")] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Also run again what ended in an infrastructure error.")
    ] = False,
    base: BaseOption = "auto",
    jobs: JobsOption = 0,
    error_budget: BudgetOption = runner.ERROR_BUDGET,
    reports: ReportsOption = DEFAULT_REPORTS,
    concurrency: ConcurrencyOption = 1,
    answer_timeout: AnswerTimeoutOption = ANSWER_SECONDS,
    budget_tokens: BudgetTokensOption = None,
    budget_cost: BudgetCostOption = None,
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    json: JsonOption = False,
) -> None:
    """Go on with an interrupted run: what has a result is kept, the rest is run, the report is written."""
    sweep_work_directories()
    with open_run(path, reports) as suite:
        isolation = select_backend(suite.locked.backend)
        isolation.reap()
        live = suite.locked.live
        answering: Answering | None = None
        most = None
        if suite.locked.recording:
            answering = Replaying(RunFolder.open(Path(suite.locked.recording)))
        elif live:
            asking = Asking(
                scope=live.scope,
                sampling=live.sampling,
                context=None,
                key_env=live.key_env,
                limits=lane_limits(concurrency, answer_timeout),
                budget=budget_of(budget_tokens, budget_cost, price_in, price_out, live.budget),
            )
            check_same_models(live, asking)
            answering, most = live_models(live, asking, suite), lanes(live, asking)
        environments = prepare_again(suite, isolation, base)
        workers = workers_for(jobs, suite.locked.limits, most=most)
        work_off(
            suite,
            isolation,
            environments,
            workers,
            error_budget,
            json=json,
            retry_errors=retry_errors,
            answering=answering,
        )
