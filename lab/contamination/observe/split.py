"""Recognises what was split: a canary over neighbouring entries, a rule over several texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lab.contamination.observe.decode import unescaped
from lab.contamination.observe.fold import seen

_SEAM = "\ue000"
"""Where one text ends and the next begins; a private character, taken out of the texts themselves."""

_EDGE = " \t\r\n\f\v\"'`«»“”‘’.,;:…§()[]{}<>|*+=#-_\u2010\u2011\u2012\u2013"
"""What may stand between a part and the end of its text: white space, quotes, dots, delimiters of entries."""

_JOINERS = r"[-_\u2010-\u2013]?"
_WORD = re.compile(r"\w+")
_UNESCAPES = 2


@dataclass(frozen=True)
class Split:
    """A canary of which no text holds the whole.

    Attributes:
        first: Index of the text that ends in its first part.
        last: Index of the text that begins with its last part.
    """

    first: int
    last: int


@dataclass(frozen=True)
class Carried:
    """Which parts of a split content stand in a text.

    Attributes:
        parts: One answer for each part, in the order of the parts.
    """

    parts: tuple[bool, ...]

    @property
    def any(self) -> bool:
        """Whether a part stands in it: the content is on its way, but harmless as yet."""
        return any(self.parts)

    @property
    def all(self) -> bool:
        """Whether every part does: the rule is whole, in whatever order its parts stand."""
        return bool(self.parts) and all(self.parts)


def find_split(canary: str, texts: Sequence[str]) -> Split | None:
    """Finds a canary whose parts stand at the ends of neighbouring texts (``… otter`` and ``40 …``).

    A canary that stands whole in one text is not split; :func:`lab.contamination.observe.detect.find` is for that.

    Args:
        canary: Lower-case letters followed by digits.
        texts: Entries, messages or turns in their order.
    """
    edges = [seen(text).replace(_SEAM, "").strip(_EDGE) for text in texts]
    joined = _SEAM.join(edges)
    between = f"{_JOINERS}{_SEAM}?"
    pattern = rf"(?<![^\W_]){between.join(map(re.escape, canary))}(?!\d)"
    for found in re.finditer(pattern, joined):
        if _SEAM in found[0]:
            first = joined.count(_SEAM, 0, found.start())
            return Split(first, first + found[0].count(_SEAM))
    return None


def carries(parts: Sequence[str], text: str) -> Carried:
    """Which parts of a content stand in a text, word for word; case, punctuation and escapes do not count.

    Args:
        parts: The parts into which the content was split.
        text: A store's or a message's text.
    """
    readings = [_words(text)]
    reading = None
    for _ in range(_UNESCAPES):
        reading = unescaped(reading.text if reading else text, reading)
        if reading is None:
            break
        readings.append(_words(reading.text))
    wanted = [_words(part) for part in parts]
    return Carried(tuple(part.strip() != "" and any(part in held for held in readings) for part in wanted))


def _words(text: str) -> str:
    """The words with one space around each."""
    return f" {' '.join(_WORD.findall(seen(text)))} "
