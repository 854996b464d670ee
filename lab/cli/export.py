"""``lab export``: a run in the formats of other tools, and folders that reproduce a trial without the lab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.export_report import export_report
from lab.cli.minimise import TrialArgument, TrialIdArgument
from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.contamination.repro.folder import export_repro
from lab.contamination.single import find_trial

app = typer.Typer(no_args_is_help=True, help="Write runs and findings in forms that need no lab.")
app.command("report")(export_report)


@app.callback()
def _group() -> None:
    """Write runs and findings in forms that need no lab."""


@app.command("repro")
def repro(
    trial: TrialArgument,
    trial_id: TrialIdArgument = "",
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder to write; by default repro-<trial> here.", file_okay=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write one folder that reproduces a trial with Docker or bubblewrap and the agent, to attach to a bug report."""
    suite, name = find_trial(trial, trial_id)
    with console.status("gathering …") as status:
        made = export_repro(suite, name, to or Path(f"repro-{name}"), lambda step: status.update(safe(step)))
    if json:
        print_json({"trial": name, "folder": str(made.folder), "shows": made.shows, "files": list(made.files)})
        return
    stdout.print(f"{safe(str(made.folder), 4096)}: {len(made.files)} files", soft_wrap=True)
    stdout.print(f"shows: {safe(made.shows)}", soft_wrap=True)
    stdout.print(f"try it: sh {safe(str(made.folder), 4096)}/reproduce.sh docker", soft_wrap=True)
