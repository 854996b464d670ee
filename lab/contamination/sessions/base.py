"""What a trial needs of whoever starts its sessions: a home, an exchange directory, and sessions that end."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from lab.agents.base import Setup
from lab.agents.hermes.adapter import EXCHANGE_DIRECTORY, HermesAgent
from lab.errors import SandboxCancelled
from lab.gateway.server import GatewayHost
from lab.isolation.base import (
    SANDBOX_HOME,
    Backend,
    Limits,
    Mount,
    PreparedEnvironment,
    SandboxSpec,
    sandbox_ids,
)
from lab.records import digest

UPSTREAM_GONE, RELAY_FAILED, AGENT_IMPORT, AGENT_RAISED, CRASHED = 97, 98, 3, 4, 5
CRASHED_ON_DEMAND = "crashed_on_demand"
"""Cause of a session that was told to crash; what is asked for is no error."""

_EXIT_CAUSES = {
    UPSTREAM_GONE: "gateway_gone",
    RELAY_FAILED: "relay_failed",
    AGENT_IMPORT: "agent_cannot_be_imported",
    AGENT_RAISED: "agent_raised",
    CRASHED: CRASHED_ON_DEMAND,
}
_KILLED = 137  # as a shell tells a program that was ended by SIGKILL


class Start(StrEnum):
    """How sessions are started."""

    COLD = "cold"
    WARM = "warm"


MIXED = "mixed"
"""Word for a run of which some builds and setups start warm and the others cold."""


@dataclass(frozen=True)
class Starts:
    """How a run's sessions are started, for each build and setup.

    Attributes:
        default: How, unless the next says otherwise.
        cold: Reason for a cold start by build and setup, ``"<build> <setup>"``.
    """

    default: Start = Start.COLD
    cold: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, lock: Mapping[str, Any]) -> Starts:
        """What a lock says; runs from before there was a choice were started cold.

        Raises:
            ValueError: It names an unknown start.
        """
        word = lock.get("start", Start.COLD)
        cold = {str(pair): str(reason) for pair, reason in lock.get("cold_starts", {}).items()}
        return cls(Start.WARM if word == MIXED else Start(word), cold)

    def of(self, build: str, setup: str) -> Start:
        """How the sessions of a build and setup are started."""
        return Start.COLD if f"{build} {setup}" in self.cold else self.default

    @property
    def word(self) -> str:
        """``cold``, ``warm`` or ``mixed``."""
        return MIXED if self.cold and self.default is Start.WARM else self.default.value


@dataclass(frozen=True)
class Launch:
    """What the sandboxes of a trial are made from.

    Attributes:
        backend: Isolation.
        environment: The prepared build.
        agent: Adapter of the product.
        setup: Configuration of the agent.
        gateways: Host of the model endpoints.
        limits: Bounds of one session.
        run_id: Label on every sandbox.
    """

    backend: Backend
    environment: PreparedEnvironment
    agent: HermesAgent
    setup: Setup
    gateways: GatewayHost
    limits: Limits
    run_id: str

    def spec(
        self, command: tuple[str, ...], home: Path, io: Path, labels: Mapping[str, str], wall_seconds: float
    ) -> SandboxSpec:
        """The sandbox that runs ``command`` with these two directories."""
        return SandboxSpec(
            environment=self.environment,
            command=command,
            env=self.agent.environment(),
            mounts=(Mount(home, SANDBOX_HOME, writable=True), Mount(io, EXCHANGE_DIRECTORY, writable=True)),
            limits=replace(self.limits, wall_seconds=wall_seconds),
            labels={"run": self.run_id, **labels},
        )

    @property
    def key(self) -> str:
        """Digest of all that a sandbox which has imported the agent may depend on."""
        return digest(
            {
                "backend": self.backend.name,
                "environment": [self.environment.digest, self.environment.reference, str(self.environment.driver)],
                "command": list(self.agent.warm_command()),
                "env": dict(self.agent.environment()),
                "setup": self.setup.model_dump(mode="json"),
                "limits": vars(self.limits),
            }
        )


@dataclass(frozen=True)
class SessionEnd:
    """How a session ended.

    Attributes:
        cause: Short code of an infrastructure error; empty where the session came to its end.
        detail: One line about it.
        stdout: What the session wrote to standard output.
        stderr: The same for standard error.
    """

    cause: str = ""
    detail: str = ""
    stdout: bytes = b""
    stderr: bytes = b""


class Place(Protocol):
    """Where one trial lives: two directories that no other trial sees, and sessions in them.

    Attributes:
        home: Shown to the agent as its home; empty when the place is given out.
        io: Directory for socket, job and outcome.
    """

    home: Path
    io: Path

    def fresh_io(self) -> None:
        """Empties the exchange directory before a session."""
        ...

    def run(self, phase: str, labels: Mapping[str, str], cancel: threading.Event, died: threading.Event) -> SessionEnd:
        """Runs one session until its last process has ended.

        Args:
            phase: ``session`` or ``load``, for messages and labels.
            labels: Further labels of a sandbox that is made for this session.
            cancel: Set from outside to end the trial.
            died: Set when the model endpoint has ended.

        Raises:
            SandboxCancelled: ``cancel`` was set.
            EnvironmentUnusable: No sandbox can be started here, for this trial or any other.
        """
        ...


class Sessions(Protocol):
    """Starts the sessions of all trials of a run."""

    @property
    def start(self) -> Start:
        """How."""
        ...

    def place(self, launch: Launch, cancel: threading.Event) -> AbstractContextManager[Place]:
        """A place for one trial.

        Raises:
            SandboxCancelled: ``cancel`` was set meanwhile.
            EnvironmentUnusable: No sandbox can be started here.
        """
        ...

    def close(self) -> None:
        """Ends every sandbox and removes every directory."""
        ...


def ended(status: int, phase: str, stdout: bytes, stderr: bytes) -> SessionEnd:
    """The end of a session by its exit status; a negative one names a signal."""
    if status == 0:
        return SessionEnd(stdout=stdout, stderr=stderr)
    detail = f"the {phase} ended with exit code {status}"
    return SessionEnd(_EXIT_CAUSES.get(status, "agent_exit"), detail, stdout, stderr)


def ended_in_shell_terms(status: int, phase: str, stdout: bytes, stderr: bytes) -> SessionEnd:
    """The same for a status in which signals are counted from 128, as a sandbox's first process passes them on."""
    if status == _KILLED:
        return SessionEnd("sandbox_killed", "the session was killed from outside", stdout, stderr)
    return ended(128 - status if 128 < status <= 128 + 64 else status, phase, stdout, stderr)


def gateway_died(stdout: bytes, stderr: bytes) -> SessionEnd:
    """The end of a session whose model endpoint had ended before."""
    return SessionEnd("gateway_died", "the model endpoint ended in the middle of the trial", stdout, stderr)


def interrupted() -> SandboxCancelled:
    """What ends a trial on the user's wish."""
    return SandboxCancelled("the run was interrupted", "lab resume")


def give_to_sandbox(path: Path) -> None:
    """Makes a directory the sandbox user's, where the lab may; otherwise both are the same user."""
    if os.geteuid() != 0:
        return
    for directory, _, names in os.walk(path):
        os.chown(directory, *sandbox_ids())
        for name in names:
            os.chown(Path(directory) / name, *sandbox_ids(), follow_symlinks=False)
