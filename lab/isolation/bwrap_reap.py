"""Ends the sandboxes that dead labs left behind and proves by a second look that they are gone."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from lab.isolation import cgroup
from lab.isolation.base import ReapReport
from lab.isolation.cache import cache_root, remove_tree
from lab.isolation.creator import (
    CREATOR_BOOT_LABEL,
    CREATOR_PID_LABEL,
    CREATOR_START_LABEL,
    boot_id,
    in_use_elsewhere,
    process_start,
)
from lab.isolation.sandbox_records import SandboxRecord, read_records, records_directory, remove_record

ROOTFS_DIRECTORY = "rootfs"
"""Name of the directory of prepared root file systems below the cache."""


def group_identity(unique: str) -> str:
    """Name of a sandbox; it tells the creator, so that a group without a record still belongs to somebody."""
    pid = os.getpid()
    return f"{pid}-{process_start(pid)}-{unique}"


def reap_sandboxes(include_images: bool) -> ReapReport:
    """Ends every recorded sandbox and every group of the lab whose creator is dead or is this process.

    Args:
        include_images: Also remove the prepared root file systems, unless another lab has a sandbox running.
    """
    before = [record.identity for record in _sandboxes()]
    for record in _sandboxes():
        if not in_use_elsewhere(record.labels):
            _end(record)
    remaining = [record.identity for record in _sandboxes()]
    if not remaining:
        _remove_group_parents()
    if include_images:
        before += _root_file_systems()
        if not remaining:
            _remove_root_file_systems()
        remaining += _root_file_systems()
    return ReapReport(tuple(name for name in before if name not in remaining), tuple(remaining))


def _sandboxes() -> Iterator[SandboxRecord]:
    recorded = list(read_records(records_directory()))
    yield from recorded
    names = {record.identity for record in recorded}
    hierarchies = cgroup.detect()
    for name, group in sorted(cgroup.groups_in(hierarchies).items()) if hierarchies else ():
        if name not in names:
            paths = {key: str(path) for key, path in group.paths.items()}
            yield SandboxRecord(name, _creator_from(name), paths)


def _creator_from(identity: str) -> dict[str, str]:
    pid, _, rest = identity.partition("-")
    return {
        CREATOR_PID_LABEL: pid,
        CREATOR_START_LABEL: rest.partition("-")[0],
        CREATOR_BOOT_LABEL: boot_id(),  # groups do not outlive the kernel
    }


def _end(record: SandboxRecord) -> None:
    if record.pid and record.start and process_start(record.pid) == record.start:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(record.pid, signal.SIGKILL)
    # A record is only a file: nothing outside the lab's own groups is touched, whatever it says.
    paths = {key: Path(path) for key, path in record.cgroups.items()}
    if paths and all(
        path.parent.name == cgroup.GROUP_PARENT and path.name == record.identity for path in paths.values()
    ):
        group = cgroup.Group(paths)
        group.kill()
        if not group.remove():
            return
    remove_record(records_directory(), record.identity)


def _remove_group_parents() -> None:
    """The lab's own parent directories go too; one that another lab has just put a group into refuses."""
    hierarchies = cgroup.detect()
    for parent in hierarchies.parents.values() if hierarchies else ():
        with contextlib.suppress(OSError):
            parent.rmdir()


def _root_file_systems() -> list[str]:
    directory = cache_root() / ROOTFS_DIRECTORY
    if not directory.is_dir():
        return []
    return [f"{ROOTFS_DIRECTORY}/{path.name}" for path in sorted(directory.iterdir())]


def _remove_root_file_systems() -> None:
    remove_tree(cache_root() / ROOTFS_DIRECTORY)
