"""The lab's end of the connection to a zygote: commands with descriptors in, answers out, output read meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from lab.agents.hermes.adapter import CONTROL_NAME

_MESSAGE_BYTES = 1 << 20
_CHUNK = 1 << 16
_LOOK_SECONDS = 0.1
"""Events cannot be waited for together with descriptors, so they are looked at this often."""


class Ending(Enum):
    """Why waiting for a zygote came to an end."""

    ANSWERED = "answered"
    HUNG_UP = "hung_up"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    FLOODED = "flooded"


@dataclass(frozen=True)
class Heard:
    """What came back.

    Attributes:
        ending: Why the waiting ended.
        answer: The zygote's answer, where it gave one.
        stdout: What the session wrote to standard output.
        stderr: The same for standard error.
    """

    ending: Ending
    answer: Mapping[str, Any]
    stdout: bytes = b""
    stderr: bytes = b""


class Channel:
    """A connected zygote."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def ask(
        self,
        command: Mapping[str, Any],
        *,
        seconds: float,
        stop: Callable[[], bool],
        output_bytes: int = 0,
    ) -> Heard:
        """Sends a command and waits for the answer.

        Args:
            command: The command; one that runs a session is given two pipes for its output.
            seconds: Time to wait.
            stop: Asked now and then whether to wait no longer.
            output_bytes: Bound of both outputs together; 0 for a command without a session.
        """
        readers: list[int] = []
        writers: list[int] = []
        try:
            for _ in range(2 if output_bytes else 0):
                read_end, write_end = os.pipe()
                readers.append(read_end)
                writers.append(write_end)
            try:
                socket.send_fds(self._connection, [json.dumps(command).encode()], writers)
            except OSError:
                return Heard(Ending.HUNG_UP, {})
            finally:
                while writers:
                    os.close(writers.pop())
            return self._listen(readers, time.monotonic() + seconds, stop, output_bytes)
        finally:
            for descriptor in (*readers, *writers):
                os.close(descriptor)

    def close(self) -> None:
        """Hangs up, which ends the zygote."""
        self._connection.close()

    def _listen(self, readers: list[int], deadline: float, stop: Callable[[], bool], limit: int) -> Heard:
        taken = {descriptor: bytearray() for descriptor in readers}
        ending, answer = Ending.HUNG_UP, None
        with selectors.DefaultSelector() as selector:
            for source in (self._connection.fileno(), *readers):
                selector.register(source, selectors.EVENT_READ)
            # The zygote answers when the last process that held the outputs is gone; when it hangs up, so are they.
            while selector.get_map() and ending is not Ending.FLOODED:
                left = deadline - time.monotonic()
                if stop() or left <= 0:
                    ending = Ending.TIMEOUT if left <= 0 else Ending.STOPPED
                    break
                for key, _ in selector.select(min(left, _LOOK_SECONDS)):
                    if key.fd == self._connection.fileno():
                        selector.unregister(key.fd)
                        answer = self._answer()
                        ending = Ending.HUNG_UP if answer is None else Ending.ANSWERED
                        continue
                    data = os.read(key.fd, _CHUNK)
                    if not data:
                        selector.unregister(key.fd)
                    room = limit - sum(map(len, taken.values()))
                    taken[key.fd] += data[:room]
                    if len(data) > room:
                        ending = Ending.FLOODED
        out, err = (bytes(taken[one]) for one in readers) if readers else (b"", b"")
        return Heard(ending, answer or {}, out, err)

    def _answer(self) -> dict[str, Any] | None:
        with contextlib.suppress(OSError, ValueError):
            message = self._connection.recv(_MESSAGE_BYTES)
            answer = json.loads(message) if message else None
            return answer if isinstance(answer, dict) else None
        return None


class Door:
    """The socket at which a zygote announces itself; open until the first one has come.

    Args:
        directory: Exchange directory of the sandbox.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / CONTROL_NAME
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # By way of the directory, because the kernel takes no more than 107 bytes of path.
        place = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._listener.bind(f"/proc/self/fd/{place}/{CONTROL_NAME}")
            self._path.chmod(0o666)  # the sandbox user is another one; the directory is private to the slot
            self._listener.listen(1)
        except OSError:
            self._listener.close()
            raise
        finally:
            os.close(place)

    def admit(self, seconds: float, stop: Callable[[], bool]) -> Channel | None:
        """Waits for the zygote; None where it did not come in time, or ``stop`` said so."""
        deadline = time.monotonic() + seconds
        self._listener.settimeout(_LOOK_SECONDS)
        while time.monotonic() < deadline and not stop():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                connection.setblocking(True)
                return Channel(connection)
        return None

    def close(self) -> None:
        """Nobody else gets in, and the sandbox keeps no trace of the way."""
        self._listener.close()
        self._path.unlink(missing_ok=True)
