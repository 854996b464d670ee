"""Takes streams apart: into the events of an event stream, byte for byte, and into lines."""

from __future__ import annotations

import re

from lab.gateway.answers import FailureCause
from lab.gateway.upstream.wire import Unanswered
from lab.text import printable

# A blank line ends an event (WHATWG HTML, server-sent events); the line ends of real servers are \n or \r\n.
EVENT_END = re.compile(rb"\n\n|\r\n\r\n|\n\r\n")
LINE_END = re.compile(rb"\r?\n")
_LONGEST_END = 4
_SHOWN = 400
_FIELDS = (b"data", b"event", b"id", b"retry", b"")


class Splitter:
    """Splits bytes that come in any pieces.

    Args:
        end: What ends a part; it stays with the part.

    Attributes:
        rest: What has come of the part that has not ended.
    """

    def __init__(self, end: re.Pattern[bytes]) -> None:
        self._end = end
        self.rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Takes bytes and gives the parts that they end."""
        searched = max(len(self.rest) - _LONGEST_END, 0)
        self.rest += piece
        parts, start = [], 0
        while found := self._end.search(self.rest, max(start, searched)):
            parts.append(bytes(self.rest[start : found.end()]))
            start = found.end()
        del self.rest[:start]
        return parts


def data_of(event: bytes) -> str | None:
    """The data of an event; None where it has none, as one that only keeps a connection alive.

    Raises:
        Unanswered: It is no event.
    """
    data = []
    for line in LINE_END.split(event):
        name, colon, value = line.partition(b":")
        if line and (not colon or name not in _FIELDS):
            # llama.cpp has sent errors as a field of their own.
            kind = "error" if name == b"error" else "no event of a stream"
            shown = printable(line[:_SHOWN].decode("utf-8", "replace"))
            cause = FailureCause.HTTP_ERROR if name == b"error" else FailureCause.GARBAGE
            raise Unanswered(cause, f"the answer holds {kind}: {shown}")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    if not data:
        return None
    try:
        return b"\n".join(data).decode()
    except UnicodeDecodeError as error:
        raise Unanswered(FailureCause.GARBAGE, "an event of the stream is not UTF-8") from error
