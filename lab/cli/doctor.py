"""``lab doctor``: what this machine offers, and the exact command that mends what it lacks."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import DEFAULT_REPORTS, DEFAULT_SCENARIOS, JsonOption
from lab.contamination.scenarios.library import lint
from lab.errors import ExitCode, LabError
from lab.isolation.bwrap import BwrapBackend
from lab.isolation.docker import DockerBackend

NEEDED_DISK = 3 << 30


@dataclass(frozen=True)
class Finding:
    """One thing looked at; ``needed`` ones decide the exit code."""

    name: str
    ok: bool
    detail: str
    mend: str = ""
    needed: bool = False


def examine() -> list[Finding]:
    """Looks at interpreter, backends, builders, scenarios and disk."""
    found = [
        Finding("python", sys.version_info >= (3, 11), sys.version.split()[0], "install Python 3.11 or newer", True)
    ]
    usable = 0
    for backend in (DockerBackend(), BwrapBackend()):
        status = backend.status()
        usable += status.usable
        found.append(Finding(backend.name, status.usable, status.version or status.problem, status.mend))
        found += [Finding(f"{backend.name} limits", False, weakness) for weakness in status.weaknesses]
    found.append(
        Finding("isolation", usable > 0, f"{usable} of 2 backends usable", "apt-get install -y bubblewrap", needed=True)
    )
    debstrap = shutil.which("mmdebstrap") or shutil.which("debootstrap")
    mend = "apt-get install -y mmdebstrap"
    found.append(Finding("base builder", bool(debstrap), debstrap or "neither mmdebstrap nor debootstrap", mend))
    found.append(_embedder())
    problems = lint(DEFAULT_SCENARIOS)
    found.append(Finding("scenarios", not problems, f"{len(problems)} problem(s)", "lab lint", needed=True))
    free = shutil.disk_usage(DEFAULT_REPORTS if DEFAULT_REPORTS.exists() else ".").free
    found.append(Finding("disk", free > NEEDED_DISK, f"{free >> 30} GiB free", "free at least 3 GiB", needed=True))
    return found


def _embedder() -> Finding:
    """The offline embedder of ``lab bench``, loaded for real."""
    from lab.retrieval.embedders.select import DEFAULT, embedder_for  # noqa: PLC0415 - only this command needs it here

    try:
        identity = embedder_for(DEFAULT).identity
    except LabError as error:
        return Finding("embedder", False, error.message, error.mend)
    return Finding("embedder", True, f"{identity.backend} {identity.version}, {identity.model}")


def doctor(json: JsonOption = False) -> None:
    """Look at this machine and name what is missing, each with the command that mends it."""
    found = examine()
    if json:
        print_json([vars(f) for f in found])
    else:
        for f in found:
            mark = "[green]ok[/]" if f.ok else "[red]missing[/]" if f.needed else "[yellow]note[/]"
            mend = f" [dim]→ {safe(f.mend)}[/]" if f.mend and not f.ok else ""
            stdout.print(f"{mark:>22} {f.name}: {safe(f.detail)}{mend}", soft_wrap=True)
    if not all(f.ok for f in found if f.needed):
        raise typer.Exit(ExitCode.ENVIRONMENT)
