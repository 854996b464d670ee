"""The wheels of the agent and its dependencies, downloaded on the host under the hashes of the lock file."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable
from lab.records import file_digest

_PYTHON = "3.11"
_ABI = "cp311"
_NEWEST_GLIBC_MINOR = 28
_OLDEST_GLIBC_MINOR = 5


def ensure_wheelhouse(store: Store, lock: Path, progress: Callable[[str], None]) -> Path:
    """The directory of all wheels that ``lock`` names, downloaded when missing.

    Pip's own configuration decides where they come from; the hashes in the lock decide what is accepted.

    Args:
        store: The cache.
        lock: Requirements, fully pinned with hashes.
        progress: Told one line before the download.

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
        if importlib.util.find_spec("pip") is None:
            raise EnvironmentUnusable("this Python has no pip", f"{sys.executable} -m ensurepip")
        progress("downloading the agent's wheels")
        with store.making("wheels", key) as made:
            _download(lock, made)
    return directory


def platform_tags(machine: str) -> tuple[str, ...]:
    """Platforms whose wheels run in the environment, the newest C library first."""
    modern = [f"manylinux_2_{minor}_{machine}" for minor in range(_NEWEST_GLIBC_MINOR, _OLDEST_GLIBC_MINOR - 1, -1)]
    legacy = [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    return (*modern, *legacy)


def _download(lock: Path, target: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--python-version", _PYTHON]
    command += ["--implementation", "cp", "--abi", _ABI]
    for tag in platform_tags(platform.machine()):
        command += ["--platform", tag]
    command += ["--dest", str(target), "--requirement", str(lock)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise EnvironmentUnusable(
            f"pip could not download the agent's wheels: {' '.join(lines[:1])[:300] or 'no reason given'}",
            "check that the package index is reachable and the disk not full, then: lab build",
        )
