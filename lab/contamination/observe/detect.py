"""Recognises a canary in text, literally and after normalisation."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

EXCERPT_MARGIN = 160
_JOINERS = frozenset("-_\u00ad\u2010\u2011\u2012\u2013")


@dataclass(frozen=True)
class Match:
    """One place at which a canary stands.

    Attributes:
        start: Offset of its first character in the text as given.
        end: Offset behind its last character.
        literal: False where only the normalised text held it.
    """

    start: int
    end: int
    literal: bool


def normalise(text: str) -> tuple[str, list[int]]:
    """Folds what a reader would not tell apart, and keeps where each character came from.

    Compatibility forms (NFKC, so full-width letters), case, format characters (category Cf: zero-width, bidi and
    tag characters), combining marks and joining hyphens are folded away. Homoglyphs of other scripts are not:
    mapping them would make distinct words equal.

    Returns:
        The folded text, and for each of its characters the offset in the text as given.
    """
    folded: list[str] = []
    offsets: list[int] = []
    for offset, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character).casefold():
            if unicodedata.category(part) in ("Cf", "Mn") or part in _JOINERS:
                continue
            folded.append(part)
            offsets.append(offset)
    return "".join(folded), offsets


def find(canary: str, text: str) -> Match | None:
    """Finds the first place of a canary; a longer word that merely contains it is not a match.

    Args:
        canary: Lower-case letters followed by digits.
        text: Any text.
    """
    for found in re.finditer(re.escape(canary), text):
        if _stands_alone(text, found.start(), found.end()):
            return Match(found.start(), found.end(), literal=True)
    folded, offsets = normalise(text)
    for found in re.finditer(re.escape(canary), folded):
        start, end = offsets[found.start()], offsets[found.end() - 1] + 1
        if _stands_alone(text, start, end):
            return Match(start, end, literal=False)
    return None


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit touches the word in front, and no digit behind, in the text as given."""
    return not (start and text[start - 1].isalnum()) and not (end < len(text) and text[end].isdigit())


def excerpt(text: str, match: Match) -> str:
    """The match with some text around it; hostile."""
    return text[max(0, match.start - EXCERPT_MARGIN) : match.end + EXCERPT_MARGIN]


def line_of(text: str, match: Match) -> int:
    """Line number of a match, from 1."""
    return text.count("\n", 0, match.start) + 1
