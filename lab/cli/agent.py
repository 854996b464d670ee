"""``lab agent check``: the preflight of a build, and whether the local patches declared for it are in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.agents.hermes.patches import PatchFinding, find_patches, load_patches
from lab.agents.hermes.sources import DEFAULT_BUILD
from lab.cli.build import prepare
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import BackendOption, BaseOption, BuildOption, JsonOption, setup_path
from lab.contamination.plan import load_setup
from lab.contamination.preflight import Check, preflight
from lab.errors import ExitCode
from lab.isolation.select import select_backend

app = typer.Typer(no_args_is_help=True, help="Look at a built agent.")


@app.callback()
def _group() -> None:
    """Look at a built agent."""


@app.command("check")
def check(
    build: BuildOption = DEFAULT_BUILD,
    setup: Annotated[str, typer.Option("--setup", help="Setup to check in.")] = "default",
    patches: Annotated[
        Path | None,
        typer.Option("--patches", help="TOML file of local patch markers that must be in the build (docs/builds.md)."),
    ] = None,
    backend: BackendOption = "auto",
    base: BaseOption = "auto",
    json: JsonOption = False,
) -> None:
    """Prove that the built agent is the right one, that its review fires, and that no declared patch is lost.

    Exit codes: 1 when a declared patch is not in the build, 4 when the agent cannot be used.
    """
    markers = load_patches(patches) if patches else ()
    chosen = load_setup(setup_path(setup))
    isolation = select_backend(backend)
    made = prepare(isolation, build, base)
    findings = find_patches(made.environment, markers) if markers else ()
    checks = preflight(isolation, made.environment, chosen, made.version, product=made.product)
    rows = [*checks, *map(_row, findings)]
    if json:
        print_json([vars(row) for row in rows])
    else:
        for row in rows:
            mark = "[green]ok[/]" if row.ok else "[red]no[/]"
            stdout.print(f"{mark} {safe(row.name)}: {safe(row.detail, 1000)}", soft_wrap=True)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(ExitCode.GATE_FAILED)
    if not all(c.ok for c in checks):
        raise typer.Exit(ExitCode.ENVIRONMENT)


def _row(finding: PatchFinding) -> Check:
    marker = finding.marker
    reason = f" ({marker.why})" if marker.why else ""
    detail = f"{marker.file}: {finding.problem}{reason}" if finding.problem else marker.file
    return Check(f"patch {marker.name}", finding.ok, detail)
