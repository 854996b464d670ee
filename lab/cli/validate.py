"""``lab validate``: checks any file of the lab against the form of its kind, or prints that form as a JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.errors import ExitCode, InputError

if TYPE_CHECKING:
    from lab.report.validate import Checked


def validate(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE…", help="Files of any kind.")] = None,
    as_kind: Annotated[str, typer.Option("--as", metavar="KIND", help="Their kind, where it is not recognised.")] = "",
    schema: Annotated[str, typer.Option("--schema", metavar="KIND", help="Print the JSON Schema of a kind.")] = "",
    json: JsonOption = False,
) -> None:
    """Check files against their form: scenarios, sets, snapshots, results, plans, locks, reports, lab.toml."""
    # The report's model takes pandas and scipy along, which no other command should wait for.
    from lab.report.formats import BY_NAME, schema_of  # noqa: PLC0415
    from lab.report.validate import check  # noqa: PLC0415

    for name in filter(None, (as_kind, schema)):
        if name not in BY_NAME:
            raise InputError(f"{name!r} is no kind of file", f"one of {', '.join(sorted(BY_NAME))}")
    if schema:
        made = schema_of(BY_NAME[schema])
        if made is None:
            raise InputError(f"a file of kind {schema} is no JSON, so it has no JSON Schema", "lab validate checks it")
        print_json(made)
        return
    if not files:
        raise InputError("no file is named", "lab validate FILE…, or --schema KIND")
    told = [check(path, BY_NAME.get(as_kind), _check_config) for path in files]
    if json:
        print_json([checked.model_dump() for checked in told])
    else:
        for checked in told:
            _print(checked)
    if any(checked.faults for checked in told):
        raise typer.Exit(ExitCode.USAGE)


def _print(checked: Checked) -> None:
    for fault in checked.faults:
        place = ":".join(filter(None, (checked.file, str(fault.line or ""), fault.path)))
        stdout.print(f"{safe(place, 600)}: {safe(fault.message)}", soft_wrap=True)
    if not checked.faults:
        stdout.print(f"{safe(checked.file, 600)}: {checked.kind}, no fault", soft_wrap=True)


def _check_config(path: Path) -> object:
    from lab.cli.app import defaults  # noqa: PLC0415 - the application holds this command, too

    return defaults(path)
