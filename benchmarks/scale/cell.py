"""One system at one size, in a process of its own: prints a JSON line after each step, so that none is lost.

Run by ``limits.py``; the parent decides how long it may take and how much memory.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from lab.errors import EnvironmentUnusable, LabError

from .contestants import Contestant, contestant
from .data import Inputs, Question

WARM_UP = 10
ODD_ROUNDS = 4
_TELL_SECONDS = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measures; returns the exit code. An error of the lab is told as a line."""
    name, inputs, folder = arguments[0], Inputs(Path(arguments[1])), Path(arguments[2])
    signal.signal(signal.SIGTERM, _stop)
    try:
        _measure(name, inputs, folder)
    except LabError as error:
        _say(failed=str(error), unavailable=isinstance(error, EnvironmentUnusable))
    return 0


def _measure(name: str, inputs: Inputs, folder: Path) -> None:
    drawn, odd = inputs.questions()
    _say(phase="start")
    made, needed = contestant(name, inputs, folder)
    try:
        _ingest(made, needed, folder)
        _say(phase="search")
        for question in drawn[:WARM_UP]:
            made.search(question)
        used = time.process_time()
        seconds, channels = timed(made, drawn)
        used = time.process_time() - used
        _say(
            p50_ms=1000 * statistics.median(seconds),
            p95_ms=1000 * statistics.quantiles(seconds, n=20, method="inclusive")[-1],
            query_cpu_ms=1000 * used / len(drawn),
            queries=len(seconds),
            channels=sorted(channels),
            peak_bytes=peak_bytes(),
        )
        _say(phase="odd")
        seconds, _ = timed(made, odd * ODD_ROUNDS)
        _say(odd_p50_ms=1000 * statistics.median(seconds), peak_bytes=peak_bytes(), phase="end")
    finally:
        made.close()


def _ingest(made: Contestant, needed: int, folder: Path) -> None:
    gc.collect()
    _say(phase="ingest", base_bytes=peak_bytes())
    told = time.monotonic()

    def tell(done: int) -> None:
        nonlocal told
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            _say(done=done)

    started, used = time.perf_counter(), time.process_time()
    made.ingest(tell)
    _say(
        ingest_seconds=time.perf_counter() - started,
        ingest_cpu_seconds=time.process_time() - used,
        disk_bytes=needed + disk_bytes(folder),
    )


def timed(made: Contestant, questions: Sequence[Question]) -> tuple[list[float], set[str]]:
    """Seconds of each question, and all channels that ran."""
    seconds, channels = [], set[str]()
    for question in questions:
        started = time.perf_counter()
        _, ran = made.search(question)
        seconds.append(time.perf_counter() - started)
        channels |= set(ran)
    return seconds, channels


def peak_bytes() -> int:
    """The most memory that this process has had resident.

    By ``VmHWM`` and not by ``getrusage``: a process that was started by ``vfork``, as Python's are, has its parent's
    peak as its own ``ru_maxrss`` from the first moment on.
    """
    for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise EnvironmentUnusable("this kernel does not tell the peak of memory", "take Linux")


def disk_bytes(folder: Path) -> int:
    """Bytes of all files in a folder, and of those that this process holds open although they have no name any more.

    SQLite's temporary tables are such files: they fill the disk and no listing shows them.
    """
    named = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    nameless = {}
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found = descriptor.stat()
        except OSError:  # the descriptor of this listing
            continue
        if descriptor.is_file() and not found.st_nlink:
            nameless[found.st_dev, found.st_ino] = found.st_size
    return named + sum(nameless.values())


def _say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


def _stop(_signal: int, _frame: object) -> NoReturn:
    """Ends by an exception, so that a sandbox is taken down."""
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Threads of a library must not hold up the end: all that counts has been told.
    os._exit(code)
