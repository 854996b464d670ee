"""Who made a sandbox: the marks that tell a stray of a dead lab from the running sandbox of a living one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lab.isolation.base import LABEL_NAMESPACE, MANAGED_LABEL

CREATOR_PID_LABEL = f"{LABEL_NAMESPACE}.creator-pid"
CREATOR_START_LABEL = f"{LABEL_NAMESPACE}.creator-start"
CREATOR_BOOT_LABEL = f"{LABEL_NAMESPACE}.creator-boot"

_START_FIELD = 19  # field 22 of proc(5)'s stat, counted from the one after the parenthesised name


def boot_id() -> str:
    """Identifies the running kernel; process ids mean nothing beyond it. Empty where the kernel does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_start(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when there is no such process.

    Together with the process id it names a process for good: the id alone may have been given away again.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[_START_FIELD]


def sandbox_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """All labels of a new sandbox: the managed mark, the creator's marks and the caller's, namespaced.

    Args:
        labels: The caller's labels, without namespace.
    """
    pid = os.getpid()
    return {
        MANAGED_LABEL: "true",
        CREATOR_PID_LABEL: str(pid),
        CREATOR_START_LABEL: process_start(pid),
        CREATOR_BOOT_LABEL: boot_id(),
        **{f"{LABEL_NAMESPACE}.{key}": value for key, value in labels.items()},
    }


def in_use_elsewhere(labels: Mapping[str, str]) -> bool:
    """Whether another living process of this machine made the object with these labels.

    Args:
        labels: Labels as ``sandbox_labels`` made them; an object without creator marks is nobody's.
    """
    pid = labels.get(CREATOR_PID_LABEL, "")
    start = labels.get(CREATOR_START_LABEL, "")
    if not pid.isdigit() or not start or labels.get(CREATOR_BOOT_LABEL) != boot_id():
        return False
    return int(pid) != os.getpid() and process_start(int(pid)) == start
