"""A pool of warm sandboxes that is watched for what it leaves behind."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lab.contamination.sessions.warm import WarmSessions


@contextmanager
def watched_pool(scratch: Path) -> Iterator[WarmSessions]:
    """A pool whose working directories lie in ``scratch``, where it can be seen what is left of them."""
    scratch.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(scratch))
        with closing(WarmSessions()) as sessions:
            yield sessions
    assert list(scratch.glob("lab-work-*")) == [], "a working directory is left"
    assert zygotes() == [], "a process is left"
    assert not [t for t in threading.enumerate() if t.name == "warm-sandbox"]


def zygotes() -> list[int]:
    """Zygotes among the descendants of this process, by their ids on this machine."""
    parents, found = {}, []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"zygote.py" in (path / "cmdline").read_bytes().split(b"\0")[1:2][0]:
                found.append(int(path.name))
        except (OSError, IndexError):
            continue

    def ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and ours(parents[pid]))

    return [pid for pid in found if ours(pid)]
