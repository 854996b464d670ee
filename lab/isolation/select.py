"""Chooses the isolation backend of this machine; there is no third choice without isolation."""

from __future__ import annotations

from lab.errors import EnvironmentUnusable, InputError
from lab.isolation.base import Backend
from lab.isolation.bwrap import BwrapBackend
from lab.isolation.docker import DockerBackend

BACKENDS = ("docker", "bwrap")
"""Names of all backends, the preferred first."""


def backend_named(name: str) -> Backend:
    """The backend of this name, without asking whether it can be used.

    Raises:
        InputError: There is no such backend.
    """
    if name == "docker":
        return DockerBackend()
    if name == "bwrap":
        return BwrapBackend()
    raise InputError(f"unknown isolation backend {name}", f"use auto, {' or '.join(BACKENDS)}")


def select_backend(name: str = "auto") -> Backend:
    """A backend that can be used now.

    Args:
        name: ``docker``, ``bwrap``, or ``auto``: the engine when one is reachable, else bubblewrap.

    Raises:
        InputError: There is no such backend.
        EnvironmentUnusable: None of the wanted backends can be used; names every problem and mend in one line.
    """
    problems, mends = [], []
    for wanted in BACKENDS if name == "auto" else (name,):
        backend = backend_named(wanted)
        status = backend.status()
        if status.usable:
            return backend
        problems.append(f"{wanted}: {status.problem}")
        mends.append(status.mend)
    raise EnvironmentUnusable("; ".join(problems), " — or: ".join(mends))
