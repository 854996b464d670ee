"""``lab build``: prepares the agent's environment, an image or a root file system; found again by content digest."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.agents.hermes.capabilities import missing
from lab.agents.hermes.install import describe, ensure
from lab.agents.hermes.sources import DEFAULT_BUILD, parse_source, split_sources
from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import BackendOption, BaseOption, JsonOption
from lab.contamination.plan import Build
from lab.errors import EnvironmentUnusable, InputError
from lab.isolation.base import Backend
from lab.isolation.select import select_backend

BuildsOption = Annotated[
    str,
    typer.Option(
        "--build",
        envvar="LAB_BUILD",
        help="Comma-separated: 0.17.0, PRODUCT==VERSION, a path to a .whl file or to a source folder.",
    ),
]


def prepare(backend: Backend, spec: str, base: str) -> Build:
    """Builds or finds the environment and says what it does.

    Args:
        backend: Isolation to prepare it for.
        spec: Name of the build, as ``parse_source`` reads it.
        base: Base system.

    Raises:
        InputError: The specification is not one, or its source is missing or damaged.
        EnvironmentUnusable: Something to build with is missing, or the build lacks what a trial needs.
    """
    source = parse_source(spec)
    with console.status(f"looking for {safe(source.name)} …") as status:
        environment = ensure(backend.name, source, base, progress=lambda step: status.update(f"building: {safe(step)}"))
    # Where the environment lies is a fact of this machine, not of the build.
    described = {name: value for name, value in describe(environment).items() if name != "reference"}
    if lacking := missing(described):
        raise EnvironmentUnusable(f"{source.name} lacks {', '.join(lacking)}", "this lab cannot drive such a build")
    return Build(source.name, described["product"], described["version"], environment, described, source.text)


def build(
    builds: BuildsOption = DEFAULT_BUILD,
    backend: BackendOption = "auto",
    base: BaseOption = "auto",
    json: JsonOption = False,
) -> None:
    """Build the agent's environment for a backend, or find it again by its digest."""
    specs = split_sources(builds)
    if not specs:
        raise InputError("no build is named", "lab build --build 0.19.0")
    isolation = select_backend(backend)
    made = [prepare(isolation, spec, base) for spec in specs]
    if json:
        print_json([_told(one) for one in made])
        return
    for one in made:
        environment = one.environment
        stdout.print(f"{one.name} for {environment.backend}: {safe(environment.reference)}", soft_wrap=True)


def _told(one: Build) -> dict[str, object]:
    environment = one.environment
    return {
        "name": one.name,
        "product": one.product,
        "version": one.version,
        "source": one.source,
        "backend": environment.backend,
        "reference": environment.reference,
        "digest": environment.digest,
        "lock_is_committed": one.description["lock_is_committed"],
        "capabilities": one.description["capabilities"],
    }
