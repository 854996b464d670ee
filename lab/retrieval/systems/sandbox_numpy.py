"""NumPy for the agent's environment: its plugin computes vectors with it, and a plain installation has none."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from lab.agents.hermes.recipe import containers_directory
from lab.agents.hermes.store import Store
from lab.agents.hermes.wheelhouse import ensure_wheelhouse
from lab.errors import EnvironmentUnusable, InputError

TARGET = "/run/numpy"
"""Where it is shown inside."""


def worker_file(name: str) -> Path:
    """A file of the worker's folder.

    Raises:
        InputError: It is not there.
    """
    path = containers_directory() / "hermes" / "retrieval" / name
    if not path.is_file():
        raise InputError(f"{path} is missing", "use a complete checkout")
    return path


def ensure_numpy(progress: Callable[[str], None], cache: Path | None = None) -> Path:
    """The folder with the pinned NumPy for the environment inside, fetched when missing.

    Args:
        progress: Told one line before the download.
        cache: Folder for what is prepared; None for the usual one.

    Raises:
        EnvironmentUnusable: It could not be fetched.
        InputError: The checkout is not complete.
    """
    store = Store(cache)
    lock = worker_file("numpy.lock")
    try:
        wheels = ensure_wheelhouse(store, lock, progress)
    except EnvironmentUnusable as error:
        raise EnvironmentUnusable(
            f"the NumPy that the plugin's vectors need is not here: {error.message}",
            "connect to a package index once, or leave the plugin without it (numpy: off)",
        ) from error
    key = f"numpy-{wheels.name}"
    directory = store.path("built", key)
    with store.lock("built"):
        if not directory.is_dir():
            with store.making("built", key) as made:
                _unpack(wheels, made)
    return directory


def _unpack(wheels: Path, target: Path) -> None:
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
