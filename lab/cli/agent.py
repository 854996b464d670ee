"""``lab agent check``: the preflight of a build."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.cli.build import prepare
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import (
    DEFAULT_VERSION,
    BackendOption,
    BaseOption,
    JsonOption,
    VersionOption,
    setup_path,
)
from lab.contamination.plan import load_setup
from lab.contamination.preflight import preflight
from lab.errors import ExitCode
from lab.isolation.select import select_backend

app = typer.Typer(no_args_is_help=True, help="Look at a built agent.")


@app.callback()
def _group() -> None:
    """Look at a built agent."""


@app.command("check")
def check(
    setup: Annotated[str, typer.Option("--setup", help="Setup to check in.")] = "default",
    backend: BackendOption = "auto",
    agent_version: VersionOption = DEFAULT_VERSION,
    base: BaseOption = "auto",
    json: JsonOption = False,
) -> None:
    """Prove that the built agent is the right version, has a reviewer, and that its review fires."""
    isolation = select_backend(backend)
    build = prepare(isolation, agent_version, base)
    checks = preflight(isolation, build.environment, load_setup(setup_path(setup)), agent_version)
    if json:
        print_json([vars(c) for c in checks])
    else:
        for c in checks:
            stdout.print(f"{'[green]ok[/]' if c.ok else '[red]no[/]'} {c.name}: {safe(c.detail)}", soft_wrap=True)
    if not all(c.ok for c in checks):
        raise typer.Exit(ExitCode.ENVIRONMENT)
