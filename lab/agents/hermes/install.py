"""Prepares an environment with the real agent for a backend, once, and finds it again by its digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.agents.hermes.capabilities import PROGRAM, inspect_environment
from lab.agents.hermes.image import ensure_image
from lab.agents.hermes.inside import program_text
from lab.agents.hermes.recipe import Recipe, find_recipe
from lab.agents.hermes.rootfs import ensure_root_file_system
from lab.agents.hermes.sources import DEFAULT_BUILD, Source, parse_source
from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable, InputError, SandboxError
from lab.isolation.base import Limits, PreparedEnvironment, SandboxSpec
from lab.isolation.select import backend_named
from lab.records import digest, file_digest

AGENT_PYTHON = "/opt/agent/bin/python3"
"""The interpreter inside that has the agent installed."""

_LIST_CONTENTS = " && echo -- && ".join(
    (
        f"{AGENT_PYTHON} --version",
        r"dpkg-query -W -f '${Package}=${Version}\n'",
        "cat /opt/agent/freeze.txt",
    )
)
_MANIFEST_FORM = 3


def ensure(
    backend_name: str,
    source: Source | None = None,
    base: str = "auto",
    progress: Callable[[str], None] | None = None,
    cache: Path | None = None,
) -> PreparedEnvironment:
    """Prepares the environment, or finds the one that is already there.

    Args:
        backend_name: ``docker`` or ``bwrap``.
        source: What to install; None for the release that is built by default.
        base: ``auto``, ``debian`` (made on this machine), ``registry`` (the pinned default), or an image reference.
        For ``bwrap`` only ``auto`` and ``debian``, which are the same there.
        progress: Told one line before each long step.
        cache: Folder for what is prepared; None for the usual one.

    Raises:
        InputError: Unknown backend, release or base, or a local source that cannot be built.
        EnvironmentUnusable: Something on this machine is missing; the message names it and what mends it.
    """
    tell = progress or _silent
    store = Store(cache)
    if backend_name not in ("docker", "bwrap"):
        raise InputError(f"unknown backend {backend_name}", "use docker or bwrap")
    if backend_name == "bwrap" and base not in ("auto", "debian"):
        raise InputError(f"bwrap cannot use the base {base}", "use --base debian, or the docker backend")
    recipe = find_recipe(source or parse_source(DEFAULT_BUILD), store, tell)
    if backend_name == "docker":
        environment = ensure_image(store, recipe, base, tell)
    else:
        environment = ensure_root_file_system(store, recipe, tell)
    if not _manifest_path(store, environment).is_file():
        tell("listing the contents of the environment")
        _write_manifest(store, environment, recipe)
    return environment


def describe(environment: PreparedEnvironment, cache: Path | None = None) -> dict[str, Any]:
    """What an environment holds: agent, digest, packages of the base and of Python, and what the build can do.

    ``capabilities`` is what the build showed of itself (tools, gates, modules); its list ``missing`` names what the
    lab needs and the build has not.

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


def _write_manifest(store: Store, environment: PreparedEnvironment, recipe: Recipe) -> None:
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
        "product": recipe.product,
        "version": recipe.version,
        "lock_digest": file_digest(recipe.lock),
        "lock_is_committed": recipe.lock_is_committed,
        "python": version_line.removeprefix("Python ").strip(),
        "driver_digest": recipe.driver_digest(),
        "packages": dict(line.split("==", 1) for line in frozen.split()),
        "system_packages": dict(line.split("=", 1) for line in packages.split()),
        "capabilities": inspect_environment(environment),
    }
    with store.making("manifests", _manifest_key(environment)) as directory:
        (directory / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True))


def _manifest_key(environment: PreparedEnvironment) -> str:
    asked = digest(program_text(PROGRAM).encode())[:8]  # another question is another manifest
    return f"{environment.backend}-{environment.digest[:32]}-form{_MANIFEST_FORM}-{asked}"


def _manifest_path(store: Store, environment: PreparedEnvironment) -> Path:
    return store.path("manifests", _manifest_key(environment)) / "manifest.json"


def _silent(_line: str) -> None:
    return
