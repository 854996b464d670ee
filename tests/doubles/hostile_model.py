"""A model server that misbehaves on demand: real sockets, so that the client meets what it would meet in the field.

Each request is handled by the next of the given behaviours, the last of them again and again.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

USAGE = {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127}


@dataclass
class Wire:
    """The server's side of one connection.

    Attributes:
        connection: The socket.
        gone: Set when the server ends, so that nothing waits for longer.
    """

    connection: socket.socket
    gone: threading.Event

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def chunk(self, data: bytes) -> None:
        """One chunk of a chunked answer; an empty one ends it."""
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def reset(self) -> None:
        """Closes the connection as a killed process does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def hang(self) -> None:
        """Says nothing until the server ends."""
        self.gone.wait(30)


Behaviour = Callable[[Wire], None]


@dataclass
class HostileModel:
    """State of the server.

    Attributes:
        behaviours: What happens to the requests, one after the other.
        requests: Head and body of every request so far.
        url: Its address, with ``/v1``.
        at_once: Most requests that were under way at the same time.
    """

    behaviours: tuple[Behaviour, ...]
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    url: str = ""
    at_once: int = 0
    _under_way: int = 0
    _gone: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bodies(self) -> list[Any]:
        """The JSON of every request."""
        return [json.loads(body) for _, body in self.requests]

    def serve(self, connection: socket.socket) -> None:
        """Handles one connection, which holds one request."""
        with connection:
            request = _read_request(connection)
            with self._lock:
                behaviour = self.behaviours[min(len(self.requests), len(self.behaviours) - 1)]
                self.requests.append(request)
                self._under_way += 1
                self.at_once = max(self.at_once, self._under_way)
            try:
                behaviour(Wire(connection, self._gone))
            except OSError:
                pass  # the client has gone
            finally:
                with self._lock:
                    self._under_way -= 1


def _read_request(connection: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = data.partition(b"\r\n\r\n")
    size = int(next((line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), b"0"))
    while len(body) < size and (more := connection.recv(65536)):
        body += more
    return head.decode(), body


@contextmanager
def hostile_model(*behaviours: Behaviour) -> Iterator[HostileModel]:
    """Serves behaviours on a free port until the block ends."""
    model = HostileModel(behaviours)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=model.serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model._gone.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def dead_url() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def raw(data: bytes) -> Behaviour:
    """Sends bytes and closes."""
    return lambda wire: wire.send(data)


def answers(status: int, body: bytes | object, headers: str = "", content_type: str = "application/json") -> Behaviour:
    """Sends a whole HTTP answer; what is no bytes as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return raw(head.encode() + data)


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def streams(*pieces: bytes, ended: bool = True) -> Behaviour:
    """Sends a chunked answer; one that is not ended breaks off without its last chunk."""

    def behave(wire: Wire) -> None:
        wire.send(STREAM_HEAD)
        for piece in pieces:
            wire.chunk(piece)
        if ended:
            wire.chunk(b"")

    return behave


def event(data: object) -> bytes:
    """An event of a stream."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def delta(finish: str | None = None, **fields: object) -> bytes:
    """An event with a piece of a message."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


def call(index: int, arguments: str, name: str = "", identity: str = "") -> dict[str, object]:
    """A piece of a tool call."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function} | ({"id": identity, "type": "function"} if identity else {})


def message(content: str | None = "Hi.", **fields: object) -> dict[str, object]:
    """A whole answer of one JSON object."""
    said = {"role": "assistant", "content": content, **fields}
    reason = "tool_calls" if "tool_calls" in fields else "stop"
    choice = {"index": 0, "message": said, "finish_reason": reason}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE}


DONE = event("[DONE]")
USED = event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE})
GOOD = (delta(role="assistant", content="Hel"), delta(content="lo."), delta(finish="stop"), USED, DONE)
"""A stream as a good server sends it."""
