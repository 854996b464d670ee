"""The warm start: a pool of sandboxes in which the agent is imported already, one for each trial under way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lab.contamination.sessions.base import Launch, SessionEnd, Start
from lab.contamination.sessions.cold import run_cold
from lab.contamination.sessions.imports import Lesson
from lab.contamination.sessions.slot import Slot
from lab.contamination.sessions.warm_sandbox import WarmSandbox, WarmStartFailed
from lab.isolation.work import remove_tree


class WarmSessions:
    """Forks every session from an imported agent.

    A trial has a sandbox for itself, for all its sessions. Afterwards the sandbox is as it was, or it is thrown away.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._learning = threading.Lock()
        self._idle: list[WarmSandbox] = []
        self._lessons: dict[str, Lesson] = {}

    @property
    def start(self) -> Start:
        """Always warm."""
        return Start.WARM

    @contextmanager
    def place(self, launch: Launch, cancel: threading.Event) -> Iterator[WarmPlace]:
        """See ``Sessions.place``."""
        sandbox: WarmSandbox | None = None
        try:
            sandbox = self._take(launch.key) or self._make(launch, cancel)
        except WarmStartFailed as failure:
            place = WarmPlace(launch, Slot(), fault=failure.end)
        else:
            place = WarmPlace(launch, sandbox.slot, sandbox)
        try:
            yield place
        finally:
            if sandbox is None:
                place.slot.remove()
            else:
                self._give_back(sandbox)

    def close(self) -> None:
        """Ends every sandbox that is not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for sandbox in idle:
            sandbox.remove()

    def _take(self, key: str) -> WarmSandbox | None:
        """An idle sandbox of this kind; one of another kind makes room, as there are never more than trials at once."""
        other = None
        with self._lock:
            for sandbox in self._idle:
                if sandbox.key == key:
                    self._idle.remove(sandbox)
                    return sandbox
            if self._idle:
                other = self._idle.pop(0)
        if other is not None:
            other.remove()
        return None

    def _make(self, launch: Launch, cancel: threading.Event) -> WarmSandbox:
        """A new sandbox; the first of a kind learns what to import, for all."""
        if (known := self._lessons.get(launch.key)) is None:
            with self._learning:
                if (known := self._lessons.get(launch.key)) is None:
                    sandbox = WarmSandbox(launch, None, cancel)
                    if sandbox.lesson.modules:
                        self._lessons[launch.key] = sandbox.lesson
                    return sandbox
        return WarmSandbox(launch, known, cancel)

    def _give_back(self, sandbox: WarmSandbox) -> None:
        if not sandbox.spent and sandbox.slot.clear():
            with self._lock:
                self._idle.append(sandbox)
        else:
            sandbox.remove()


class WarmPlace:
    """A warm sandbox for the time of one trial.

    Args:
        launch: What the trial's sandboxes are made from.
        slot: The directories.
        sandbox: The sandbox; None where none came up.
        fault: Why none came up: the end of every session here.
    """

    def __init__(
        self, launch: Launch, slot: Slot, sandbox: WarmSandbox | None = None, fault: SessionEnd | None = None
    ) -> None:
        self._launch, self._sandbox, self._fault = launch, sandbox, fault
        self.slot = slot
        self.home, self.io = slot.home, slot.io
        self._virgin = True

    def fresh_io(self) -> None:
        """See ``Place.fresh_io``."""
        if not self.slot.clear_one(self.io) and self._sandbox is not None:
            self._sandbox.close()
            remove_tree(self.io)
            self.io.mkdir(mode=0o755)

    def run(self, phase: str, labels: Mapping[str, str], cancel: threading.Event, died: threading.Event) -> SessionEnd:
        """See ``Place.run``; the labels stay with sandboxes that are made for one session."""
        if self._fault is not None:
            return self._fault
        sandbox, virgin, self._virgin = self._sandbox, self._virgin, False
        if sandbox is not None and sandbox.fit:
            if virgin:
                sandbox.trace.lay(self.home)
            if sandbox.trace.holds_in(self.home):
                return sandbox.run(phase, cancel, died)
        # An earlier session of this trial left what only the end of a sandbox takes away, or the home is not the one
        # that the agent was imported over.
        return run_cold(self._launch, self, phase, labels, cancel, died)
