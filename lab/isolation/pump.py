"""What both backends share in watching one sandbox: its output, its limits, and the verdict about its end.

A backend's reader threads ``feed`` bytes and its waiter thread calls ``finish``; the thread that called ``run`` sits
in ``wait`` until the first of four things: the end, the deadline, the caller's cancel, or too much output.
"""

from __future__ import annotations

import threading
import time
from enum import Enum
from typing import Final

from lab.errors import (
    SandboxCancelled,
    SandboxKilled,
    SandboxOutOfMemory,
    SandboxOutputLimit,
    SandboxTimeout,
)
from lab.isolation.base import Exit, Limits

STDOUT: Final = 1
STDERR: Final = 2

_CANCEL_CHECK_SECONDS = 0.1
"""The caller's event cannot be waited for together with our own condition, so it is looked at this often."""

_SIGKILL_STATUS = 128 + 9


class Ending(Enum):
    """Why waiting for a sandbox came to an end."""

    ENDED = "ended"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    FLOODED = "flooded"


class Pump:
    """Collects the output of one sandbox up to a limit and waits for its end.

    Args:
        limit_bytes: Bound of standard output and standard error together; what comes beyond is dropped.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._changed = threading.Condition()
        self._buffers = {STDOUT: bytearray(), STDERR: bytearray()}
        self._taken = 0
        self._flooded = False
        self._finished = False

    def feed(self, stream: int, data: bytes) -> None:
        """Takes bytes that the program wrote; callable from any thread.

        Args:
            stream: ``STDOUT`` or ``STDERR``.
            data: The bytes.
        """
        with self._changed:
            room = self._limit - self._taken
            self._buffers[stream] += data[:room]
            self._taken += min(room, len(data))
            if len(data) > room and not self._flooded:
                self._flooded = True
                self._changed.notify_all()

    def finish(self) -> None:
        """Says that the program has ended; callable from any thread."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def wait(self, seconds: float, cancel: threading.Event | None) -> Ending:
        """Waits for the first of end, deadline, cancel and flood.

        Args:
            seconds: Wall time from now to the deadline.
            cancel: The caller's wish to end early.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                if cancel is not None and cancel.is_set():
                    return Ending.CANCELLED
                if self._flooded:
                    return Ending.FLOODED
                if self._finished:
                    return Ending.ENDED
                left = deadline - time.monotonic()
                if left <= 0:
                    return Ending.TIMEOUT
                self._changed.wait(left if cancel is None else min(left, _CANCEL_CHECK_SECONDS))

    @property
    def flooded(self) -> bool:
        """True when the program wrote more than the limit."""
        with self._changed:
            return self._flooded

    @property
    def stdout(self) -> bytes:
        """Standard output so far."""
        with self._changed:
            return bytes(self._buffers[STDOUT])

    @property
    def stderr(self) -> bytes:
        """Standard error so far."""
        with self._changed:
            return bytes(self._buffers[STDERR])


def conclude(
    ending: Ending,
    pump: Pump,
    limits: Limits,
    *,
    status: int | None,
    out_of_memory: bool,
    wall_seconds: float,
) -> Exit:
    """Turns all that is known about the end of a sandbox into its exit, or into the error that names the cause.

    Args:
        ending: Why the waiting ended.
        pump: The output, complete by now.
        limits: The limits that were in force, for the messages.
        status: Exit status as a shell gives it (128 + signal); None when the backend itself was killed.
        out_of_memory: Whether the kernel killed a process of the sandbox because of the memory limit.
        wall_seconds: Wall time of the whole run.

    Raises:
        SandboxCancelled: The caller's cancel.
        SandboxOutputLimit: More output than allowed, even when the program ended right after.
        SandboxOutOfMemory: A memory kill of any process, even when the others lived on.
        SandboxTimeout: The deadline.
        SandboxKilled: Killed from outside; a program that returns 137 of its own cannot be told from it.
    """
    out, err = pump.stdout, pump.stderr
    if ending is Ending.CANCELLED:
        raise SandboxCancelled("the sandbox was cancelled", stdout=out, stderr=err)
    if pump.flooded:
        raise SandboxOutputLimit(
            f"the program wrote more than {limits.output_bytes} bytes of output", stdout=out, stderr=err
        )
    if out_of_memory:
        raise SandboxOutOfMemory(
            f"the kernel killed a process at the memory limit of {limits.memory_bytes >> 20} MiB",
            stdout=out,
            stderr=err,
        )
    if ending is Ending.TIMEOUT:
        raise SandboxTimeout(
            f"the program ran longer than {limits.wall_seconds:g} s and was killed", stdout=out, stderr=err
        )
    if status is None or status == _SIGKILL_STATUS:
        raise SandboxKilled("the sandbox was killed from outside", stdout=out, stderr=err)
    code = 128 - status if 128 < status <= 128 + 64 else status
    return Exit(code=code, stdout=out, stderr=err, wall_seconds=wall_seconds)
