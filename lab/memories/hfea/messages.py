"""Reads the session logs of an agent; what is torn or damaged is told and kept, and costs no other message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pydantic import AwareDatetime, Field, ValidationError, field_validator

from lab.errors import InputError
from lab.records import Record, digest, first_fault
from lab.text import printable

SHORT_DIGITS = 12
"""Digits of the provenance marks in archives that were written before marks were whole digests."""
FIRST_YEAR, LAST_YEAR = 1900, 9000
MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line beyond which it is taken for damaged."""

_BOM = b"\xef\xbb\xbf"
_HALF = re.compile("[\ud800-\udfff]")


class Message(Record):
    """One message of a session, as a line of a log holds it.

    Attributes:
        id: Unique in its session.
        session: The session.
        role: ``user``, ``assistant``, ``tool`` or what else the agent writes.
        author: Who wrote or said it.
        text: What was said, to the character.
        time: When, to the microsecond; in a log, a time without a zone is taken as UTC.
    """

    id: str = Field(min_length=1, max_length=200)
    session: str = Field(min_length=1, max_length=200)
    role: str = Field(min_length=1, max_length=50)
    author: str = Field(max_length=200)
    text: str
    time: AwareDatetime

    @field_validator("text")
    @classmethod
    def _whole(cls, value: str) -> str:
        # JSON can escape what no UTF-8 holds; here it costs its line, later it would cost the run. Fields with a
        # limit of length are refused by Pydantic, which cannot count it.
        if _HALF.search(value):
            raise ValueError("holds half a character (a lone surrogate)")
        return value

    @field_validator("time", mode="before")
    @classmethod
    def _zoned(cls, value: object) -> object:
        try:
            time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            raise ValueError("is no ISO 8601 time") from None
        # Outside of these years the change to another zone can leave the calendar.
        if not FIRST_YEAR <= time.year <= LAST_YEAR:
            raise ValueError(f"is not of the years {FIRST_YEAR} to {LAST_YEAR}")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time

    @cached_property
    def mark(self) -> str:
        """Whole digest of all of it: a chronicle's line that was changed no longer has the mark of its message.

        It tells messages apart. A part of it would not: two messages that share 12 digits are found in a minute.
        """
        parts = [self.id, self.session, self.role, self.author, self.text, self.time.astimezone(UTC).isoformat()]
        return digest(parts)

    @property
    def marks(self) -> tuple[str, str]:
        """The mark, and the short form of it that an older archive has in its place."""
        return self.mark, self.mark[:SHORT_DIGITS]


@dataclass(frozen=True)
class Damage:
    """A part of a log that is no message.

    Attributes:
        file: Name of the file.
        line: Line, from 1; 0 for the whole file.
        fault: What is wrong.
        raw: The bytes as they stand there; empty where they could not be read.
    """

    file: str
    line: int
    fault: str
    raw: bytes = b""

    def __str__(self) -> str:
        return f"{printable(self.file)}:{self.line}: {printable(self.fault)}"


@dataclass(frozen=True)
class Logs:
    """What the logs of a folder hold.

    Attributes:
        messages: All messages that can be read, each once.
        damages: What is no message, or not for certain the one that was written.
    """

    messages: tuple[Message, ...]
    damages: tuple[Damage, ...]


def read_logs(folder: Path) -> Logs:
    """Reads all ``*.jsonl`` files of a folder, in the order of their names.

    A message that is there twice counts once. Two different messages of one session with the same id are both kept and
    told: which of them was written last is not known, and their marks tell them apart.

    Raises:
        InputError: There is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"no folder of session logs at {printable(str(folder))}", "give the folder with *.jsonl files")
    messages: dict[str, Message] = {}
    marks: dict[tuple[str, str], str] = {}
    damages: list[Damage] = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, found in _lines(path):
            if isinstance(found, Damage):
                damages.append(found)
                continue
            first = marks.setdefault((found.session, found.id), found.mark)
            if first != found.mark and found.mark not in messages:
                what = f"message {found.id!r} of session {found.session!r} is there with other content"
                damages.append(Damage(path.name, number, what))
            messages.setdefault(found.mark, found)
    return Logs(tuple(messages.values()), tuple(damages))


def _lines(path: Path) -> Iterator[tuple[int, Message | Damage]]:
    if path.is_symlink() or not path.is_file():
        yield 0, Damage(path.name, 0, "is no regular file")
        return
    try:
        raw = path.read_bytes()
    except OSError as error:
        yield 0, Damage(path.name, 0, f"cannot be read: {error.strerror}")
        return
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.removeprefix(_BOM).strip():
            yield number, _message(path.name, number, line.rstrip(b"\r"), torn=number == len(lines))


def _message(file: str, number: int, line: bytes, *, torn: bool) -> Message | Damage:
    # A last line without its end is a write that was cut off, unless it happens to be whole.
    prefix = "torn, the file ends in the middle of it: " if torn else ""
    try:
        if len(line) > MAX_LINE:
            return Damage(file, number, f"longer than {MAX_LINE // 1024**2} MiB", line)
        # A mark stands before a later line where files were joined.
        value = json.loads(line.removeprefix(_BOM).decode())
        return Message.model_validate(value)
    except UnicodeDecodeError:
        fault = "not UTF-8"
    except ValidationError as error:
        fault = first_fault(error)
    except (ValueError, RecursionError) as error:
        fault = f"not valid JSON: {error}"
    return Damage(file, number, prefix + fault, line)


def in_order(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages by session, sessions by their first message, and within a session by time, then id."""
    first: dict[str, datetime] = {}
    for message in messages:
        first[message.session] = min(message.time, first.get(message.session, message.time))
    return tuple(sorted(messages, key=lambda m: (first[m.session], m.session, m.time, m.id, m.mark)))
