"""The packages of a peer: fetched once under the hashes of its committed lock, unpacked into a folder of their own."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.agents.hermes.locks import read_lock
from lab.agents.hermes.pip_command import PipFailed, call_pip, target_options
from lab.agents.hermes.recipe import containers_directory
from lab.agents.hermes.sources import normal_name
from lab.agents.hermes.store import Store
from lab.agents.hermes.wheelhouse import ensure_wheelhouse
from lab.errors import EnvironmentUnusable, InputError
from lab.records import digest, file_digest

PREPARE = "lab bench prepare"
"""The command that makes what is missing."""

_RECORD = "RECORD"


@dataclass(frozen=True)
class Packages:
    """The installed packages of a peer.

    Attributes:
        folder: Where they are.
        versions: Of every package by name.
        digest: Over names, versions and the lists of files with their hashes that the wheels brought.
        bytes: Size of the files together.
    """

    folder: Path
    versions: Mapping[str, str]
    digest: str
    bytes: int


def peer_file(name: str) -> Path:
    """A file of the peers' folder.

    Raises:
        InputError: It is not there.
    """
    path = containers_directory() / "peers" / name
    if not path.is_file():
        raise InputError(f"{path} is missing", "use a complete checkout")
    return path


def prepared_packages(peer: str, cache: Path | None = None) -> Packages:
    """The packages of a peer that were prepared before; nothing is fetched.

    Args:
        peer: Its name, that of its lock file.
        cache: Folder for what is prepared; None for the usual one.

    Raises:
        EnvironmentUnusable: They are not there, or not those of the lock.
        InputError: The checkout is not complete.
    """
    lock = peer_file(f"{peer}.lock")
    folder = _folder(Store(cache), peer, lock)
    if not folder.is_dir():
        raise EnvironmentUnusable(f"the packages of {peer} are not here", f"{PREPARE} {peer}")
    found = sorted(importlib.metadata.distributions(path=[str(folder)]), key=lambda one: normal_name(one.name))
    versions = {normal_name(one.name): one.version for one in found}
    if versions != read_lock(lock):
        raise EnvironmentUnusable(f"{folder} does not hold the packages of {lock.name}", f"remove it, then: {PREPARE}")
    records = [[normal_name(one.name), one.version, *_files(one)] for one in found]
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    return Packages(folder, versions, digest(records), size)


def prepare_packages(peer: str, progress: Callable[[str], None], cache: Path | None = None) -> Packages:
    """The packages of a peer, fetched and unpacked when missing.

    Args:
        peer: Its name, that of its lock file.
        progress: Told one line before each long step.
        cache: Folder for what is prepared; None for the usual one.

    Raises:
        EnvironmentUnusable: Pip could not get or unpack them.
        InputError: The checkout is not complete.
    """
    store, lock = Store(cache), peer_file(f"{peer}.lock")
    folder = _folder(store, peer, lock)
    if not folder.is_dir():
        progress(f"fetching {len(read_lock(lock))} packages for {peer}")
        try:
            wheels = ensure_wheelhouse(store, lock, lambda _: None)
        except EnvironmentUnusable as error:
            raise EnvironmentUnusable(
                f"the packages of {peer} cannot be fetched: {error.message}",
                f"check that the package index is reachable and the disk not full, then: {PREPARE} {peer}",
            ) from error
        with store.lock("built"):
            if not folder.is_dir():
                progress(f"unpacking them for {peer}")
                with store.making("built", folder.name) as made:
                    _unpack(peer, wheels, lock, made)
    return prepared_packages(peer, cache)


def _files(package: importlib.metadata.Distribution) -> list[str]:
    """A package's own list of its files with their hashes, without scripts: those name this machine's Python."""
    lines = (package.read_text(_RECORD) or "").splitlines()
    return sorted(line for line in lines if not line.startswith("../"))


def _folder(store: Store, peer: str, lock: Path) -> Path:
    return store.path("built", f"peer-{peer}-{file_digest(lock)[:32]}")


def _unpack(peer: str, wheels: Path, lock: Path, target: Path) -> None:
    offline = ["--no-index", "--find-links", str(wheels), "--require-hashes", "--no-deps", "--no-compile"]
    try:
        call_pip("install", [*offline, *target_options(), "--target", str(target), "--requirement", str(lock)])
    except PipFailed as error:
        raise EnvironmentUnusable(
            f"the packages of {peer} cannot be unpacked: {error.reason}", "lab clean --all"
        ) from error
    # Another user reads them inside.
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
