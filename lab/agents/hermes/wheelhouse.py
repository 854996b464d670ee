"""The wheels of the agent and its dependencies, downloaded on the host under the hashes of the lock file."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

from lab.agents.hermes.pip_command import PipFailed, call_pip, target_options
from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable
from lab.records import file_digest


def ensure_wheelhouse(store: Store, lock: Path, progress: Callable[[str], None], wheel: Path | None = None) -> Path:
    """The directory of all wheels that ``lock`` names, downloaded when missing.

    Pip's own configuration decides where they come from; the hashes in the lock decide what is accepted.

    Args:
        store: The cache.
        lock: Requirements, fully pinned with hashes.
        progress: Told one line before the download.
        wheel: A local wheel that the lock names, alone in its directory; None where all come from the index.

    Raises:
        EnvironmentUnusable: Pip is missing or could not get every wheel.
    """
    key = f"{platform.machine()}-{file_digest(lock)[:32]}"
    directory = store.path("wheels", key)
    if directory.is_dir():
        return directory
    with store.lock("wheels"):
        if directory.is_dir():
            return directory
        progress("downloading the agent's wheels")
        with store.making("wheels", key) as made:
            _download(lock, made, wheel)
    return directory


def _download(lock: Path, target: Path, wheel: Path | None) -> None:
    options = ["--require-hashes", "--no-deps", *target_options()]
    if wheel:
        options += ["--find-links", str(wheel.parent)]
    try:
        call_pip("download", [*options, "--dest", str(target), "--requirement", str(lock)])
    except PipFailed as error:
        raise EnvironmentUnusable(
            f"pip could not download the agent's wheels: {error.reason}",
            "check that the package index is reachable and the disk not full, then: lab build",
        ) from error
