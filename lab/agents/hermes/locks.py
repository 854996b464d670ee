"""Lock files: the committed ones, and those that the lab resolves itself for a build that has none."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.agents.hermes.pip_command import PipFailed, call_pip, target_options
from lab.agents.hermes.sources import Source, normal_name, wheel_identity
from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable, InputError
from lab.records import file_digest

LOCKS = "locks"
"""Folder of the committed locks; the file of a build is its name and ``.lock``."""

_PINNED = re.compile(r"(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>\S+) \\")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?P<more> \\)?")
_RESOLVED = "requirements.lock"


def committed_locks(directory: Path) -> dict[str, Path]:
    """The locks that lie in ``containers/hermes/locks``, by the name of their build."""
    return {path.stem: path for path in sorted((directory / LOCKS).glob("*.lock"))}


def read_lock(path: Path) -> dict[str, str]:
    """Names and exact versions of a lock file.

    Raises:
        InputError: A line is no exact pin with SHA-256 hashes.
    """
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", "make the lock again") from error
    found: dict[str, str] = {}
    state = "pin"  # what may come next: a pin, a hash, or either after a hash without a backslash
    for line in lines:
        if state == "pin" and (pin := _PINNED.fullmatch(line)):
            found[normal_name(pin["name"])] = pin["version"]
            state = "hash"
        elif state == "hash" and (hashed := _HASH.fullmatch(line)):
            state = "hash" if hashed["more"] else "pin"
        else:
            raise InputError(f"{path}: {line[:80]!r} is no exact pin with hashes", "make the lock again")
    if not found or state != "pin":
        raise InputError(f"{path} is not complete", "make the lock again")
    return found


def resolve_lock(
    store: Store, source: Source, wheel: Path | None, known: Mapping[str, Path], progress: Callable[[str], None]
) -> Path:
    """The lock of a build that has no committed one, resolved once and then kept: a resumed run finds the same.

    Pip resolves for the environment inside; only environment markers are evaluated for the lab's own Python, and the
    installation's ``pip check`` finds what a wrong marker has left out.

    Args:
        store: The cache.
        source: The build.
        wheel: Its wheel where it is local.
        known: The committed locks, named in the error.
        progress: Told one line before the resolution.

    Raises:
        InputError: There is no such release, or its dependencies cannot be met with wheels.
        EnvironmentUnusable: The package index cannot be reached.
    """
    key = f"{platform.machine()}-{source.name}" + (f"-{file_digest(wheel)[:16]}" if wheel else "")
    lock = store.path("resolved", key) / _RESOLVED
    if not lock.is_file():
        with store.lock("resolved"):
            if not lock.is_file():
                progress(f"resolving the dependencies of {source.name}")
                with store.making("resolved", key) as made:
                    wanted = str(wheel) if wheel else source.text
                    product = wheel_identity(wheel)[0] if wheel else source.product
                    (made / _RESOLVED).write_text(_lock_text(_resolve(store, source, wanted, known), product))
    return lock


def _resolve(store: Store, source: Source, wanted: str, known: Mapping[str, Path]) -> list[dict[str, Any]]:
    with store.scratch("resolve") as scratch:
        report = scratch / "report.json"
        options = ["--dry-run", "--ignore-installed", "--target", str(scratch / "none"), "--report", str(report)]
        try:
            call_pip("install", [*options, *target_options(), wanted])
        except PipFailed as error:
            raise _unresolved(source, error, known) from error
        installed: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return installed


def _unresolved(source: Source, error: PipFailed, known: Mapping[str, Path]) -> Exception:
    sought = re.search(r"satisfies the requirement (\S+) \(from versions: (.*?)\)", error.output)
    mend = "it must be a release with a wheel for CPython 3.11; builds with a committed lock: "
    mend += ", ".join(name for name in known) or "none"
    if sought and sought[2] == "none":
        return EnvironmentUnusable(
            f"the package index offers no version of {sought[1].partition('=')[0]}, or cannot be reached", mend
        )
    if sought and normal_name(sought[1].partition("==")[0]) == source.product:
        return InputError(f"there is no {source.product} {source.version} in the package index", mend)
    return InputError(f"the dependencies of {source.name} cannot be resolved: {error.reason}", "see docs/builds.md")


def _lock_text(installed: list[dict[str, Any]], product: str) -> str:
    pins: dict[str, tuple[str, str]] = {}
    for item in installed:
        archive = item["download_info"].get("archive_info", {})
        sha256 = archive.get("hashes", {}).get("sha256") or str(archive.get("hash", "")).removeprefix("sha256=")
        name = normal_name(item["metadata"]["name"])
        if not sha256:
            raise EnvironmentUnusable(f"the package index gives no hash for {name}", "use an index that serves wheels")
        pins[name] = (item["metadata"]["version"], sha256)
    head = f"# {product} {pins[product][0]} and everything it needs on CPython 3.11, Linux {platform.machine()}.\n"
    head += "# Resolved by the lab with pip.\n"
    return head + "".join(f"{n}=={v} \\\n    --hash=sha256:{h}\n" for n, (v, h) in sorted(pins.items()))
