"""Readings of a text: its escapes resolved, its base64 and hex decoded, each with the way back to the text as given.

Everything is one pass over the text. What many encoded runs hold is put together to one reading, so that a text of a
million runs costs no more than one of a single run.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import functools
import html
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab.contamination.observe.plain import Form

SEPARATOR = "\x1f\n"
"""Between the decoded runs of one reading: part of no word, no escape, no run."""

# The set in front lets the search skip to the few characters that can start an escape.
_ESCAPE = re.compile(
    r"[%&\\=](?:"
    r"(?<=%)(?P<percent>[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*+)"
    r"|(?<=&)(?P<html_entity>#[0-9]{1,7}+;?|#[xX][0-9A-Fa-f]{1,6}+;?|[A-Za-z][A-Za-z0-9]{1,31}+;)"
    r"|(?<=\\)(?P<json_escape>u[0-9A-Fa-f]{4}(?:\\u[0-9A-Fa-f]{4})*+|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}"
    r"|x[0-9A-Fa-f]{2}|[\\/\"'abfnrtv0])"
    r"|(?<==)(?P<quoted_printable>(?:[0-9A-F]{2}|\r?\n)(?:=(?:[0-9A-F]{2}|\r?\n))*+))"
)
_SHORT = dict(zip("\\/\"'abfnrtv0", "\\/\"'\a\b\f\n\r\t\v\0", strict=True))
_BASE64 = r"(?<![A-Za-z0-9+/_-])%s[A-Za-z0-9+/_-]{%d,}+(?:\r?\n[ \t]*+[A-Za-z0-9+/_-]++)*+"
_NO_WORD = r"(?=.[a-z0-9+/_-]*+[A-Z])"
"""Words and paths are runs of the base64 alphabet too, but have no capital behind their first letter."""
_HEX = r"(?<![0-9A-Fa-f])(?:(?:0x)?[0-9A-Fa-f]{2}[ :,-]{0,2}){%d,}+[0-9A-Fa-f]?"


@dataclass
class Room:
    """How many more characters may be decoded from one text."""

    characters: int

    def take(self, size: int) -> bool:
        """Takes a piece's room, if there is as much."""
        if size > self.characters:
            return False
        self.characters -= size
        return True


@dataclass
class Reading(ABC):
    """One way to read the text of its parent.

    Attributes:
        text: What it reads.
        parent: The reading it was made from; None where that is the text as given.
        source: The parent's text.
        depth: Number of decodings.
    """

    text: str
    parent: Reading | None
    source: str
    depth: int = 1

    @abstractmethod
    def outward(self, start: int, end: int) -> tuple[int, int, Form | None]:
        """The place in the parent's text from which a place was read, and the encoding; None if there is none."""


@dataclass
class Unescaped(Reading):
    """The text with all its escapes resolved once."""

    def outward(self, start: int, end: int) -> tuple[int, int, Form | None]:
        """The place with its escapes whole; the form is that of the first escape in it or beside it."""
        read = written = 0  # ends of what has been gone over, in this text and in the parent's
        first, last, form = start, end, None
        for escape in _ESCAPE.finditer(self.source):
            before = read + escape.start() - written
            after = before + len(_resolved(escape))
            if before > end:
                break
            if read <= start:
                first = escape.start() if before <= start < after else written + start - read
            if read < end:
                last = escape.end() if before < end <= after else written + end - read
            if form is None and after >= start:
                form = Form(str(escape.lastgroup))
            read, written = after, escape.end()
        if read <= start:
            first = written + start - read
        if read < end:
            last = written + end - read
        return first, last, form


@dataclass
class Runs(Reading):
    """What the encoded runs of a text hold, put together."""

    form: Form = Form.BASE64
    starts: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def outward(self, start: int, end: int) -> tuple[int, int, Form | None]:
        """The encoded run, whole."""
        del end
        return *self.spans[bisect.bisect_right(self.starts, start) - 1], self.form


def unescaped(text: str, parent: Reading | None = None) -> Unescaped | None:
    """The text with its escapes resolved once; None where it has none."""
    if not _ESCAPE.search(text):
        return None
    return Unescaped(_ESCAPE.sub(_resolved, text), parent, text, parent.depth + 1 if parent else 1)


def readings(canary: str, text: str, parent: Reading | None, room: Room) -> Iterator[Reading]:
    """The readings of a text in which a canary may stand that does not stand in the text itself."""
    escapes = unescaped(text, parent)
    if escapes and room.take(len(escapes.text)):
        yield escapes
    depth = parent.depth + 1 if parent else 1
    need = len(canary.encode())
    # Encoded words may lack capitals by chance, so those are left out only where the bare canary is nowhere encoded.
    left_out = "" if any(core in text for core in _cores(canary)) else _NO_WORD
    for form, pattern, decoded in (
        (Form.BASE64, _BASE64 % (left_out, -(-need * 4 // 3)), _from_base64),
        (Form.HEX, _HEX % need, _from_hex),
    ):
        reading = Runs("", parent, text, depth, form=form)
        pieces: list[str] = []
        length = 0
        for run in re.finditer(pattern, text):
            for piece in decoded(run[0], canary.encode(), room):
                reading.starts.append(length)
                reading.spans.append(run.span())
                pieces.append(piece)
                length += len(piece) + len(SEPARATOR)
        if pieces:
            reading.text = SEPARATOR.join(pieces)
            yield reading


def _resolved(escape: re.Match[str]) -> str:
    written = escape[0]
    match escape.lastgroup:
        case "percent":
            return bytes.fromhex(written.replace("%", "")).decode("utf-8", "replace")
        case "html_entity":
            return html.unescape(written)
        case "quoted_printable":
            return bytes.fromhex(re.sub(r"[=\r\n]", "", written)).decode("utf-8", "replace")
    if written[1] == "u" and written[2] != "{":
        # Together, for a character beyond the basic plane is written as two.
        return bytes.fromhex(written.replace("\\u", "")).decode("utf-16-be", "replace")
    if len(written) > 2:
        code = int(written[2:].strip("{}"), 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _SHORT[written[1]]


@functools.cache
def _cores(canary: str) -> tuple[str, ...]:
    """What base64 of any text that holds the canary has in it, for the three ways in which it may fall."""
    cores = []
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + canary.encode()).decode()
        cores.append(encoded[-(-before * 4 // 3) : len(encoded.rstrip("=")) - 1])
    return tuple(cores)


def _from_base64(run: str, canary: bytes, room: Room) -> Iterator[str]:
    """What a run of the base64 alphabet may say. The encoded part may begin anywhere in it (``/path/QWx3…``)."""
    packed = re.sub(r"\s", "", run) if "\n" in run else run
    parts = re.split("[/_-]", packed)
    packed = packed.replace("-", "+").replace("_", "/")
    for part in (packed, packed[1:], packed[2:], packed[3:], *(parts if len(parts) > 1 else ())):
        rest = len(part) % 4
        usable = part[: len(part) - 1] if rest == 1 else part + "=" * (-rest % 4)
        yield from _said(binascii.a2b_base64(usable), canary, room)


def _from_hex(run: str, canary: bytes, room: Room) -> Iterator[str]:
    digits = re.sub("0x|[^0-9A-Fa-f]", "", run)
    for part in (digits, digits[1:]):
        yield from _said(bytes.fromhex(part[: len(part) // 2 * 2]), canary, room)


def _said(data: bytes, canary: bytes, room: Room) -> Iterator[str]:
    """The bytes as text, if they hold the bare canary or are text at all."""
    if len(data) < len(canary):
        return
    data = data.replace(b"\0", b"")  # UTF-16 of ASCII
    bare = canary in data.lower()
    text = data.decode("utf-8", "replace")
    if bare or (text.count("\ufffd") * 4 <= len(text) and room.take(len(text))):
        yield text
