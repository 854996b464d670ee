"""``lab clean``: removes by label what the lab has left on this machine, and lists again to prove it."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.agents.hermes.install import remove_caches
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.errors import EnvironmentUnusable, ExitCode, InputError
from lab.isolation.bwrap import BwrapBackend
from lab.isolation.docker import DockerBackend
from lab.isolation.work import sweep_work_directories


def clean(
    backend: Annotated[
        str, typer.Option("--backend", envvar="LAB_BACKEND", help="all, docker or bwrap: whose sandboxes to remove.")
    ] = "all",
    everything: Annotated[
        bool, typer.Option("--all", help="Also remove images, root file systems and wheels.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove the lab's sandboxes (and with --all its builds) by label, and prove it by listing again."""
    if backend not in ("all", "auto", "docker", "bwrap"):
        raise InputError(f"unknown backend {backend!r}", "use all, docker or bwrap")
    chosen = [b for b in (DockerBackend(), BwrapBackend()) if backend in ("all", "auto", b.name)]
    removed: list[str] = []
    remaining: list[str] = []
    problem: EnvironmentUnusable | None = None
    for one in chosen:
        try:
            outcome = one.reap(include_images=everything)
        except EnvironmentUnusable as error:
            # An engine that cannot be asked may hold objects of ours: that is not "clean".
            mend = error.mend if backend == one.name else f"{error.mend}, or leave it out: lab clean --backend bwrap"
            problem = problem or EnvironmentUnusable(error.message, mend)
            continue
        removed += outcome.removed
        remaining += outcome.remaining
    removed += sweep_work_directories()
    if everything:
        remaining += remove_caches()
    if json:
        print_json({"removed": removed, "remaining": remaining, "problem": str(problem or "")})
    else:
        for name in removed:
            stdout.print(f"removed {safe(name)}", soft_wrap=True)
        for name in remaining:
            stdout.print(
                f"still there: {safe(name)} (of a lab that is running, or it could not be removed)", soft_wrap=True
            )
        stdout.print(f"{len(removed)} removed, {len(remaining)} remaining")
    if problem:
        raise problem
    if remaining:
        raise typer.Exit(ExitCode.ENVIRONMENT)
