"""Writers in processes of their own, that can be stopped in the middle of a write, and killed there."""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import lab
from lab.errors import EnvironmentUnusable, SystemFailed
from lab.suites.integrity.cases import TOLD
from lab.suites.integrity.stores import KINDS, StoreKind

_SECONDS = 60.0
"""How long an answer is waited for; the slowest honest one takes a second."""

_PAGES = 4
"""Pages that SQLite keeps in memory: a held transaction has then spilled most of what it wrote into its files."""


class Writer:
    """A process that has a store open. Made by ``Writers.start`` only."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_SECONDS)
        self._connection, self._answers = connection, connection.makefile("rb")
        self._pid = int(self._heard()["pid"])

    def open(self, kind: StoreKind, place: Path, name: str) -> None:
        """Opens a store."""
        self._ask(open=[kind.name, str(place), name])

    def add(self, texts: Sequence[str]) -> str:
        """Writes texts; returns what the store told, empty when they are acknowledged."""
        return str(self._ask(add=list(texts)).get("told", ""))

    def send(self, texts: Sequence[str]) -> None:
        """Begins to write texts and does not wait; ``done`` does."""
        self._say(add=list(texts))

    def hold(self, texts: Sequence[str]) -> None:
        """Writes texts up to the moment before they are committed, and stays there."""
        if "held" not in self._ask(hold=list(texts)):
            raise SystemFailed("a writer did not stop in mid-write", "run the suite again; if it stays, report it")

    def release(self) -> None:
        """Lets a held writer go on; ``done`` waits for it."""
        self._say(go=True)

    def done(self) -> str:
        """Waits for a write that was sent or released; returns what the store told."""
        return str(self._heard().get("told", ""))

    def checkpoint(self) -> None:
        """Brings everything of a write-ahead log into its database."""
        self._ask(checkpoint=True)

    def kill(self) -> None:
        """Ends the process by SIGKILL, wherever it is, and waits until it is gone."""
        os.kill(self._pid, signal.SIGKILL)
        with suppress(OSError):
            self._answers.read()
        self.close()

    def close(self) -> None:
        """Lets the process end by itself, and waits for that."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._answers.read()
        self._answers.close()
        self._connection.close()

    def _ask(self, **what: object) -> dict[str, Any]:
        self._say(**what)
        return self._heard()

    def _say(self, **what: object) -> None:
        self._connection.sendall(json.dumps(what).encode() + b"\n")

    def _heard(self) -> dict[str, Any]:
        try:
            line = self._answers.readline()
        except OSError as error:
            raise SystemFailed(
                f"a writer of the suite does not answer: {error}", "run it on a freer machine"
            ) from error
        if not line:
            raise SystemFailed("a writer of the suite has ended", "run the suite again; if it stays, report it")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Writers:
    """The process that writers are forked from: what they need is imported once. A context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lab-writers-")
        self._path = str(Path(self._folder.name) / "s")
        paths = [str(Path(lab.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lab.suites.integrity.writers", self._path],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the lab's to handle
        )
        if self._process.stdout is None or not self._process.stdout.readline():
            self.close()
            raise EnvironmentUnusable("the writers of the suite could not be started", "see the error above")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, kind: StoreKind, place: Path, name: str = "one") -> Writer:
        """A new process that has a store open.

        Args:
            kind: Which store.
            place: The folder that is the store's own.
            name: Name of the writer, which is that of its log.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._path)
        writer = Writer(connection)
        writer.open(kind, place, name)
        return writer

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._folder.cleanup()


class _Holding:
    """Stops this process at its next commit, or at the next sync of a file that it writes, once it is armed."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.armed = False
        self._stop = stop
        self._connect, self._fsync = sqlite3.connect, os.fsync
        # The process is the suite's own and ends with the case: the stores are held by what they call, not changed.
        sqlite3.connect = self._connected  # type: ignore[assignment]
        os.fsync = self._synced  # type: ignore[assignment]

    def _connected(self, *arguments: Any, **options: Any) -> sqlite3.Connection:  # as of ``sqlite3.connect``
        connection: sqlite3.Connection = self._connect(*arguments, **options)
        connection.execute(f"PRAGMA cache_size = {_PAGES}")
        connection.set_trace_callback(self._seen)
        return connection

    def _seen(self, statement: str) -> None:
        if statement.strip().upper() == "COMMIT":
            self._point()

    def _synced(self, descriptor: Any) -> None:
        self._point()
        self._fsync(descriptor)

    def _point(self) -> None:
        if self.armed:
            self.armed = False
            self._stop()


class _Serving(socketserver.StreamRequestHandler):
    """One writer, in a process of its own."""

    def handle(self) -> None:
        self._say(pid=os.getpid())
        holding = _Holding(self._stopped)
        handle, path = None, Path()
        for line in self.rfile:
            asked = json.loads(line)
            if "open" in asked:
                name, place, writer = asked["open"]
                handle, path = KINDS[name].open(Path(place), writer), Path(place) / KINDS[name].file
                self._say()
            elif "checkpoint" in asked:
                with closing(sqlite3.connect(path)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._say()
            elif handle is not None:
                holding.armed = "hold" in asked
                self._say(told=_told(partial(handle.add, asked.get("hold") or asked.get("add"))))
        if handle is not None:
            handle.close()

    def _stopped(self) -> None:
        self._say(held=True)
        self.rfile.readline()

    def _say(self, **what: object) -> None:
        self.wfile.write(json.dumps(what).encode() + b"\n")


def _told(act: Callable[[], None]) -> str:
    try:
        act()
    except TOLD as error:
        return str(error) or type(error).__name__
    return ""


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks a process for each writer."""


def main(path: str) -> None:
    """Serves writers until it is ended."""
    with _Server(path, _Serving) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main(sys.argv[1])
