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
"""Between the stretches of one reading: part of no word, no escape, no run."""

MARGIN = 128
"""Characters around an escape that are read with it; a canary with its disguise is shorter."""

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
_HEX = r"[0-9A-Fa-f][0-9A-Fa-fx][0-9A-Fa-fx, :-]{%d,}+"


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
    """One way to read the text of its parent: what several stretches of it say, put together.

    Attributes:
        text: What it reads.
        parent: The reading it was made from; None where that is the text as given.
        source: The parent's text.
        depth: Number of decodings.
        starts: Where each stretch begins in this text.
        spans: Where each stands in the parent's text.
    """

    text: str
    parent: Reading | None
    source: str
    depth: int = 1
    starts: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    @abstractmethod
    def outward(self, start: int, end: int) -> tuple[int, int, Form | None]:
        """The place in the parent's text from which a place was read, and the encoding; None if there is none."""

    def add(self, said: str, span: tuple[int, int], pieces: list[str]) -> None:
        """Notes a stretch; the pieces become the text when all are there."""
        self.starts.append(self.starts[-1] + len(pieces[-1]) + len(SEPARATOR) if pieces else 0)
        self.spans.append(span)
        pieces.append(said)

    def stretch(self, at: int) -> tuple[int, tuple[int, int]]:
        """Beginning in this text, and span in the parent's, of the stretch that holds a character."""
        index = bisect.bisect_right(self.starts, at) - 1
        return self.starts[index], self.spans[index]


@dataclass
class Unescaped(Reading):
    """The text around escapes, with these resolved once."""

    def outward(self, start: int, end: int) -> tuple[int, int, Form | None]:
        """The place with its escapes whole; the form is that of the first escape in it or beside it."""
        read, (written, limit) = self.stretch(start)  # ends of what was gone over, in this text and in the parent's
        first, last, form = -1, -1, None
        for escape in _ESCAPE.finditer(self.source, written, limit):
            before = read + escape.start() - written
            after = before + len(_resolved(escape))
            if first < 0 and start < after:
                first = written + start - read if start < before else escape.start()
            if end <= before:
                last = written + end - read
            elif end <= after:
                last = escape.end()
            if form is None and before <= end and after >= start:
                form = Form(str(escape.lastgroup))
            if last >= 0:
                break
            read, written = after, escape.end()
        return first if first >= 0 else written + start - read, last if last >= 0 else written + end - read, form


@dataclass
class Runs(Reading):
    """What the encoded runs of a text hold."""

    form: Form = Form.BASE64

    def outward(self, start: int, end: int) -> tuple[int, int, Form | None]:
        """The encoded run, whole."""
        del end
        return *self.stretch(start)[1], self.form


def unescaped(text: str, parent: Reading | None = None) -> Unescaped | None:
    """What stands around the text's escapes, with these resolved once; None where it has none."""
    reading = Unescaped("", parent, text, parent.depth + 1 if parent else 1)
    pieces: list[str] = []
    for start, end in _neighbourhoods(text):
        reading.add(_ESCAPE.sub(_resolved, text[start:end]), (start, end), pieces)
    reading.text = SEPARATOR.join(pieces)
    return reading if pieces else None


def _neighbourhoods(text: str) -> Iterator[tuple[int, int]]:
    """The stretches that hold escapes, with some of the text around each, cut at spaces: the rest needs no reading."""
    start = end = 0
    for escape in _ESCAPE.finditer(text):
        if escape.start() < end:
            if escape.end() + MARGIN <= end:
                continue
        else:
            if end:
                yield start, end
            start = max(end, text.rfind(" ", end, max(end, escape.start() - MARGIN)) + 1)
        space = text.find(" ", escape.end() + MARGIN)
        end = space if space >= 0 else len(text)
    if end:
        yield start, end


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
        (Form.HEX, _HEX % (2 * need - 2), _from_hex),
    ):
        reading = Runs("", parent, text, depth, form=form)
        pieces: list[str] = []
        for run in re.finditer(pattern, text):
            for said in decoded(run[0], canary.encode(), room):
                reading.add(said, run.span(), pieces)
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
