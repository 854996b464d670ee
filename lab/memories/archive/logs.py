"""Session logs: JSONL files with one message a line, written by others and read with distrust."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from pydantic import ConfigDict, Field, ValidationError

from lab.memories.archive.points import document_id, point_id
from lab.records import Record, digest, first_fault
from lab.runs.folder import write_atomic
from lab.text import printable

MAX_LINE = 1 << 20
"""Longest line in bytes that is read; a longer one is no message but a file that lost its line breaks."""


class Reason(StrEnum):
    """Why something of a log is not in the index."""

    NOT_UTF8 = "the line is not UTF-8"
    NO_MESSAGE = "the line is no message"
    TOO_LONG = "the line is too long"
    UNFINISHED = "the last line is not finished"
    TWICE = "an earlier line has the same id"
    NO_FILE = "not a regular file"
    UNREADABLE = "the file cannot be read"
    NO_NAME = "the file's name is not UTF-8"


class Message(Record):
    """One message of a session.

    Attributes:
        id: Unique in its session.
        session: Id of the session.
        role: What the speaker was to the model: ``user``, ``assistant``, ``tool``, …
        author: Who spoke.
        text: What was said.
        time: When, ISO 8601 in UTC; empty where it is not known.
    """

    # Logs are other programs': what they note beside this is theirs.
    model_config = ConfigDict(extra="ignore", strict=True)

    id: str = Field(min_length=1)
    session: str = Field(min_length=1)
    role: str
    author: str
    text: str
    time: str = ""

    @property
    def point(self) -> str:
        """Its point id."""
        return point_id(document_id(self.session, self.id))

    def digest(self) -> str:
        """Hex SHA-256 of all that it says."""
        return digest(self.model_dump())


@dataclass(frozen=True)
class Line:
    """One line of a log: a message, or why it is none.

    Attributes:
        offset: Its first byte in the file.
        length: Its bytes, the line break among them.
        message: What it says; None where it says nothing.
        reason: Why it is no message.
        detail: What exactly is wrong, fit for a terminal.
    """

    offset: int
    length: int
    message: Message | None = None
    reason: Reason | None = None
    detail: str = ""


def read_lines(stream: BinaryIO, told: Callable[[bytes], object]) -> Iterator[Line]:
    """Reads a log from where the stream stands; blank lines are left out.

    A last line without a line break counts when it is a message: no part of a JSON object is one, so it is whole.
    Otherwise a writer is still at it, and it is ``UNFINISHED``. A byte-order mark before a line is not part of it.

    Args:
        stream: The file, at its beginning.
        told: Gets every byte that was read, in order.

    Raises:
        OSError: It cannot be read.
    """
    offset = 0
    while raw := stream.readline(MAX_LINE + 1):
        told(raw)
        length, tail = len(raw), raw
        while length > MAX_LINE and not tail.endswith(b"\n"):
            if not (tail := stream.readline(MAX_LINE)):
                break
            told(tail)
            length += len(tail)
        if raw.strip():
            yield parse_line(raw, offset, length)
        offset += length


def parse_line(raw: bytes, offset: int, length: int) -> Line:
    """Reads one line.

    Args:
        raw: Its bytes, the line break among them; of one that is too long, its beginning.
        offset: Its first byte in the file.
        length: All its bytes.
    """
    if length > MAX_LINE:
        return Line(offset, length, reason=Reason.TOO_LONG, detail=f"{length} bytes, {MAX_LINE} are read")
    body = raw.removeprefix(codecs.BOM_UTF8)
    unfinished = not raw.endswith(b"\n")
    try:
        return Line(offset, length, Message.model_validate_json(body.decode()))
    except UnicodeDecodeError as error:
        reason, detail = Reason.NOT_UTF8, f"byte {offset + len(raw) - len(body) + error.start}"
    except ValidationError as error:
        reason, detail = Reason.NO_MESSAGE, printable(first_fault(error))
    return Line(offset, length, reason=Reason.UNFINISHED if unfinished else reason, detail=detail)


def write_log(path: Path, messages: Iterable[Message]) -> None:
    """Writes a session log in one step.

    Raises:
        OSError: It cannot be written.
    """
    write_atomic(path, b"".join(message.model_dump_json().encode() + b"\n" for message in messages))
