"""The ``lab`` command: assembles the commands and turns every error into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import tomllib
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

import lab
from lab.cli import (
    agent,
    bench,
    bisect,
    build,
    clean,
    compare,
    detect,
    doctor,
    export,
    factstore,
    gate,
    history,
    import_payloads,
    lint,
    merge,
    minimise,
    models,
    report,
    run,
    snapshot,
    suite,
    validate,
)
from lab.cli.output import console, print_error
from lab.cli.places import CONFIG
from lab.cli.redact import declare_secrets
from lab.errors import EnvironmentUnusable, ExitCode, InputError, LabError

app = typer.Typer(
    name="lab",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Agent Memory Lab: measure what an agent's own review writes into its memory, and what it finds there.",
    epilog=(
        "Exit codes: 0 ok, 1 gate failed, 2 usage or bad input, 3 error budget exceeded, 4 environment not usable, "
        "130 interrupted. Options come from flags, then LAB_* variables, then lab.toml, then defaults."
    ),
)
app.command("doctor")(doctor.doctor)
app.command("lint")(lint.lint_command)
app.command("validate")(validate.validate)
app.command("import")(import_payloads.import_command)
app.command("detect")(detect.detect)
app.command("build")(build.build)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("rescore")(report.rescore)
app.command("merge")(merge.merge_command)
app.command("report")(report.report)
app.command("gate")(gate.gate)
app.command("compare")(compare.compare_command)
app.command("minimise")(minimise.minimise)
app.command("bisect")(bisect.bisect_command)
app.command("clean")(clean.clean)
app.command("suite")(suite.suite)
app.add_typer(bench.app, name="bench")
app.add_typer(agent.app, name="agent")
app.add_typer(export.app, name="export")
app.add_typer(factstore.app, name="factstore")
app.add_typer(history.app, name="history")
app.add_typer(models.app, name="models")
app.add_typer(snapshot.app, name="snapshot")


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
    context.default_map = defaults(Path(CONFIG))


def defaults(path: Path) -> dict[str, Any]:
    """Reads ``lab.toml``: one table for each command, with the names of its options.

    Raises:
        InputError: The file is not TOML, or names a command or an option that there is not.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", "mend or remove it") from error
    declare_secrets(path, tables.pop("redact", {}))
    tables.pop("gate", None)  # no options: lab gate reads and checks its rules itself
    return _checked(path, tables, typer.main.get_command(app))


def _checked(path: Path, tables: dict[str, Any], group: Any) -> dict[str, Any]:
    """A misspelt option would be a default that silently is not there."""
    found: dict[str, Any] = {}
    for name, table in tables.items():
        command = group.commands.get(name)
        if command is None or not isinstance(table, dict):
            known = ", ".join(sorted(group.commands))
            raise InputError(f"{path}: {name!r} is not the table of a command", f"one of [{known}]")
        if hasattr(command, "commands"):
            found[name] = _checked(path, table, command)
            continue
        options = {option.lstrip("-").replace("-", "_"): p.name for p in command.params for option in p.opts}
        given = {option.replace("-", "_"): value for option, value in table.items()}
        for option in given:
            if option not in options:
                raise InputError(f"{path}: [{name}] has no option {option!r}", f"see lab {name} --help")
        # An option that may be repeated takes a list; a single word stands for a list of one.
        repeated = {p.name for p in command.params if getattr(p, "multiple", False)}
        found[name] = {
            (key := options[option]): [value] if key in repeated and isinstance(value, str) else value
            for option, value in given.items()
        }
    return found


def main() -> None:
    """Runs the command line and exits."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # an end that is asked for politely tidies up like Ctrl-C
        signal.signal(number, signal.default_int_handler)
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
    except Exception as error:
        print_error(_fault(error))
        code = ExitCode.ENVIRONMENT
    sys.exit(code)


def _fault(error: Exception) -> EnvironmentUnusable:
    """A fault of the lab itself: one line for the user, the traceback in a file for whoever mends it."""
    with tempfile.NamedTemporaryFile("w", prefix="lab-fault-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    return EnvironmentUnusable(f"internal fault: {type(error).__name__}: {error}", f"please report it with {log.name}")


if __name__ == "__main__":
    main()
