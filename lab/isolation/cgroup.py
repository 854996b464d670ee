"""Transient control groups (v1 and v2) that bound one bubblewrap sandbox and count its memory kills."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.isolation.base import Limits

GROUP_PARENT = "agent-memory-lab"
"""Directory, in every hierarchy, below which all groups of the lab lie."""

_NEEDED = ("memory", "pids")
_WANTED = (*_NEEDED, "cpu")
_UNIFIED = "unified"
_PERIOD_US = 100_000
_REMOVE_SECONDS = 5.0
_RETRY_SECONDS = 0.002


@dataclass(frozen=True)
class Hierarchies:
    """Writable directories under which the lab may make groups.

    Attributes:
        parents: For v1 one directory per controller; for v2 a single one under the key ``unified``.
    """

    parents: Mapping[str, Path]

    @property
    def version(self) -> int:
        """1 or 2."""
        return 2 if _UNIFIED in self.parents else 1

    @property
    def missing(self) -> tuple[str, ...]:
        """Wanted controllers that this machine does not offer."""
        return () if self.version == 2 else tuple(name for name in _WANTED if name not in self.parents)


def find_hierarchies(mountinfo: str, own_groups: str) -> Hierarchies | None:
    """Finds where groups with memory and process limits can be made, and makes the lab's parent there.

    Args:
        mountinfo: Text of ``/proc/self/mountinfo``.
        own_groups: Text of ``/proc/self/cgroup``.

    Returns:
        None where no such place is writable.
    """
    mounts = dict(_mounts(mountinfo))
    own = dict(_own_paths(own_groups))
    if all(name in mounts for name in _NEEDED):
        parents = {}
        for name in _WANTED:
            if name in mounts and (parent := _writable_v1(mounts[name], own.get(name, "/"))):
                parents[name] = parent
        if all(name in parents for name in _NEEDED):
            return Hierarchies(parents)
    if _UNIFIED in mounts and (parent := _writable_v2(mounts[_UNIFIED], own.get(_UNIFIED, "/"))):
        return Hierarchies({_UNIFIED: parent})
    return None


def detect() -> Hierarchies | None:
    """``find_hierarchies`` for the running process; None also where the kernel has no control groups."""
    try:
        return find_hierarchies(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    except OSError:
        return None


class Group:
    """The control groups of one sandbox, one directory per hierarchy."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = dict(paths)

    @classmethod
    def named(cls, hierarchies: Hierarchies, name: str) -> Group:
        """The group of this name, made or not."""
        return cls({key: parent / name for key, parent in hierarchies.parents.items()})

    def create(self, limits: Limits, extra_processes: int = 0) -> None:
        """Makes the directories and writes the limits.

        Args:
            limits: Bounds of the sandbox.
            extra_processes: Processes of the backend itself that live in the group beside the program's.

        Raises:
            OSError: A directory or a needed limit could not be written.
        """
        for path in self.paths.values():
            path.mkdir(parents=True, exist_ok=True)
        if unified := self.paths.get(_UNIFIED):
            # A concurrent clean-up may have taken the parent away, and it is new now.
            with contextlib.suppress(OSError):
                _enable(unified.parent)
        for path, text, optional in self._settings(limits, limits.processes + extra_processes):
            with contextlib.suppress(*([FileNotFoundError, PermissionError] if optional else [])):
                path.write_text(text)

    def _settings(self, limits: Limits, processes: int) -> Iterator[tuple[Path, str, bool]]:
        quota = max(1000, int(limits.cpus * _PERIOD_US))
        if unified := self.paths.get(_UNIFIED):
            yield unified / "memory.max", str(limits.memory_bytes), False
            yield unified / "memory.swap.max", "0", True
            yield unified / "pids.max", str(processes), False
            yield unified / "cpu.max", f"{quota} {_PERIOD_US}", True
            return
        yield self.paths["memory"] / "memory.limit_in_bytes", str(limits.memory_bytes), False
        yield self.paths["memory"] / "memory.memsw.limit_in_bytes", str(limits.memory_bytes), True
        yield self.paths["pids"] / "pids.max", str(processes), False
        if cpu := self.paths.get("cpu"):
            yield cpu / "cpu.cfs_period_us", str(_PERIOD_US), True
            yield cpu / "cpu.cfs_quota_us", str(quota), True

    def entry_files(self) -> tuple[Path, ...]:
        """Files into which a process writes its id to enter the group."""
        return tuple(path / "cgroup.procs" for path in self.paths.values())

    def memory_kills(self) -> int:
        """How many processes of the group the kernel has killed at the memory limit."""
        if unified := self.paths.get(_UNIFIED):
            text = _read(unified / "memory.events")
        else:
            text = _read(self.paths["memory"] / "memory.oom_control")
        counts = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
        return int(counts.get("oom_kill", 0))

    def processes(self) -> frozenset[int]:
        """Ids of all processes in the group."""
        return frozenset(
            int(line) for path in self.entry_files() for line in _read(path).splitlines() if line.isdigit()
        )

    def kill(self) -> None:
        """Kills every process of the group, again and again until none is left or five seconds have passed."""
        deadline = time.monotonic() + _REMOVE_SECONDS
        if (unified := self.paths.get(_UNIFIED)) and (unified / "cgroup.kill").exists():
            with contextlib.suppress(OSError):
                (unified / "cgroup.kill").write_text("1")
        while (found := self.processes()) and time.monotonic() < deadline:
            for pid in found - {0, os.getpid()}:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_RETRY_SECONDS)  # v1 has no event for an empty group

    def remove(self) -> bool:
        """Removes the directories.

        Returns:
            False when one of them is still there, because a process is in it.
        """
        deadline = time.monotonic() + _REMOVE_SECONDS
        for path in self.paths.values():
            while True:
                try:
                    path.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    # A process that has just been reaped is accounted for a moment longer.
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(_RETRY_SECONDS)
                else:
                    break
        return True


def groups_in(hierarchies: Hierarchies) -> dict[str, Group]:
    """All groups of the lab on this machine by name, whoever made them."""
    found: dict[str, dict[str, Path]] = {}
    for key, parent in hierarchies.parents.items():
        with contextlib.suppress(OSError):
            for path in parent.iterdir():
                if path.is_dir():
                    found.setdefault(path.name, {})[key] = path
    return {name: Group(paths) for name, paths in found.items()}


def _mounts(mountinfo: str) -> Iterator[tuple[str, Path]]:
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        point = Path(fields[4].replace("\\040", " "))
        if kind[0] == "cgroup2":
            yield _UNIFIED, point
        else:
            yield from ((name, point) for name in kind[2].split(",") if name in _WANTED)


def _own_paths(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(",") if names else [_UNIFIED]:
            yield name, path


def _writable_v1(mount: Path, own: str) -> Path | None:
    """The root of the hierarchy comes first, as for container engines; a delegated own group is the second choice."""
    for base in (mount, mount / own.lstrip("/")):
        parent = base / GROUP_PARENT
        with contextlib.suppress(OSError):
            parent.mkdir(exist_ok=True)
            if os.access(parent, os.W_OK) and os.access(parent / "cgroup.procs", os.W_OK):
                return parent
    return None


def _writable_v2(mount: Path, own: str) -> Path | None:
    """The root first, then every ancestor of the own group from the nearest: user managers delegate such a one.

    The own group itself is of no use: a group with processes cannot have limited children.
    """
    own_path = mount / own.lstrip("/")
    ancestors = [path for path in own_path.parents if path == mount or mount in path.parents]
    for base in dict.fromkeys([mount, *ancestors]):
        if not set(_NEEDED) <= set(_read(base / "cgroup.controllers").split()):
            continue
        parent = base / GROUP_PARENT
        with contextlib.suppress(OSError):
            _enable(base)
            parent.mkdir(exist_ok=True)
            _enable(parent)
            if set(_NEEDED) <= set(_read(parent / "cgroup.subtree_control").split()):
                return parent
    return None


def _enable(group: Path) -> None:
    control = group / "cgroup.subtree_control"
    available = set(_read(group / "cgroup.controllers").split())
    for name in sorted((available & set(_WANTED)) - set(_read(control).split())):
        control.write_text(f"+{name}")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
