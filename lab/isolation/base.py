"""The isolation protocol: what a sandbox is given, what comes back, and what every backend must offer.

A sandbox runs one program to its end. There is no interactive session: state that outlives a program lives in
writable mounts, which the lab reads from the host after the last process of the sandbox has ended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SANDBOX_UID = 10001
"""User and group id of the program inside, where the lab itself runs as root (otherwise the lab's own id)."""

SANDBOX_HOME = "/home/agent"
"""The one writable, persistent directory inside; mounted from a private directory of the trial."""

LABEL_NAMESPACE = "org.agent-memory-lab"
"""Prefix of every label the lab puts on an engine object or a working directory."""

MANAGED_LABEL = f"{LABEL_NAMESPACE}.managed"
"""Label (value ``true``) that marks an object as the lab's own: what ``lab clean`` removes."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one sandbox.

    Attributes:
        memory_bytes: Resident memory of all processes together, no swap beside it.
        processes: Number of processes and threads.
        wall_seconds: Wall time from start to forced end.
        output_bytes: Standard output and standard error together.
        file_bytes: Size of any one file written (RLIMIT_FSIZE).
        tmp_bytes: Size of the private, in-memory ``/tmp``.
        cpus: Share of CPU in cores.
    """

    memory_bytes: int = 1 << 30
    processes: int = 256
    wall_seconds: float = 120.0
    output_bytes: int = 8 << 20
    file_bytes: int = 256 << 20
    tmp_bytes: int = 128 << 20
    cpus: float = 2.0


@dataclass(frozen=True)
class Mount:
    """A host directory shown inside the sandbox."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class PreparedEnvironment:
    """What a build has prepared for one backend: a Docker image or a root file system.

    Attributes:
        backend: ``docker`` or ``bwrap``.
        reference: Image reference, or the path of the root file system.
        digest: Digest of everything baked in (base, packages, driver); equal digests mean equal contents.
        driver: For ``bwrap``, the directory shown read-only at ``/opt/lab``; in a Docker image it is baked in.
    """

    backend: str
    reference: str
    digest: str
    driver: Path | None = None


@dataclass(frozen=True)
class SandboxSpec:
    """One program to run in isolation.

    Attributes:
        environment: The prepared environment that gives the read-only system.
        command: Program and arguments, absolute path inside.
        env: The complete environment of the program: nothing of the host's environment is inherited.
        mounts: Host directories shown inside; everything else is read-only or in memory.
        limits: Bounds.
        labels: Labels on the sandbox beside ``MANAGED_LABEL``; keys get ``LABEL_NAMESPACE`` in front.
        workdir: Working directory inside.
    """

    environment: PreparedEnvironment
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: Limits = Limits()
    labels: Mapping[str, str] = field(default_factory=dict)
    workdir: str = SANDBOX_HOME


@dataclass(frozen=True)
class Exit:
    """A program that ran to an end of its own.

    Attributes:
        code: Exit status; negative signal number where a signal of its own ended it.
        stdout: All it wrote to standard output.
        stderr: All it wrote to standard error.
        wall_seconds: Wall time inside the backend, start-up included.
    """

    code: int
    stdout: bytes
    stderr: bytes
    wall_seconds: float


@dataclass(frozen=True)
class BackendStatus:
    """Whether a backend can be used here.

    Attributes:
        usable: True when a sandbox can be started now.
        version: Version of the engine or of bubblewrap; empty when not usable.
        problem: One line that names what is missing; empty when usable.
        mend: The exact command that mends it; empty when usable.
        weaknesses: What this backend does not enforce on this machine, one line each, shown in every report.
    """

    usable: bool
    version: str = ""
    problem: str = ""
    mend: str = ""
    weaknesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReapReport:
    """What ``reap`` removed and what is still there when asked again.

    Attributes:
        removed: Names of the removed objects.
        remaining: Names of labelled objects that a fresh listing still shows; empty proves the removal.
    """

    removed: tuple[str, ...]
    remaining: tuple[str, ...]


class Backend(Protocol):
    """What every isolation backend offers. ``tests/integration/test_isolation_conformance.py`` is its contract."""

    @property
    def name(self) -> str:
        """``docker`` or ``bwrap``."""
        ...

    def status(self) -> BackendStatus:
        """Tells whether a sandbox can be started on this machine, and what mends it where not."""
        ...

    def run(self, spec: SandboxSpec, cancel: threading.Event | None = None) -> Exit:
        """Runs one program in isolation and waits for the end of its whole process tree.

        Args:
            spec: What to run.
            cancel: When set, the sandbox is killed and ``SandboxCancelled`` raised.

        Returns:
            The exit of a program that ended by itself.

        Raises:
            SandboxTimeout: Wall-time limit.
            SandboxOutOfMemory: Memory limit.
            SandboxKilled: Killed from outside.
            SandboxOutputLimit: Output limit.
            SandboxStartFailed: It could not be started (missing image, missing root file system).
            SandboxCancelled: ``cancel`` was set.
        """
        ...

    def reap(self, include_images: bool = False) -> ReapReport:
        """Removes every labelled object of the lab and lists again to prove it.

        Args:
            include_images: Also remove images and prepared root file systems.

        Raises:
            EnvironmentUnusable: The engine cannot be asked.
        """
        ...


def sandbox_ids() -> tuple[int, int]:
    """User and group id that programs have inside; the caller makes writable mounts belong to them."""
    if os.geteuid() == 0:
        return SANDBOX_UID, SANDBOX_UID
    return os.geteuid(), os.getegid()
