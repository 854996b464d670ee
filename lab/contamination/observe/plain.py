"""Finds a canary in text that is not encoded: as it stands, disguised for the eye, hidden, reversed or rotated."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from enum import StrEnum

from lab.contamination.observe.fold import Fold, fold, has_lookalikes, offsets, skeleton


class Form(StrEnum):
    """How a canary was recognised; of nested encodings the outermost."""

    LITERAL = "literal"
    NORMALISED = "normalised"
    """Case, hyphens, compatibility forms, accents, zero-width and other unseen characters."""
    HOMOGLYPH = "homoglyph"
    """Letters of other scripts that look like Latin ones."""
    TAG_CHARACTERS = "tag_characters"
    """Unicode tag characters, which show as nothing and which models read as ASCII."""
    REVERSED_BIDI = "reversed_bidi"
    """Written backwards behind a right-to-left override, so that it shows forwards."""
    ROT13 = "rot13"
    PERCENT = "percent"
    HTML_ENTITY = "html_entity"
    JSON_ESCAPE = "json_escape"
    """Escapes of a JSON, Python or JavaScript string."""
    QUOTED_PRINTABLE = "quoted_printable"
    BASE64 = "base64"
    HEX = "hex"


Place = tuple[int, int]
"""Offset of the first character, offset behind the last."""

_TAG = re.compile("[\U000e0020-\U000e007e]+")
_TAGS = {code: code - 0xE0000 for code in range(0xE0020, 0xE007F)}
_NO_TAG = re.compile("[^\U000e0020-\U000e007e]")
_OVERRIDE = re.compile("\u202e([^\u202c\n]*)")


def search(canary: str, text: str) -> tuple[int, int, Form] | None:
    """Finds the first place of a canary in the plainest form in which it stands alone.

    Returns:
        Start and end in the text as given, and the form.
    """
    for start, end in _literal(canary, text):
        return start, end, Form.LITERAL
    folded = fold(text)  # the costly part, so it is done once for all
    for places, form in (
        (_folded(canary, text, fold, folded), Form.NORMALISED),
        (_tagged(canary, text), Form.TAG_CHARACTERS),
        (_homoglyphs(canary, text, folded), Form.HOMOGLYPH),
        (_reversed(canary, text), Form.REVERSED_BIDI),
        (_folded(codecs.encode(canary, "rot13"), text, fold, folded), Form.ROT13),
    ):
        for start, end in places:
            return start, end, form
    return None


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit touches the word in front, and no digit behind, in the text as given."""
    return not (start and text[start - 1].isalnum()) and not (end < len(text) and text[end].isdigit())


def _literal(canary: str, text: str) -> Iterator[Place]:
    at = text.find(canary)
    while at >= 0:
        if stands_alone(text, at, at + len(canary)):
            yield at, at + len(canary)
        at = text.find(canary, at + 1)


def _folded(canary: str, text: str, folding: Fold, folded: str | None = None) -> Iterator[Place]:
    folded = folding(text) if folded is None else folded
    at = folded.find(canary)
    origins = offsets(text, folding) if at >= 0 else None
    while origins is not None and at >= 0:
        start, end = origins[at], origins[at + len(canary) - 1] + 1
        if stands_alone(text, start, end):
            yield start, end
        at = folded.find(canary, at + 1)


def _tagged(canary: str, text: str) -> Iterator[Place]:
    if text.isascii() or not _TAG.search(text):
        return
    # A hidden text of its own, whatever visible words it stands among; then one that visible words take part in.
    for stream in (_NO_TAG.sub(" ", text), text):
        yield from _folded(canary, _TAG.sub(lambda run: run[0].translate(_TAGS), stream), fold)


def _homoglyphs(canary: str, text: str, folded: str) -> Iterator[Place]:
    if has_lookalikes(text) or has_lookalikes(folded):
        yield from _folded(canary, text, skeleton)


def _reversed(canary: str, text: str) -> Iterator[Place]:
    if text.isascii():
        return
    for override in _OVERRIDE.finditer(text):
        for start, end in _folded(canary, override[1][::-1], fold):
            yield override.end(1) - end, override.end(1) - start
