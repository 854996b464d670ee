"""The cold start: every session in a sandbox of its own, with the agent imported anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab.contamination.sessions.base import Launch, Place, SessionEnd, Start, ended, gateway_died, interrupted
from lab.errors import EnvironmentUnusable, SandboxError, SandboxStartFailed
from lab.isolation.work import make_work_directory, remove_tree


class ColdSessions:
    """Starts every session cold; holds nothing between two of them."""

    @property
    def start(self) -> Start:
        """Always cold."""
        return Start.COLD

    @contextmanager
    def place(self, launch: Launch, cancel: threading.Event) -> Iterator[ColdPlace]:
        """See ``Sessions.place``."""
        del cancel
        work = make_work_directory()
        try:
            yield ColdPlace(launch, work)
        finally:
            remove_tree(work)

    def close(self) -> None:
        """There is nothing to end."""


class ColdPlace:
    """A working directory, and a sandbox for each session in it."""

    def __init__(self, launch: Launch, work: Path) -> None:
        self._launch = launch
        self.home, self.io = work / "home", work / "io"
        self.home.mkdir(mode=0o700)

    def fresh_io(self) -> None:
        """See ``Place.fresh_io``."""
        remove_tree(self.io)
        self.io.mkdir(mode=0o755)

    def run(self, phase: str, labels: Mapping[str, str], cancel: threading.Event, died: threading.Event) -> SessionEnd:
        """See ``Place.run``."""
        return run_cold(self._launch, self, phase, labels, cancel, died)


def run_cold(
    launch: Launch,
    place: Place,
    phase: str,
    labels: Mapping[str, str],
    cancel: threading.Event,
    died: threading.Event,
) -> SessionEnd:
    """Runs one session in a sandbox of its own; arguments and errors as of ``Place.run``."""
    told = {**labels, "phase": phase}
    spec = launch.spec(launch.agent.command(), place.home, place.io, told, launch.limits.wall_seconds)
    try:
        exit_ = launch.backend.run(spec, _Either(cancel, died))
    except SandboxError as error:
        if isinstance(error, SandboxStartFailed):
            # What cannot start here cannot start for any trial: the run ends, and goes on when it is mended.
            raise EnvironmentUnusable(error.message, error.mend) from error
        if cancel.is_set():
            raise interrupted() from error
        if died.is_set():
            return gateway_died(error.stdout, error.stderr)
        return SessionEnd(f"sandbox_{error.cause}", str(error), error.stdout, error.stderr)
    if died.is_set():
        return gateway_died(exit_.stdout, exit_.stderr)
    return ended(exit_.code, phase, exit_.stdout, exit_.stderr)


class _Either(threading.Event):
    """Set when either of two events is; backends wait on it like on any event."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(e.is_set() for e in self._events)
