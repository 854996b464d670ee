"""One program in a sandbox that answers the lab: a JSON line in, a JSON line out, over a socket in a shared directory.

The sandbox has no network. Whatever ends it or makes its answers doubtful (its death, the time limit, an answer that is
none, one that is too long) ends the worker as a whole, because after that question and answer may be out of step.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.agents.hermes.adapter import EXCHANGE_DIRECTORY
from lab.errors import EnvironmentUnusable, LabError, SandboxError, SystemFailed
from lab.isolation.base import SANDBOX_HOME, Backend, Limits, Mount, PreparedEnvironment, SandboxSpec, sandbox_ids
from lab.isolation.work import make_work_directory, remove_tree
from lab.text import printable

START_SECONDS = 120.0
ASK_SECONDS = 60.0
"""Time for one answer; the slowest honest one measured took a second."""

ANSWER_BYTES = 16 << 20
"""Longest answer."""

LIMITS = Limits(memory_bytes=4 << 30, wall_seconds=86_400.0, file_bytes=4 << 30)
"""Bounds of a worker: those of every sandbox, but room for a database of half a million facts and time for a day."""

_PROGRAM, _SOCKET = "worker.py", "worker.sock"
_CHUNK = 1 << 16
_LOOK_SECONDS = 0.1
_END_SECONDS = 5.0
_PATIENT_SECONDS = 10.0


@dataclass(frozen=True)
class WorkerProgram:
    """What to run in which sandbox.

    Attributes:
        name: For messages.
        backend: Isolation.
        environment: The prepared build.
        interpreter: Python inside.
        source: Text of the program; it gets the path of the socket as its one argument, and sends a line for a line.
        variables: Its whole environment.
        mounts: What it sees beside its home and the exchange directory.
        limits: Bounds of the sandbox.
    """

    name: str
    backend: Backend
    environment: PreparedEnvironment
    interpreter: str
    source: bytes
    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: Limits = LIMITS


class SandboxedWorker:
    """A running worker; one request at a time.

    Args:
        program: What to run.

    Raises:
        EnvironmentUnusable: It did not come up.
    """

    def __init__(self, program: WorkerProgram) -> None:
        self._program = program
        self._root = make_work_directory()
        self._home, self._io = self._root / "home", self._root / "io"
        self._stop = threading.Event()
        self._told = b""
        self._outcome = ""
        self._start_failed: LabError | None = None
        self._requests = 0
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name=program.name, daemon=True)
        try:
            self._connection = self._start()
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._connection is not None and self._thread.is_alive()

    def put(self, source: Path, name: str, instead_of: str) -> str:
        """Copies a file into the worker's home.

        Args:
            source: The file.
            name: Name inside.
            instead_of: All files of the home whose names begin so are removed first.

        Returns:
            Its path inside.

        Raises:
            SystemFailed: The worker has ended.
            EnvironmentUnusable: It cannot be written.
        """
        if not self.alive:
            raise self._gone()
        target = self._home / name
        try:
            for old in self._home.glob(f"{instead_of}*"):
                old.unlink()
            # The program owns its home and may put a link there: the copy is a new file, or none.
            with source.open("rb") as read, target.open("xb") as written:
                shutil.copyfileobj(read, written)
                _give(written.fileno(), 0o600)
        except OSError as error:
            raise EnvironmentUnusable(
                f"{source.name} cannot be copied into the sandbox: {error.strerror}", f"free space under {self._home}"
            ) from error
        return f"{SANDBOX_HOME}/{name}"

    def ask(self, operation: str, *, seconds: float = ASK_SECONDS, **arguments: Any) -> dict[str, Any]:
        """Sends one request and waits for its answer.

        Args:
            operation: What to do.
            seconds: Time for the answer.
            arguments: Of the operation; anything that JSON has.

        Raises:
            SystemFailed: No answer, no proper one, or one that tells of an exception inside (``SystemRefused``).
        """
        if self._connection is None:
            raise self._gone()
        self._requests += 1
        request = {"id": self._requests, "op": operation, **arguments}
        deadline = time.monotonic() + seconds
        try:
            self._connection.settimeout(seconds)
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            line = self._line(deadline)
        except TimeoutError:
            raise self._failed(f"no answer within {seconds:g} s") from None
        except OSError:
            raise self._failed("it ended", _PATIENT_SECONDS) from None
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.pop("id", None) != self._requests:
            raise self._failed("its answer cannot be read")
        if "error" in answer:
            raise SystemRefused(self._program.name, str(answer["error"]), str(answer.get("text", "")))
        return answer

    def close(self) -> None:
        """Ends the sandbox, waits for that, and removes its directories; may be called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        else:
            self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_END_SECONDS)
            self._stop.set()
            self._thread.join()
        remove_tree(self._root)

    def _start(self) -> socket.socket:
        for path in (self._home, self._io):
            path.mkdir()
            _give(path, 0o700)
        program = self._io / _PROGRAM
        program.write_bytes(self._program.source)
        _give(program, 0o400)
        with contextlib.closing(self._listen()) as listener:
            self._thread.start()
            deadline = time.monotonic() + START_SECONDS
            listener.settimeout(_LOOK_SECONDS)
            while time.monotonic() < deadline and self._thread.is_alive():
                with contextlib.suppress(TimeoutError):
                    return listener.accept()[0]
        self._stop.set()
        self._thread.join()
        if self._start_failed is not None:
            raise EnvironmentUnusable(self._start_failed.message, self._start_failed.mend)
        why = self._cause() or f"nothing was heard of it within {START_SECONDS:g} s"
        raise EnvironmentUnusable(f"{self._program.name} did not start: {why}", "lab agent check")

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # By way of the directory, because the kernel takes no more than 107 bytes of path.
        place = os.open(self._io, os.O_PATH | os.O_DIRECTORY)
        try:
            listener.bind(f"/proc/self/fd/{place}/{_SOCKET}")
            _give(self._io / _SOCKET, 0o600)
            listener.listen(1)
        except OSError:
            listener.close()
            raise
        finally:
            os.close(place)
        return listener

    def _run(self) -> None:
        given = self._program
        inside = f"{EXCHANGE_DIRECTORY}/"
        spec = SandboxSpec(
            given.environment,
            (given.interpreter, inside + _PROGRAM, inside + _SOCKET),
            env=given.variables,
            mounts=(
                Mount(self._home, SANDBOX_HOME, writable=True),
                Mount(self._io, EXCHANGE_DIRECTORY, writable=True),
                *given.mounts,
            ),
            limits=given.limits,
            labels={"purpose": "retrieval"},
        )
        try:
            done = given.backend.run(spec, self._stop)
            self._told, self._outcome = done.stderr, f"exit code {done.code}"
        except SandboxError as error:
            self._told, self._outcome = error.stderr, "" if error.cause == "cancelled" else error.message
            self._start_failed = error if error.cause == "start" else None
        except LabError as error:
            self._start_failed = error

    def _line(self, deadline: float) -> bytes:
        assert self._connection is not None  # noqa: S101 - asked for above
        taken = bytearray()
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            data = self._connection.recv(_CHUNK)
            if not data:
                raise self._failed("it ended", _PATIENT_SECONDS)
            taken += data
            if len(taken) > ANSWER_BYTES:
                raise self._failed(f"its answer is longer than {ANSWER_BYTES} bytes")
            if b"\n" in data:
                return bytes(taken)

    def _failed(self, what: str, patience: float = 0.0) -> SystemFailed:
        """Ends the worker and says why it could not answer; ``patience``: seconds for a dying sandbox to tell why."""
        if patience:
            self._thread.join(patience)
        self._stop.set()
        self.close()
        cause = self._cause()
        return SystemFailed(f"{self._program.name}: {what}{f' ({cause})' if cause else ''}")

    def _gone(self) -> SystemFailed:
        cause = self._cause()
        return SystemFailed(f"{self._program.name} is not running{f' ({cause})' if cause else ''}", "open it again")

    def _cause(self) -> str:
        """How the sandbox ended, and the last line that it wrote; empty while it runs or where it was told to end."""
        lines = self._told.decode(errors="replace").strip().splitlines()
        return ": ".join(part for part in (self._outcome, printable(lines[-1]) if lines else "") if part)


class SystemRefused(SystemFailed):
    """The program inside met an exception of its own; it goes on answering.

    Attributes:
        kind: Name of the exception's class.
        text: What it said.
    """

    def __init__(self, name: str, kind: str, text: str) -> None:
        self.kind, self.text = printable(kind, 80), printable(text)
        super().__init__(f"{name}: {self.kind}: {self.text}")


def _give(place: Path | int, mode: int) -> None:
    """Makes a path or an open file the sandbox user's, where the lab may; otherwise both are the same user."""
    os.chmod(place, mode)  # noqa: PTH101 - a descriptor has no path
    if os.geteuid() == 0:
        os.chown(place, *sandbox_ids())
