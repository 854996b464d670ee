"""``lab history``: keeps the numbers of run after run in one file, and shows and draws their trend."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lab.cli.measured_run import measure_run
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import DEFAULT_REPORTS, JsonOption, ReportsOption
from lab.cli.report import RunArgument
from lab.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Keep the numbers of run after run, and draw their trend.")

FILE = "history.parquet"

HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history", envvar="LAB_HISTORY", help=f"File of the history; by default {FILE} in the folder of runs."
    ),
]
NameOption = Annotated[
    list[str],
    typer.Option(
        "--name",
        "-n",
        metavar="NAME",
        help="Number to show, repeatable: persist/valid, mrr10, …; the headlines by default.",
        show_default=False,
    ),
]
LastOption = Annotated[int, typer.Option("--last", min=1, help="Runs to show.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="File to write: .svg or .html.")]


class Form(StrEnum):
    """Endings of the files that can be drawn."""

    SVG = ".svg"
    HTML = ".html"


@app.callback()
def _group() -> None:
    """Keep the numbers of run after run, and draw their trend."""


@app.command("add")
def add(
    path: RunArgument = None,
    history: HistoryOption = None,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Put all numbers of a finished run into the history; a run that is in it already is put in its place."""
    from lab.history.rows import rows_of  # noqa: PLC0415 - see measure_run
    from lab.history.store import add_run  # noqa: PLC0415

    run = measure_run(path, reports)
    rows = rows_of(run)
    place = history or reports / FILE
    changed = add_run(place, rows)
    if json:
        print_json({"run": run.run, "history": str(place), "numbers": len(rows), "changed": changed})
        return
    told = "" if changed else ", as they were there already"
    stdout.print(f"{safe(str(place), 4096)}: {len(rows)} numbers of {safe(run.run)}{told}", soft_wrap=True)


@app.command("show")
def show(
    history: HistoryOption = None,
    names: NameOption = [],  # noqa: B006 - typer copies it
    last: LastOption = 6,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Show the trend as tables."""
    from lab.history.store import read_history  # noqa: PLC0415
    from lab.history.terminal import print_trend  # noqa: PLC0415
    from lab.history.trend import panels  # noqa: PLC0415

    found = panels(read_history(history or reports / FILE), names)
    if json:
        print_json([panel.model_dump(mode="json") for panel in found])
    else:
        print_trend(found, last, stdout)


@app.command("draw")
def draw(
    output: OutputOption = Path("history.html"),
    history: HistoryOption = None,
    names: NameOption = [],  # noqa: B006 - typer copies it
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Draw the trend: figures alone (.svg), or a page with figures and tables (.html)."""
    from lab.history.figure import trend_svg  # noqa: PLC0415
    from lab.history.page import render_page  # noqa: PLC0415
    from lab.history.store import read_history  # noqa: PLC0415
    from lab.history.trend import panels  # noqa: PLC0415
    from lab.runs.folder import write_atomic  # noqa: PLC0415

    if output.suffix not in tuple(Form):
        raise InputError(f"{output}: a trend is drawn as {' or '.join(Form)}", "name such a file: --output")
    found = panels(read_history(history or reports / FILE), names)
    drawn = trend_svg(found) if output.suffix == Form.SVG else render_page(found).encode()
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, drawn)
    if json:
        print_json({"file": str(output)})
    else:
        stdout.print(safe(str(output), 4096), soft_wrap=True)
