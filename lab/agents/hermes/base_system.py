"""The Debian base system of a prepared environment, made on this machine by mmdebstrap and kept in the cache."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable
from lab.records import digest, file_digest

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
MMDEBSTRAP_MEND = "apt-get install -y mmdebstrap"

_SOURCE_DATE_EPOCH = "1735689600"  # 2025-01-01: every file of the tar gets a time stamp no later than this
_LEAVE_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
# Files that tell of this machine or this hour, so that two builds of the same packages are the same bytes.
_FORGET = (
    'rm -rf "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/var/cache/ldconfig/aux-cache "$1"/run/*; '
    'find "$1"/var/log "$1"/var/cache/debconf -type f -delete'
)


@dataclass(frozen=True)
class DebianBase:
    """A base system in the cache.

    Attributes:
        tar: The file system as a tar.
        sha256: Digest of the tar.
    """

    tar: Path
    sha256: str


def recipe() -> dict[str, object]:
    """All that decides the contents of the base beside the state of the Debian archive."""
    return {
        "suite": SUITE,
        "packages": PACKAGES,
        "leave_out": _LEAVE_OUT,
        "forget": _FORGET,
        "epoch": _SOURCE_DATE_EPOCH,
        "machine": platform.machine(),
    }


def find_debian_base(store: Store) -> DebianBase | None:
    """The base in the cache, or None when it has not been made yet."""
    directory = store.path("base", _key())
    try:
        facts = json.loads((directory / "base.json").read_text())
        tar = directory / "base.tar"
        if tar.stat().st_size == facts["size"]:
            return DebianBase(tar, str(facts["sha256"]))
    except (OSError, ValueError, KeyError):
        return None
    return None


def ensure_debian_base(store: Store, progress: Callable[[str], None]) -> DebianBase:
    """The base in the cache, made when missing.

    Args:
        store: The cache.
        progress: Told one line before a long step.

    Raises:
        EnvironmentUnusable: No mmdebstrap, the package archive is unreachable, no space.
    """
    if found := find_debian_base(store):
        return found
    with store.lock("base"):
        if found := find_debian_base(store):
            return found
        program = shutil.which("mmdebstrap")
        if program is None:
            raise EnvironmentUnusable("mmdebstrap is not installed", MMDEBSTRAP_MEND)
        progress(f"making a Debian {SUITE} base system (about a minute)")
        with store.making("base", _key()) as directory:
            _bootstrap(program, directory / "base.tar")
            facts = {
                "sha256": file_digest(directory / "base.tar"),
                "size": (directory / "base.tar").stat().st_size,
                "recipe": recipe(),
            }
            (directory / "base.json").write_text(json.dumps(facts, indent=1))
    made = find_debian_base(store)
    if made is None:
        raise EnvironmentUnusable("the base system vanished from the cache", "lab build")
    return made


def _bootstrap(program: str, tar: Path) -> None:
    command = [program, "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEAVE_OUT]
    command += [f"--customize-hook={_FORGET}", SUITE, str(tar)]
    if mirror := os.environ.get("LAB_DEBIAN_MIRROR"):
        command.append(mirror)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _SOURCE_DATE_EPOCH}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E: ")] or done.stderr.splitlines()
        raise EnvironmentUnusable(
            f"mmdebstrap could not make the base system: {' '.join(lines[:1])[:300]}",
            "apt-get update must work on this machine; set LAB_DEBIAN_MIRROR where another archive is to be used",
        )


def _key() -> str:
    return f"debian-{SUITE}-{digest(recipe())[:16]}"
