"""The ``lab`` command: assembles the commands and turns every error into one line and an exit code."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

import lab
from lab.cli import agent, build, clean, doctor, lint, report, run
from lab.cli.output import console, print_error
from lab.errors import EnvironmentUnusable, ExitCode, InputError, LabError

CONFIG = "lab.toml"

app = typer.Typer(
    name="lab",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Agent Memory Lab: measure what an agent's own review writes into its permanent memory.",
    epilog=(
        "Exit codes: 0 ok, 1 gate failed, 2 usage or bad input, 3 error budget exceeded, 4 environment not usable, "
        "130 interrupted. Options come from flags, then LAB_* variables, then lab.toml, then defaults."
    ),
)
app.command("doctor")(doctor.doctor)
app.command("lint")(lint.lint_command)
app.command("build")(build.build)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("rescore")(report.rescore)
app.command("report")(report.report)
app.command("clean")(clean.clean)
app.add_typer(agent.app, name="agent")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agent-memory-lab {lab.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Agent Memory Lab."""
    del version
    context.default_map = _defaults(Path(CONFIG))


def _defaults(path: Path) -> dict[str, Any]:
    """Reads ``lab.toml``: one table for each command, with the names of its options.

    Raises:
        InputError: The file is not TOML.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", "mend or remove it") from error
    return {
        command: {name.replace("-", "_"): value for name, value in table.items()}
        for command, table in tables.items()
        if isinstance(table, dict)
    }


def main() -> None:
    """Runs the command line and exits."""
    code: int = ExitCode.OK
    try:
        app()
    except LabError as error:
        print_error(error)
        code = error.exit_code
    except KeyboardInterrupt:
        console.print("lab: interrupted")
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of standard output went away (`lab … | head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else ""
        print_error(EnvironmentUnusable(f"{error.strerror or error}: {name}".rstrip(": "), "see lab doctor"))
        code = ExitCode.ENVIRONMENT
    sys.exit(code)


if __name__ == "__main__":
    main()
