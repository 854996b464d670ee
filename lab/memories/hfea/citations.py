"""Citations of the archive: file, line, message and span, and the proof that they are there to the byte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from lab.errors import LabError
from lab.memories.hfea.archive import CHRONICLES, Archive
from lab.memories.hfea.chronicle import Line, quote, read_line, unquote
from lab.memories.hfea.evidence import Evidence
from lab.memories.hfea.index import Found

_FILE = re.compile(rf"{CHRONICLES}/(\d{{4}}-\d\d-\d\d)\.md")


@dataclass(frozen=True)
class Citation:
    """A span of one line of a chronicle.

    Attributes:
        file: The chronicle, relative to the archive.
        line: Line, from 1.
        message: Id of the message.
        session: Its session.
        mark: Digest of the message.
        author: Who wrote or said it.
        role: The author's role.
        time: When, ISO 8601.
        start: First byte of the span within the line.
        end: The byte after its last.
        quoted: The span as it stands there: a piece of a JSON string, all on one line.
    """

    file: str
    line: int
    message: str
    session: str
    mark: str
    author: str
    role: str
    time: str
    start: int
    end: int
    quoted: str

    @property
    def text(self) -> str:
        """What was said."""
        return unquote(self.quoted)

    def shown(self) -> str:
        """The citation as Markdown of one line: an attributed quotation, whatever was said."""
        who = f"{quote(self.author)} ({quote(self.role)}), {self.time}, message {quote(self.message)}"
        return f"> {who}, {self.file}:{self.line}:{self.start}-{self.end}: {quote(self.text)}"


def cite(found: Found, seen: Evidence) -> Citation:
    """The citation of a window of a line's message."""
    message = found.line.message
    # A chronicle escapes sign by sign, so the window has the same form alone as within the whole text.
    before, quoted = (quote(part)[2:-2] for part in (message.text[: seen.start], message.text[seen.start : seen.end]))
    start = found.line.start + len(before.encode())
    return Citation(
        file=found.file,
        line=found.line.number,
        message=message.id,
        session=message.session,
        mark=message.mark,
        author=message.author,
        role=message.role,
        time=message.time.isoformat(),
        start=start,
        end=start + len(quoted.encode()),
        quoted=quoted,
    )


def fault_of(citation: Citation, archive: Archive) -> str:
    """What is wrong with a citation; empty where its span is there, byte for byte, and in the message that it names.

    The span must also be a piece of what was said. One that begins or ends within an escape is there to the byte and
    shows what nobody has said: ``u0060`` of a backtick.

    Args:
        citation: The citation, of any origin.
        archive: The archive that it is of.
    """
    try:
        line, raw = _line(citation, archive)
    except (ValueError, LabError) as error:
        return str(error)
    said = line.message
    if (citation.message, citation.session, citation.mark) != (said.id, said.session, said.mark):
        return "that line is another message"
    if (citation.author, citation.role, citation.time) != (said.author, said.role, said.time.isoformat()):
        return "the message is another's, or of another time"
    if not line.start <= citation.start < citation.end <= line.start + len(line.quoted.encode()):
        return "the span is not within what was said"
    return _misquoted(citation, line, raw)


def _misquoted(citation: Citation, line: Line, raw: bytes) -> str:
    said = line.message.text
    try:
        if raw[citation.start : citation.end] != citation.quoted.encode():
            return "the span does not say that"
        before, shown = unquote(raw[line.start : citation.start].decode()), citation.text
    except ValueError:
        return "the span cuts an escape"
    # Half of an escaped pair of surrogates can be decoded as well, into what no message holds.
    whole = said.startswith(before) and said.startswith(shown, len(before))
    return "" if whole else "the span cuts an escape"


def _line(citation: Citation, archive: Archive) -> tuple[Line, bytes]:
    """The line that a citation names, and its bytes; ValueError where there is none."""
    named = _FILE.fullmatch(citation.file)
    day = date.fromisoformat(named[1]) if named else None
    data = archive.bytes_of(day) if day else b""
    if day is None or not data:
        raise ValueError("there is no such chronicle")
    line = read_line(data, day, citation.line)
    if line is None:
        raise ValueError("that line is no message")
    return line, data.split(b"\n")[line.number - 1]
