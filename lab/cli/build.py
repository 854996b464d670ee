"""``lab build``: prepares the agent's environment, an image or a root file system; found again by content digest."""

from __future__ import annotations

from lab.agents.hermes.install import describe, ensure
from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import DEFAULT_VERSION, BackendOption, BaseOption, JsonOption, VersionOption
from lab.contamination.plan import Build
from lab.isolation.base import Backend
from lab.isolation.select import select_backend


def prepare(backend: Backend, version: str, base: str) -> Build:
    """Builds or finds the environment and says what it does.

    Raises:
        EnvironmentUnusable: Something to build with is missing.
    """
    with console.status("looking for the agent's environment …") as status:
        environment = ensure(
            backend.name, version, base, progress=lambda step: status.update(f"building: {safe(step)}")
        )
    # Where the environment lies is a fact of this machine, not of the build.
    described = {name: value for name, value in describe(environment).items() if name != "reference"}
    return Build(f"hermes-agent-{version}", "hermes-agent", version, environment, described, version)


def build(
    backend: BackendOption = "auto",
    agent_version: VersionOption = DEFAULT_VERSION,
    base: BaseOption = "auto",
    json: JsonOption = False,
) -> None:
    """Build the agent's environment for a backend, or find it again by its digest."""
    built = prepare(select_backend(backend), agent_version, base)
    environment = built.environment
    if json:
        print_json({"backend": environment.backend, "reference": environment.reference, "digest": environment.digest})
    else:
        stdout.print(f"{built.name} for {environment.backend}: {safe(environment.reference)}", soft_wrap=True)
