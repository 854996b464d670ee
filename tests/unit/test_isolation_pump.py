"""Output limit, deadline, cancel, and the verdict about the end of a sandbox."""

from __future__ import annotations

import os
import threading
import time

import pytest

from lab.errors import SandboxCancelled, SandboxKilled, SandboxOutOfMemory, SandboxOutputLimit, SandboxTimeout
from lab.isolation.base import Exit, Limits
from lab.isolation.creator import boot_id, in_use_elsewhere, process_start, sandbox_labels
from lab.isolation.pump import STDERR, STDOUT, Ending, Pump, conclude


def end(pump: Pump, ending: Ending = Ending.ENDED, status: int | None = 0, oom: bool = False) -> Exit:
    return conclude(ending, pump, Limits(), status=status, out_of_memory=oom, wall_seconds=1.0)


def test_streams_are_kept_apart_and_bounded_together() -> None:
    pump = Pump(10)
    pump.feed(STDOUT, b"12345")
    pump.feed(STDERR, b"67890")
    assert not pump.flooded
    pump.feed(STDOUT, b"x")
    assert pump.flooded
    assert (pump.stdout, pump.stderr) == (b"12345", b"67890")
    assert pump.wait(60, None) is Ending.FLOODED


def test_end_wakes_the_waiter() -> None:
    pump = Pump(10)
    threading.Timer(0.05, pump.finish).start()
    started = time.monotonic()
    assert pump.wait(60, None) is Ending.ENDED
    assert time.monotonic() - started < 30


def test_deadline_and_cancel() -> None:
    assert Pump(10).wait(0.01, None) is Ending.TIMEOUT
    cancel = threading.Event()
    threading.Timer(0.05, cancel.set).start()
    assert Pump(10).wait(60, cancel) is Ending.CANCELLED


@pytest.mark.parametrize(
    ("status", "code"), [(0, 0), (1, 1), (127, 127), (128, 128), (139, -11), (143, -15), (255, 255)]
)
def test_exit_codes(status: int, code: int) -> None:
    assert end(Pump(10), status=status).code == code


def test_causes_by_precedence() -> None:
    flooded = Pump(1)
    flooded.feed(STDOUT, b"ab")
    cases = [
        (SandboxCancelled, lambda: end(flooded, Ending.CANCELLED, None)),
        (SandboxOutputLimit, lambda: end(flooded, oom=True)),
        (SandboxOutOfMemory, lambda: end(Pump(1), Ending.TIMEOUT, 137, oom=True)),
        (SandboxOutOfMemory, lambda: end(Pump(1), oom=True)),
        (SandboxTimeout, lambda: end(Pump(1), Ending.TIMEOUT, 137)),
        (SandboxKilled, lambda: end(Pump(1), status=137)),
        (SandboxKilled, lambda: end(Pump(1), status=None)),
    ]
    for error, call in cases:
        with pytest.raises(error):
            call()


def test_creator_marks() -> None:
    mine = sandbox_labels({"trial": "t"})
    assert mine["org.agent-memory-lab.trial"] == "t"
    assert not in_use_elsewhere(mine)
    other = {
        **mine,
        "org.agent-memory-lab.creator-pid": "1",
        "org.agent-memory-lab.creator-start": process_start(1),
    }
    assert in_use_elsewhere(other)
    for key, value in (("creator-start", "0"), ("creator-boot", "another"), ("creator-pid", "x")):
        assert not in_use_elsewhere({**other, f"org.agent-memory-lab.{key}": value})
    assert not in_use_elsewhere({})
    assert boot_id()
    assert process_start(os.getpid()).isdigit()
