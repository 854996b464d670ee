"""How many trials this machine can run at once: bounded by its cores and by its free memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Capacity:
    """What a machine offers.

    Attributes:
        cores: Cores that this process may use.
        free_bytes: Memory that can be had without swapping; None where the system does not say.
    """

    cores: int
    free_bytes: int | None

    def jobs(self, session_bytes: int, wanted: int = 0) -> tuple[int, str]:
        """How many trials to run at once.

        Args:
            session_bytes: Memory that one session may take.
            wanted: What the user asked for, which is obeyed; 0 for one on each core as far as memory goes.

        Returns:
            At least one, and one line on what memory does to it; empty where there is enough or it is not known.
        """
        if self.free_bytes is None:
            return wanted or self.cores, ""
        fit = self.free_bytes // session_bytes
        jobs = wanted or max(1, min(self.cores, fit))
        free, each = f"{self.free_bytes / 2**30:.1f} GiB", f"{session_bytes / 2**30:.1f} GiB"
        if jobs > fit:
            return jobs, f"{jobs} at once may take more than the free memory of {free} (each up to {each})"
        if not wanted and fit < self.cores:
            return jobs, f"{jobs} at once, not {self.cores}: free memory of {free} holds no more sessions of {each}"
        return jobs, ""


def measure() -> Capacity:
    """Asks the system."""
    return Capacity(len(os.sched_getaffinity(0)), free_memory())


def free_memory(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int | None:
    """Memory that can be had without swapping, in bytes; the bound of the container the lab is in counts too.

    Args:
        meminfo: ``/proc/meminfo`` or a file like it.
        cgroup: Where control groups are mounted; in a container its own group is at the root (version 2, or 1).
    """
    found = []
    for line in _text(meminfo).splitlines():
        if line.startswith("MemAvailable:") and (amount := line.split()[1]).isdigit():
            found.append(int(amount) << 10)
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        bound, taken = _text(cgroup / limit).strip(), _text(cgroup / used).strip()
        if bound.isdigit() and taken.isdigit():
            found.append(max(0, int(bound) - int(taken)))
    return min(found) if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
