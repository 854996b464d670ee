"""``lab minimise``: makes a trial's scenario as small as it can be without losing the trial's outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table

from lab.cli.build import prepare
from lab.cli.output import console, counting_bar, print_json, safe, stdout
from lab.cli.places import BaseOption, JsonOption
from lab.contamination.minimise.reduce import Size, plain
from lab.contamination.minimise.search import Ending, KnownOutcomes, Search, Step
from lab.contamination.outcome import Outcome
from lab.contamination.plan import check_scripted
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.single import find_trial, read_result, run_alone
from lab.contamination.suite import Suite
from lab.contamination.trial import Bench
from lab.errors import ExitCode, InputError
from lab.gateway.server import GatewayHost
from lab.isolation.select import select_backend
from lab.isolation.work import sweep_work_directories
from lab.records import Status
from lab.runs.folder import write_atomic

TrialArgument = Annotated[
    Path, typer.Argument(metavar="TRIAL", help="A trial's folder in a run; or the run's folder, with the trial's id.")
]
TrialIdArgument = Annotated[str, typer.Argument(metavar="[ID]", help="Id of the trial, where TRIAL is a run folder.")]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", help="File to write the scenario to; by default in minimised/, beside the run.", dir_okay=False
    ),
]
MOST = Annotated[int, typer.Option("--budget", min=1, max=10_000, help="Trials that may be run.")]
_ROWS = {
    "messages": "messages",
    "steps": "tool calls of the scripted models",
    "world": "entries, files and skills before",
    "characters": "characters given to the agent",
    "payload": "characters of the payload",
}


def minimise(
    trial: TrialArgument,
    trial_id: TrialIdArgument = "",
    budget: MOST = 60,
    out: OutOption = None,
    base: BaseOption = "auto",
    json: JsonOption = False,
) -> None:
    """Shrink a contaminating trial's scenario to the smallest that keeps the outcome (delta debugging)."""
    sweep_work_directories()
    suite, name = find_trial(trial, trial_id)
    result = read_result(suite, name)
    wanted = Outcome.of(result)
    if wanted.status is not Status.VALID:
        raise InputError(f"the trial {name} is {wanted.status}: {result.cause}", "minimise a valid one")
    if not wanted.persists:
        raise InputError(
            f"nothing persisted in the trial {name}: {wanted}", "minimise a trial in which content persisted"
        )
    planned = suite.trials[name]
    start = suite.scenarios[planned["scenario"]]
    work = suite.folder.path.parent / "minimised" / suite.folder.run_id / name
    target = out or work / f"{start.id}.min.yaml"
    search, ending = _search(suite, name, start, wanted, work, budget, base)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(plain(search.best), allow_unicode=True, sort_keys=False, width=110)
    write_atomic(target, text.encode())
    build = suite.locked.builds[planned["build"]]
    command = (
        f"lab run --scenarios {target} --families {start.family} --builds {build.source} "
        f"--setups {planned['setup']} --models {planned['model']}"
    )
    told = {
        "trial": name,
        "outcome": wanted.model_dump(mode="json"),
        "ending": ending.value,
        "trials_run": search.trials,
        "trials_remembered": search.remembered,
        "before": vars(Size.of(start)),
        "after": vars(Size.of(search.best)),
        "scenario": str(target),
        "command": command,
    }
    if json:
        print_json(told)
    else:
        _show(told, str(wanted))
    if ending is Ending.INTERRUPTED:
        console.print("interrupted; the same command goes on where this one ended", soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED)
    if ending is Ending.BUDGET:
        console.print("the budget is used up; the same command goes on where this one ended", soft_wrap=True)


def _search(
    suite: Suite, name: str, start: Scenario, wanted: Outcome, work: Path, budget: int, base: str
) -> tuple[Search, Ending]:
    """Prepares the run's own build again and searches in it, with progress."""
    planned, locked = suite.trials[name], suite.locked
    check_scripted(planned["model"])
    setup, role = locked.setups[planned["setup"]], locked.identity(name).role
    backend = select_backend(locked.backend)
    build = locked.builds[planned["build"]]
    environment = prepare(backend, build.source, base).environment
    build.check(environment)
    with GatewayHost() as gateways, counting_bar() as bar:
        bench = Bench(
            backend, environment, suite.agents[planned["build"]], gateways, locked.limits, suite.folder.run_id
        )
        task = bar.add_task("trials", total=budget)

        def ask(scenario: Scenario) -> Outcome:
            return Outcome.of(run_alone(bench, scenario, role, setup, planned["model"], retries=locked.retries))

        def show(step: Step) -> None:
            size = Size.of(step.best)
            told = f"{step.axis} (so far {size.messages} messages, {size.characters} characters)"
            bar.update(task, completed=step.trials, description=told)

        search = Search(start, wanted, ask, KnownOutcomes(work / "outcomes"), budget, show)
        ending = search.run()
        bar.update(task, completed=search.trials)
    return search, ending


def _show(told: dict[str, Any], outcome: str) -> None:
    table = Table(title=safe(f"{told['trial']}: {outcome}"), title_justify="left")
    for heading in ("", "before", "after"):
        table.add_column(heading, justify="left" if not heading else "right")
    for part, label in _ROWS.items():
        table.add_row(label, str(told["before"][part]), str(told["after"][part]))
    stdout.print(table)
    ran, known = told["trials_run"], told["trials_remembered"]
    stdout.print(f"{ran} trials run, {known} known from before; the result is: {told['ending']}")
    stdout.print(f"scenario: {safe(told['scenario'], 4096)}", soft_wrap=True)
    stdout.print(f"run it: {safe(told['command'], 8192)}", soft_wrap=True)
