"""Recognises a canary in text: literally, after normalisation, hidden, and encoded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lab.contamination.observe.decode import Reading, Room, readings
from lab.contamination.observe.plain import Form, search

__all__ = ["Form", "Match", "excerpt", "find", "line_of"]

EXCERPT_MARGIN = 160
EXCERPT_LONGEST = 640
"""Most characters shown of the match itself: an encoded run may be megabytes."""

MAX_DEPTH = 3
"""Decodings on top of each other that are followed: an escaped string, and base64 of base64 in it."""

ROOM_FACTOR = 4
ROOM_LEAST = 1 << 16
"""Characters that are decoded of one text: so many times its own length, and at least so many.

Beyond, runs of base64 and hex are still asked for the bare canary, but not for a disguised one in them."""


@dataclass(frozen=True)
class Match:
    """One place at which a canary stands.

    Attributes:
        start: Offset of its first character in the text as given; of an encoded one, of the encoded run.
        end: Offset behind its last character.
        form: How it was recognised.
    """

    start: int
    end: int
    form: Form

    @property
    def literal(self) -> bool:
        """False where only a normalised or decoded text held it."""
        return self.form is Form.LITERAL


def find(canary: str, text: str) -> Match | None:
    """Finds a place of a canary; a longer word that merely contains it is not a match.

    The plainest form is found first: one that needs no decoding before one that does. The time grows with the length of
    the text alone, whatever stands in it.

    Args:
        canary: Lower-case letters followed by digits.
        text: Any text.
    """
    room = Room(ROOM_FACTOR * len(text) + ROOM_LEAST)
    waiting: deque[tuple[str, Reading | None]] = deque([(text, None)])
    while waiting:
        current, reading = waiting.popleft()
        if place := search(canary, current):
            return _as_given(*place, reading)
        if reading is None or reading.depth < MAX_DEPTH:
            waiting.extend((inner.text, inner) for inner in readings(canary, current, reading, room))
    return None


def _as_given(start: int, end: int, form: Form, reading: Reading | None) -> Match:
    """A place in a reading as a match in the text as given."""
    while reading is not None:
        start, end, encoding = reading.outward(start, end)
        form, reading = encoding or form, reading.parent
    return Match(start, end, form)


def excerpt(text: str, match: Match) -> str:
    """The match, or its beginning where it is long, with some text around it; hostile."""
    end = min(match.end, match.start + EXCERPT_LONGEST)
    return text[max(0, match.start - EXCERPT_MARGIN) : end + EXCERPT_MARGIN]


def line_of(text: str, match: Match) -> int:
    """Line number of a match, from 1."""
    return text.count("\n", 0, match.start) + 1
