"""``lab bisect``: finds the build in which the outcome of a scenario changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lab.agents.hermes.sources import parse_source, split_sources
from lab.agents.select import agent_for
from lab.cli.build import prepare
from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import DEFAULT_SCENARIOS, BackendOption, BaseOption, JsonOption, ScenariosOption, setup_path
from lab.contamination.bisect import Bisection, Shown, bisect
from lab.contamination.plan import SESSION_LIMITS, check_once, check_scripted, load_setup
from lab.contamination.scenarios.library import load_library, load_scenario
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.selection import select
from lab.contamination.single import run_alone
from lab.contamination.trial import Bench
from lab.gateway.server import GatewayHost
from lab.isolation.select import select_backend
from lab.isolation.work import sweep_work_directories

ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario's file, or its id in the library.")
]
OrderedBuildsOption = Annotated[
    str,
    typer.Option("--builds", metavar="A,B[,C…]", help="Builds in the order in which they came out, comma-separated."),
]
SetupOption = Annotated[str, typer.Option("--setup", help="Setup: a name or a file.")]
ModelOption = Annotated[str, typer.Option("--model", help="Model, e.g. scripted:always-write.")]
AllOption = Annotated[bool, typer.Option("--all", help="Run every build, not only those that the search needs.")]


def bisect_command(
    scenario: ScenarioArgument,
    builds: OrderedBuildsOption,
    setup: SetupOption = "default",
    model: ModelOption = "scripted:always-write",
    every: AllOption = False,
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    backend: BackendOption = "auto",
    base: BaseOption = "auto",
    json: JsonOption = False,
) -> None:
    """Find between which neighbouring builds the outcome of a scenario changed, by binary search."""
    sweep_work_directories()
    case = _scenario(scenario, scenarios)
    chosen = load_setup(setup_path(setup))
    check_scripted(model)
    specs = split_sources(builds)
    check_once("build", [parse_source(spec).name for spec in specs])
    isolation = select_backend(backend)
    with GatewayHost() as gateways:

        def run(spec: str) -> Shown:
            build = prepare(isolation, spec, base)
            bench = Bench(
                isolation, build.environment, agent_for(build.product), gateways, SESSION_LIMITS, f"bisect-{case.id}"
            )
            with console.status(f"a trial of {safe(case.id)} in {safe(build.name)} …"):
                return Shown.of(run_alone(bench, case, case.role, chosen, model))

        found = bisect(specs, run, every=every)
    print_json(_told(found, case)) if json else _show(found, case)


def _scenario(given: str, library: Path) -> Scenario:
    if Path(given).suffix in (".yaml", ".yml") or Path(given).is_file():
        return load_scenario(Path(given))
    return select(load_library(library), [given])[0]


def _verdict(found: Bisection) -> str:
    """The answer in one line."""
    names = found.builds
    if found.changed:
        first, last = found.changed
        more = f" ({', '.join(found.silent)} between them showed nothing)" if found.silent else ""
        return f"the outcome changed between {names[first]} and {names[last]}{more}"
    if len(found.shown) == len(names):
        return "every build that can be told shows the same outcome"
    return f"{names[0]} and {names[-1]} show the same outcome; --all runs those between them too"


def _told(found: Bisection, case: Scenario) -> dict[str, Any]:
    return {
        "scenario": case.id,
        "builds": list(found.builds),
        "changed": [found.builds[place] for place in found.changed] if found.changed else None,
        "verdict": _verdict(found),
        "shown": [
            {"build": found.builds[place], **shown.outcome.model_dump(mode="json"), "detail": shown.detail}
            for place, shown in sorted(found.shown.items())
        ],
    }


def _show(found: Bisection, case: Scenario) -> None:
    table = Table(title=safe(f"{case.id}: {case.title}"), title_justify="left")
    for heading in ("build", "status", "persist", "in", "decisions", ""):
        table.add_column(heading)
    for place, name in enumerate(found.builds):
        shown = found.shown.get(place)
        mark = "changed" if found.changed and place == found.changed[1] else ""
        if shown is None:
            table.add_row(safe(name), "not run", "", "", "", mark)
            continue
        outcome = shown.outcome
        status = f"{outcome.status} {outcome.cause}".strip()
        cells = (outcome.persist.value, outcome.stores_text, outcome.decisions_text)
        table.add_row(safe(name), safe(status), *map(safe, cells), mark)
    stdout.print(table)
    stdout.print(safe(_verdict(found), 1000), soft_wrap=True)
