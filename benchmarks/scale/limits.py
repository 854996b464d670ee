"""Runs one measurement in a process of its own under a limit of time and one of memory, and tells how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.text import printable

PROJECT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.1
END_SECONDS = 10.0
"""How long a process that is told to end may take to tidy up before it is killed."""

_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_TEMPORARY = ("TMPDIR", "SQLITE_TMPDIR")


@dataclass(frozen=True)
class Limits:
    """What a measurement may take.

    Attributes:
        seconds: From its start to its end.
        megabytes: Resident memory of it and of all its descendants.
    """

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Ended:
    """How a measurement ended.

    Attributes:
        stopped: ``time``, ``memory``, or empty where it ended by itself.
        fault: The last line of what it complained of, where it ended with an exit code other than 0.
        told: All that it told, later values over earlier ones.
        children_bytes: Most resident memory of its descendants together, as far as looking ten times a second sees.
    """

    stopped: str
    fault: str
    told: Mapping[str, Any] = field(default_factory=dict)
    children_bytes: int = 0


def run_within(command: Sequence[str], limits: Limits, temporary: Path) -> Ended:
    """Runs a program that prints JSON objects, one a line.

    Memory is looked at from outside and not bounded by the kernel's ``RLIMIT_AS``: vector stores reserve far more
    addresses than they use.

    Args:
        command: The program and its arguments.
        limits: Its bounds.
        temporary: Where it puts temporary files.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command,
            cwd=PROJECT,
            env={**os.environ, **_THREADS, **dict.fromkeys(_TEMPORARY, str(temporary))},
            stdout=out,
            stderr=complaints,
            start_new_session=True,
        )
        try:
            stopped, children = _watch(process, limits)
        finally:
            _end(process)
        out.seek(0)
        told: dict[str, Any] = {}
        for line in out.read().splitlines():
            with contextlib.suppress(ValueError):  # a line that the end cut off
                told |= json.loads(line)
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().splitlines()
        code = process.returncode
        fault = "" if stopped or not code else printable(last[-1]) if last else f"it ended with code {code}"
        return Ended(stopped, fault, told, children)


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of the benchmark."""
    return [sys.executable, "-m", f"benchmarks.scale.{module}", *arguments]


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> tuple[str, int]:
    end, most = time.monotonic() + limits.seconds, 0
    while process.poll() is None:
        children = sum(map(_resident, descendants(process.pid)))
        most = max(most, children)
        if _resident(process.pid) + children > limits.megabytes * 2**20:
            return "memory", most
        if time.monotonic() > end:
            return "time", most
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
    return "", most


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tells a process to end, so that it takes its sandbox down, then kills it and all that came of it."""
    if process.poll() is not None:
        return
    started = descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        for each in started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """All processes that a process has started, and those that they have."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return [*found, *(further for child in found for further in descendants(child))]


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0
