"""``lab factstore install``: puts the lab's own memory provider into an agent's home."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.retrieval.install_factstore import install

CONFIGURATION = ("memory: {provider: factstore}", "plugins: {factstore: {retrieval: {}}}")
"""What the agent's ``config.yaml`` needs: the provider, and the place of its settings."""

app = typer.Typer(no_args_is_help=True, help="The lab's own memory provider.")


@app.callback()
def _group() -> None:
    """The lab's own memory provider."""


@app.command("install")
def install_command(
    home: Annotated[Path, typer.Argument(help="The agent's home, the directory with config.yaml.")],
    json: JsonOption = False,
) -> None:
    """Copy the plugin into an agent's home and say what its configuration needs."""
    folder = install(home)
    if json:
        print_json({"folder": str(folder), "configuration": CONFIGURATION})
        return
    stdout.print(f"copied to {safe(str(folder))}; config.yaml needs:", soft_wrap=True)
    for line in CONFIGURATION:
        stdout.print(f"  {safe(line)}")
