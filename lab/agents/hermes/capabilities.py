"""What a build of the agent can do, asked of the build itself inside its sandbox, never read off its version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.agents.hermes.adapter import HermesAgent
from lab.agents.hermes.home import HOME_NAME
from lab.agents.hermes.inside import ask_inside
from lab.isolation.base import PreparedEnvironment
from lab.text import printable

PROGRAM = "capabilities.py"
"""The program inside that asks."""

_SCRATCH_HOME = "/tmp"  # noqa: S108  a private file system in memory, inside the sandbox
_MOST_ITEMS = 200


def inspect_environment(environment: PreparedEnvironment) -> dict[str, Any]:
    """Capabilities by name, with the list ``missing``; the text in it comes from the build, bounded and printable.

    Raises:
        EnvironmentUnusable: The program does not run inside.
    """
    variables = {**HermesAgent().environment(), "HOME": _SCRATCH_HOME, "HERMES_HOME": f"{_SCRATCH_HOME}/{HOME_NAME}"}
    answer = ask_inside(environment, PROGRAM, variables=variables)
    return {printable(name, 80): _plain(value) for name, value in list(answer.items())[:_MOST_ITEMS]}


def missing(description: Mapping[str, Any]) -> tuple[str, ...]:
    """What the lab needs and a described build has not; empty when it can be run."""
    capabilities = description.get("capabilities")
    found = capabilities.get("missing") if isinstance(capabilities, Mapping) else None
    return tuple(map(str, found)) if isinstance(found, list) else ("an answer about its capabilities",)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [printable(str(item)) for item in value[:_MOST_ITEMS]]
    return value if isinstance(value, bool) else printable(str(value))
