"""Builds the agent's Docker image, without network, over a registry base or the Debian base of this machine."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import requests
from docker.errors import APIError, BuildError, DockerException, ImageNotFound

from lab.agents.hermes.base_system import DebianBase, ensure_debian_base, find_debian_base
from lab.agents.hermes.recipe import Recipe, copy_driver
from lab.agents.hermes.store import Store
from lab.agents.hermes.wheelhouse import ensure_wheelhouse
from lab.errors import EnvironmentUnusable
from lab.isolation.base import LABEL_NAMESPACE, MANAGED_LABEL, PreparedEnvironment, sandbox_ids
from lab.isolation.docker import ENGINE_MEND

if TYPE_CHECKING:
    from docker.client import DockerClient

REGISTRY_BASE = "python:3.11.11-slim-bookworm"
"""The pinned base image where a registry is reachable."""

REPOSITORY = "agent-memory-lab/hermes"
_BASE_REPOSITORY = "agent-memory-lab/base"
_ENGINE_SECONDS = 900
_DIGEST_LABEL = f"{LABEL_NAMESPACE}.digest"
_VERSION_LABEL = f"{LABEL_NAMESPACE}.agent-version"


@dataclass(frozen=True)
class _Base:
    """A base that is at hand: its identity in digests, and what makes it an image reference."""

    identity: str
    debian: DebianBase | None = None
    image: str = ""


def ensure_image(store: Store, recipe: Recipe, base: str, progress: Callable[[str], None]) -> PreparedEnvironment:
    """The image of this recipe, built when no image of the same digest is there.

    Args:
        store: The cache.
        recipe: What to build from.
        base: ``auto``, ``debian``, ``registry``, or an image reference.
        progress: Told one line before a long step.

    Raises:
        EnvironmentUnusable: The engine, the registry, the archive, the package index or space is missing.
    """
    uid = sandbox_ids()[0]
    try:
        with contextlib.closing(docker.from_env(timeout=_ENGINE_SECONDS)) as client:
            for candidate in _bases_at_hand(client, store, base):
                if found := _find(client, recipe.digest(candidate.identity, uid)):
                    return found
            with store.lock("image"):
                chosen = _obtain_base(client, store, base, progress)
                digest = recipe.digest(chosen.identity, uid)
                return _find(client, digest) or _build(client, store, recipe, chosen, digest, uid, progress)
    except BuildError as error:
        raise EnvironmentUnusable(f"the image could not be built: {error.msg}"[:400], "lab build") from error
    except (DockerException, requests.RequestException) as error:
        text = " ".join(str(getattr(error, "explanation", None) or error).split())[:300]
        raise EnvironmentUnusable(f"the Docker Engine failed: {text}", ENGINE_MEND) from error


def _bases_at_hand(client: DockerClient, store: Store, base: str) -> Iterator[_Base]:
    if base != "debian" and (found := _local_image(client, _registry_reference(base))):
        yield found
    if base in ("auto", "debian") and (debian := find_debian_base(store)):
        yield _Base(debian.sha256, debian=debian)


def _obtain_base(client: DockerClient, store: Store, base: str, progress: Callable[[str], None]) -> _Base:
    if base != "debian":
        reference = _registry_reference(base)
        if found := _local_image(client, reference):
            return found
        progress(f"pulling {reference}")
        try:
            client.images.pull(reference)
        except (APIError, ImageNotFound) as error:
            if base != "auto":
                text = " ".join(str(error.explanation or error).split())[:200]
                raise EnvironmentUnusable(
                    f"{reference} could not be pulled: {text}", "lab build --base debian"
                ) from error
            progress("no registry answers; taking a Debian base made on this machine")
        else:
            if found := _local_image(client, reference):
                return found
    debian = ensure_debian_base(store, progress)
    return _Base(debian.sha256, debian=debian)


def _registry_reference(base: str) -> str:
    return REGISTRY_BASE if base in ("auto", "registry") else base


def _local_image(client: DockerClient, reference: str) -> _Base | None:
    try:
        return _Base(str(client.images.get(reference).id), image=reference)
    except ImageNotFound:
        return None


def _find(client: DockerClient, digest: str) -> PreparedEnvironment | None:
    tag = f"{REPOSITORY}:{digest[:16]}"
    try:
        labels = client.images.get(tag).labels
    except ImageNotFound:
        return None
    return PreparedEnvironment("docker", tag, digest) if labels.get(_DIGEST_LABEL) == digest else None


def _build(
    client: DockerClient,
    store: Store,
    recipe: Recipe,
    base: _Base,
    digest: str,
    uid: int,
    progress: Callable[[str], None],
) -> PreparedEnvironment:
    wheels = ensure_wheelhouse(store, recipe.lock, progress, recipe.wheel)
    reference = base.image or _import_debian(client, base, progress)
    progress("building the agent's image (about a minute)")
    tag = f"{REPOSITORY}:{digest[:16]}"
    with store.scratch("context") as context:
        _lay_out(context, recipe, wheels)
        client.images.build(
            path=str(context),
            tag=tag,
            buildargs={"BASE": reference, "AGENT_UID": str(uid)},
            labels={MANAGED_LABEL: "true", _DIGEST_LABEL: digest, _VERSION_LABEL: recipe.version},
            network_mode="none",
            rm=True,
            forcerm=True,
        )
    return PreparedEnvironment("docker", tag, digest)


def _import_debian(client: DockerClient, base: _Base, progress: Callable[[str], None]) -> str:
    tag = base.identity[:16]
    reference = f"{_BASE_REPOSITORY}:{tag}"
    if _local_image(client, reference) is None and base.debian is not None:
        progress("importing the Debian base into the engine")
        client.api.import_image_from_file(
            str(base.debian.tar),
            repository=_BASE_REPOSITORY,
            tag=tag,
            changes=[f"LABEL {MANAGED_LABEL}=true"],
        )
    return reference


def _lay_out(context: Path, recipe: Recipe, wheels: Path) -> None:
    """The build context; modes are set outright, because they take part in the engine's layer cache."""
    for source, name in (
        (recipe.dockerfile, "Dockerfile"),
        (recipe.install, "install.sh"),
        (recipe.lock, "requirements.lock"),
    ):
        shutil.copyfile(source, context / name)
        (context / name).chmod(0o644)
    (context / "driver").mkdir(mode=0o755)
    copy_driver(recipe, context / "driver")
    (context / "wheels").mkdir(mode=0o755)
    for wheel in wheels.iterdir():
        try:
            (context / "wheels" / wheel.name).hardlink_to(wheel)
        except OSError:
            shutil.copyfile(wheel, context / "wheels" / wheel.name)
