"""One warm sandbox: started with its slot, taught what to import, asked for sessions, thrown away on any doubt."""

from __future__ import annotations

import threading
from pathlib import Path

from lab.contamination.sessions.base import (
    Launch,
    SessionEnd,
    ended_in_shell_terms,
    gateway_died,
    interrupted,
)
from lab.contamination.sessions.channel import Channel, Door, Ending
from lab.contamination.sessions.imports import Contents, ImportsTooMuch, Lesson, Trace
from lab.contamination.sessions.rehearsal import rehearsal, seed
from lab.contamination.sessions.slot import Slot
from lab.errors import EnvironmentUnusable, LabError, SandboxError, SandboxOutOfMemory, SandboxStartFailed
from lab.isolation.base import Exit

START_SECONDS = 120.0
"""Time to start, and to import the agent."""

LIFETIME_SECONDS = 86_400.0
SESSIONS = 500
"""Sessions after which a sandbox is replaced whatever its state."""

_END_SECONDS = 10.0
_VMSTAT = Path("/proc/vmstat")


class WarmStartFailed(Exception):
    """The sandbox did not come up; a matter of this trial, not of the build.

    Attributes:
        end: The end of the session that was to be run in it.
    """

    def __init__(self, end: SessionEnd) -> None:
        super().__init__(end.detail)
        self.end = end


class WarmSandbox:
    """A sandbox whose first process has imported the agent.

    Attributes:
        key: ``Launch.key`` of what it was made for.
        slot: Its directories.
        lesson: What it was told to import.
        trace: What that did to a home.
        fit: False when it must not be used again.
    """

    def __init__(self, launch: Launch, lesson: Lesson | None, cancel: threading.Event) -> None:
        """Starts it.

        Args:
            launch: What it is for.
            lesson: What to import; None where that is to be found out first.
            cancel: Ends the start.

        Raises:
            WarmStartFailed: It did not come up.
            EnvironmentUnusable: No sandbox can be started here, or the build cannot be forked.
            SandboxCancelled: ``cancel`` was set.
        """
        self.key = launch.key
        self.fit = True
        self._launch = launch
        self._cancel = cancel
        self._stop = threading.Event()
        self._sessions = 0
        self._outcome: Exit | LabError | None = None
        self._channel: Channel | None = None
        self.slot = Slot()
        self._thread = threading.Thread(target=self._run, name="warm-sandbox", daemon=True)
        try:
            self._channel = self._open()
            self.lesson = self._learn() if lesson is None else lesson
            self.trace = self._preload()
        except BaseException:
            self.remove()
            raise

    def run(self, phase: str, cancel: threading.Event, died: threading.Event) -> SessionEnd:
        """See ``Place.run``."""
        limits = self._launch.limits
        kills = memory_kills()
        self._sessions += 1
        assert self._channel is not None  # noqa: S101 - made before anything else
        heard = self._channel.ask(
            {"op": "run"},
            seconds=limits.wall_seconds,
            stop=lambda: cancel.is_set() or died.is_set(),
            output_bytes=limits.output_bytes,
        )
        output = (heard.stdout, heard.stderr)
        # The count is that of the whole machine: where it stood still, nothing of this sandbox was killed either.
        suspect = kills is None or memory_kills() != kills
        well = heard.ending is Ending.ANSWERED and not suspect
        if not well or heard.answer.get("unclean") != "":
            self.fit = False
        if not well:
            # Whatever the reason, the sandbox ends here, by itself, for then its end says whether memory ran out.
            self.close()
        if cancel.is_set():
            raise interrupted()
        if died.is_set():
            return gateway_died(*output)
        if isinstance(self._outcome, SandboxOutOfMemory):
            return SessionEnd("sandbox_oom", str(self._outcome), *output)
        if heard.ending is Ending.TIMEOUT:
            told = f"the program ran longer than {limits.wall_seconds:g} s and was killed"
            return SessionEnd("sandbox_timeout", told, *output)
        if heard.ending is Ending.FLOODED:
            told = f"the program wrote more than {limits.output_bytes} bytes of output"
            return SessionEnd("sandbox_output_limit", told, *output)
        if heard.ending is Ending.HUNG_UP:
            return SessionEnd(*self._cause_of_end(), *output)
        return ended_in_shell_terms(int(heard.answer["code"]), phase, *output)

    @property
    def spent(self) -> bool:
        """True when it is to be replaced after this trial."""
        return not self.fit or self._sessions >= SESSIONS

    def close(self, abruptly: bool = False) -> None:
        """Ends the sandbox and waits for that.

        Args:
            abruptly: Kill it rather than wait for the zygote to leave by itself.
        """
        self.fit = False
        if abruptly:
            self._stop.set()
        if self._channel is not None:
            self._channel.close()
        else:
            self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_END_SECONDS)
            self._stop.set()
            self._thread.join()

    def remove(self) -> None:
        """Ends the sandbox and removes its directories."""
        self.close()
        self.slot.remove()

    def _run(self) -> None:
        launch = self._launch
        spec = launch.spec(
            launch.agent.warm_command(),
            self.slot.home,
            self.slot.io,
            {"start": "warm"},
            LIFETIME_SECONDS,
        )
        try:
            self._outcome = launch.backend.run(spec, self._stop)
        except LabError as error:
            self._outcome = error

    def _open(self) -> Channel:
        door = Door(self.slot.io)
        try:
            self._thread.start()
            channel = door.admit(START_SECONDS, lambda: self._cancel.is_set() or not self._thread.is_alive())
        finally:
            door.close()
        if channel is None:
            raise self._failed()
        return channel

    def _learn(self) -> Lesson:
        assert self._channel is not None  # noqa: S101 - made before anything else
        with rehearsal(self._launch, self.slot):
            heard = self._channel.ask(
                {"op": "learn"},
                seconds=max(START_SECONDS, self._launch.limits.wall_seconds),
                stop=self._cancel.is_set,
                output_bytes=self._launch.limits.output_bytes,
            )
        if heard.ending is not Ending.ANSWERED:
            raise self._failed()
        if not self.slot.clear():
            raise EnvironmentUnusable("the agent marks its home so that it cannot be emptied", "lab run --start cold")
        # Where the rehearsal failed, every session will meet the same failure by itself.
        if heard.answer["code"] != 0:
            return Lesson()
        touched = {path: tuple(parts) for path, parts in heard.answer["touched"].items()}
        return Lesson(tuple(heard.answer["modules"]), touched)

    def _preload(self) -> Trace:
        assert self._channel is not None  # noqa: S101 - made before anything else
        seed(self._launch, self.slot)
        before = Contents.of(self.slot.home)
        command = {"op": "preload", "modules": list(self.lesson.modules)}
        heard = self._channel.ask(command, seconds=START_SECONDS, stop=self._cancel.is_set)
        if heard.ending is not Ending.ANSWERED:
            raise self._failed()
        unfit = str(heard.answer["unfit"])
        try:
            trace = Trace.of(self.slot.home, before, self.lesson.touched)
        except ImportsTooMuch as error:
            unfit = unfit or str(error)
        if not self.slot.clear():
            unfit = unfit or "its home cannot be emptied"
        if unfit:
            raise EnvironmentUnusable(f"this build cannot be started warm: {unfit}"[:300], "lab run --start cold")
        return trace

    def _failed(self) -> Exception:
        """Why the sandbox did not come up."""
        if self._cancel.is_set():
            return interrupted()
        self.close(abruptly=True)
        if isinstance(self._outcome, SandboxStartFailed):
            return EnvironmentUnusable(self._outcome.message, self._outcome.mend)
        return WarmStartFailed(SessionEnd(*self._cause_of_end()))

    def _cause_of_end(self) -> tuple[str, str]:
        if isinstance(self._outcome, SandboxError) and self._outcome.cause != "cancelled":
            return f"sandbox_{self._outcome.cause}", str(self._outcome)
        return "zygote_died", "the process that forks the sessions ended"


def memory_kills() -> int | None:
    """Processes of this machine that the kernel has killed for memory; None where it does not count them."""
    try:
        counts = dict(line.split() for line in _VMSTAT.read_text().splitlines())
    except (OSError, ValueError):
        return None
    return int(counts["oom_kill"]) if "oom_kill" in counts else None
