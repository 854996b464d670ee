"""``lab doctor``: what this machine offers, and the exact command that mends what it lacks."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from lab.cli.models import summary
from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import DEFAULT_REPORTS, DEFAULT_SCENARIOS, JsonOption
from lab.contamination.scenarios.library import lint
from lab.errors import ExitCode, InputError, LabError
from lab.isolation.bwrap import BwrapBackend
from lab.isolation.docker import DockerBackend
from lab.models.identify import identify
from lab.models.identity import Ability, Sampling
from lab.models.ollama import OllamaServer
from lab.models.openai import read_key
from lab.models.spec import ModelSpec, Provider, parse_model

NEEDED_DISK = 3 << 30
REACH_SECONDS = 3.0
"""For each question to a server of models: one that is not there must not hold this command up."""


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


def _models(names: list[str], *, probe: bool) -> list[Finding]:
    """Which live models can be reached: those of Ollama, and those named as models of runs.

    Args:
        names: Models that ``LAB_MODELS`` or ``lab.toml`` name.
        probe: Whether each is asked to call a tool; where none is named, each that Ollama can chat with.
    """
    found: list[Finding] = []
    listed: list[str] = []
    try:
        server = OllamaServer(seconds=REACH_SECONDS)
        listed = [model.name for model in server.listed() if model.name]
        detail = f"{server.version()} at {server.url}: {', '.join(listed) or 'no models'}"
        found.append(Finding("ollama", bool(listed), detail, "lab models pull NAME"))
    except LabError as error:
        found.append(Finding("ollama", False, error.message, error.mend))
    live = []
    for name in names:
        try:
            spec = parse_model(name)
        except InputError as error:
            found.append(Finding("model", False, error.message, error.mend))
        else:
            live += [spec] if spec.is_live else []
    wanted = live or (
        [ModelSpec(f"{Provider.OLLAMA}:{name}", Provider.OLLAMA, name) for name in listed] if probe else []
    )
    return found + [_model(spec, probe=probe) for spec in wanted]


def _model(spec: ModelSpec, *, probe: bool) -> Finding:
    """One live model: reached, or asked to call a tool, too."""
    try:
        with console.status(f"asking {safe(spec.text)} …"):
            model = identify(spec, key=read_key(), sampling=Sampling(), probe=probe, seconds=REACH_SECONDS)
    except LabError as error:
        return Finding(f"model {spec.text}", False, error.message, error.mend)
    usable = model.tools is Ability.YES or not probe
    mend = "take a model that calls tools, or mend how its server offers them"
    return Finding(f"model {spec.text}", usable, summary(model), mend)


def _named_models(context: typer.Context) -> list[str]:
    """Models that runs are told to use: ``LAB_MODELS``, else ``models`` of the table ``run`` in ``lab.toml``."""
    table = (context.find_root().default_map or {}).get("run", {})
    named = os.environ.get("LAB_MODELS") or table.get("models") or ""
    return [name.strip() for name in named.split(",") if name.strip()]


def doctor(
    context: typer.Context,
    models: Annotated[
        bool, typer.Option("--models", help="Ask each live model to call a tool, and measure it; takes its time.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Look at this machine and name what is missing, each with the command that mends it."""
    found = examine() + _models(_named_models(context), probe=models)
    if json:
        print_json([vars(f) for f in found])
    else:
        for f in found:
            mark = "[green]ok[/]" if f.ok else "[red]missing[/]" if f.needed else "[yellow]note[/]"
            mend = f" [dim]→ {safe(f.mend)}[/]" if f.mend and not f.ok else ""
            stdout.print(f"{mark:>22} {f.name}: {safe(f.detail)}{mend}", soft_wrap=True)
    if not all(f.ok for f in found if f.needed):
        raise typer.Exit(ExitCode.ENVIRONMENT)
