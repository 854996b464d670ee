"""``lab import``: makes scenarios of payload files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.contamination.scenarios.imports.library import LAST, import_payloads


def import_command(
    payloads: Annotated[list[Path], typer.Argument(help="Payload files; pairs may stand in different ones.")],
    to: Annotated[Path, typer.Option("--to", help="Folder of scenarios to write into.", show_default=False)],
    first: Annotated[
        int, typer.Option("--first", min=1, max=LAST, help="Number of the first scenario of each family.")
    ] = 101,
    force: Annotated[bool, typer.Option("--force", help="Overwrite scenarios of the same ids.")] = False,
    json: JsonOption = False,
) -> None:
    """Make one complete scenario, with carrier, twin and card, of each payload; all of them, or none."""
    made = import_payloads(payloads, to, first, force=force)
    if json:
        print_json({"to": str(to), **made.model_dump(mode="json")})
        return
    families = ", ".join(f"{name} {count}" for name, count in made.families.items())
    stdout.print(f"{len(made.scenarios)} scenarios written to {safe(str(to))}: {families}", soft_wrap=True)
    if made.left_out:
        kinds = ", ".join(f"{count} {safe(kind)}" for kind, count in made.left_out.items())
        stdout.print(f"left out, since they are no payloads with a canary: {kinds}", soft_wrap=True)
