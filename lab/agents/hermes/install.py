"""Prepares an environment with the real agent for a backend, once, and finds it again by its digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.agents.hermes.image import ensure_image
from lab.agents.hermes.recipe import find_recipe
from lab.agents.hermes.rootfs import ensure_root_file_system
from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable, InputError, SandboxError
from lab.isolation.base import Limits, PreparedEnvironment, SandboxSpec
from lab.isolation.select import backend_named

AGENT_PYTHON = "/opt/agent/bin/python3"
"""The interpreter inside that has the agent installed."""

_LIST_CONTENTS = " && echo -- && ".join(
    (
        f"{AGENT_PYTHON} --version",
        r"dpkg-query -W -f '${Package}=${Version}\n'",
        "cat /opt/agent/freeze.txt",
    )
)
_MANIFEST_FORM = 2


def ensure(
    backend_name: str,
    version: str = "0.19.0",
    base: str = "auto",
    progress: Callable[[str], None] | None = None,
    cache: Path | None = None,
) -> PreparedEnvironment:
    """Prepares the environment, or finds the one that is already there.

    Args:
        backend_name: ``docker`` or ``bwrap``.
        version: Version of hermes-agent; a lock file of that version must exist.
        base: ``auto``, ``debian`` (made on this machine), ``registry`` (the pinned default), or an image reference.
        For ``bwrap`` only ``auto`` and ``debian``, which are the same there.
        progress: Told one line before each long step.
        cache: Folder for what is prepared; None for the usual one.

    Raises:
        InputError: Unknown backend, version or base.
        EnvironmentUnusable: Something on this machine is missing; the message names it and what mends it.
    """
    tell = progress or _silent
    store = Store(cache)
    recipe = find_recipe(version)
    if backend_name == "docker":
        environment = ensure_image(store, recipe, base, tell)
    elif backend_name == "bwrap":
        if base not in ("auto", "debian"):
            raise InputError(f"bwrap cannot use the base {base}", "use --base debian, or the docker backend")
        environment = ensure_root_file_system(store, recipe, tell)
    else:
        raise InputError(f"unknown backend {backend_name}", "use docker or bwrap")
    if not _manifest_path(store, environment).is_file():
        tell("listing the contents of the environment")
        _write_manifest(store, environment, version)
    return environment


def describe(environment: PreparedEnvironment, cache: Path | None = None) -> dict[str, Any]:
    """What an environment holds: agent version, digest, base packages and Python packages with their versions.

    Raises:
        EnvironmentUnusable: The environment was not made by ``ensure`` with this cache.
    """
    path = _manifest_path(Store(cache), environment)
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise EnvironmentUnusable(f"there is no manifest of {environment.reference}", "lab build") from error
    return manifest


def remove_caches(cache: Path | None = None) -> tuple[str, ...]:
    """Removes everything prepared for bubblewrap, all downloads and manifests (``lab clean --all``).

    Docker images are the engine's: ``DockerBackend().reap(include_images=True)`` removes those.

    Returns:
        Names of what could not be removed; empty proves the removal.
    """
    return Store(cache).remove_all()


def _write_manifest(store: Store, environment: PreparedEnvironment, version: str) -> None:
    """Lists the contents from inside the sandbox itself, which also shows that the environment runs."""
    spec = SandboxSpec(
        environment,
        ("/bin/sh", "-c", _LIST_CONTENTS),
        env={"PATH": "/usr/bin:/bin"},
        limits=Limits(memory_bytes=256 << 20, wall_seconds=60),
        labels={"purpose": "manifest"},
        workdir="/",
    )
    try:
        done = backend_named(environment.backend).run(spec)
    except SandboxError as error:
        raise EnvironmentUnusable(f"the prepared environment does not run: {error.message}", error.mend) from error
    if done.code != 0:
        text = done.stderr.decode(errors="replace").strip()[:200]
        raise EnvironmentUnusable(f"the prepared environment is not complete: {text}", "lab clean --all")
    version_line, packages, frozen = done.stdout.decode().split("--\n")
    manifest = {
        "backend": environment.backend,
        "reference": environment.reference,
        "digest": environment.digest,
        "agent": "hermes-agent",
        "version": version,
        "python": version_line.removeprefix("Python ").strip(),
        "driver_digest": find_recipe(version).driver_digest(),
        "packages": dict(line.split("==", 1) for line in frozen.split()),
        "system_packages": dict(line.split("=", 1) for line in packages.split()),
    }
    with store.making("manifests", _manifest_key(environment)) as directory:
        (directory / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True))


def _manifest_key(environment: PreparedEnvironment) -> str:
    return f"{environment.backend}-{environment.digest[:32]}-form{_MANIFEST_FORM}"


def _manifest_path(store: Store, environment: PreparedEnvironment) -> Path:
    return store.path("manifests", _manifest_key(environment)) / "manifest.json"


def _silent(_line: str) -> None:
    return
