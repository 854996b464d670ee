"""Folds what a reader would not tell apart, and keeps where each folded character came from."""

from __future__ import annotations

import functools
import re
import unicodedata
from array import array
from collections.abc import Callable

Fold = Callable[[str], str]
"""Maps each character for itself, so that the fold of a text is the joined fold of its characters."""

_JOINERS = "-_\u2010\u2011\u2012\u2013"

_FILLERS = "\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8"
"""What shows as nothing although its category does not say so (Unicode's Default_Ignorable_Code_Point)."""

_BEYOND_BASIC = re.compile("[\U00010000-\U0010ffff]+")

_LONGEST = {"\ufdfa": " ", "\ufdfb": " "}
"""The two characters that NFKD makes many times as long; a text of them would fill the memory."""

# Letters that look like one of a to z. Capitals stand for themselves where their small letter looks otherwise (Ν, ν).
_LOOKALIKES = {
    "a": "аαΑɑᴀᎪ", "b": "вьβΒʙᏼ", "c": "сᴄᏟ", "d": "ԁᴅđ", "e": "еεΕᴇᎬ", "f": "ꜰ", "g": "ɡɢցᏀ",
    "h": "нһΗʜհħᎻ", "i": "іιΙıɩɪᎥ", "j": "јᴊյᎫ", "k": "кκΚᴋᏦ", "l": "ӏʟłᏞ", "m": "мΜᴍᎷ", "n": "пηΝɴո",
    "o": "оοσΟᴏօø", "p": "рρΡᴘᏢ", "q": "ԛզ", "r": "гʀᎡ", "s": "ѕꜱᏚ", "t": "тτΤᴛŧᎢ", "u": "υսᴜ", "v": "ѵνᴠᏙ",
    "w": "ԝωᴡᎳ", "x": "хχΧ", "y": "уүγΥʏ", "z": "ΖᴢᏃ",
}  # fmt: skip
_CONFUSABLES = {ord(other): letter for letter, others in _LOOKALIKES.items() for other in others}
_CONFUSABLE = re.compile(f"[{''.join(map(chr, _CONFUSABLES))}]+")


def unseen(character: str) -> bool:
    """Whether a character shows as nothing of its own: format characters, marks and what becomes a mark.

    What combines with the character before it must go before NFKD, which sorts runs of marks in quadratic time.
    """
    if unicodedata.category(character) in ("Cf", "Mn", "Me") or unicodedata.combining(character):
        return True
    if not unicodedata.decomposition(character):
        return False
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


@functools.cache
def _unseen_basic() -> re.Pattern[str]:
    """Runs of unseen characters of the basic plane: a set that reaches beyond it is no table look-up, but slow."""
    codes = (code for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000 and unseen(chr(code)))
    return re.compile(f"[{''.join(map(chr, codes))}{_FILLERS}]+")


@functools.cache
def _unseen_beyond() -> dict[int, None]:
    """Unseen characters of the other planes, for ``str.translate``; none has any but these two."""
    ignorable = dict.fromkeys(range(0xE0000, 0xE1000))
    return ignorable | dict.fromkeys(code for code in range(0x10000, 0x20000) if unseen(chr(code)))


def seen(text: str) -> str:
    """The text without unseen characters, compatibility forms (full width) and case folded."""
    if text.isascii():
        return text.lower()
    for long, short in _LONGEST.items():
        text = text.replace(long, short)
    text = unicodedata.normalize("NFKD", _without_unseen(text)).casefold()
    return text if text.isascii() else _without_unseen(text)


def _without_unseen(text: str) -> str:
    text = _unseen_basic().sub("", text)
    return _BEYOND_BASIC.sub(lambda run: run[0].translate(_unseen_beyond()), text)


def fold(text: str) -> str:
    """As :func:`seen`, and without joining hyphens. Homoglyphs of other scripts stay: see :func:`skeleton`."""
    text = seen(text)
    for joiner in _JOINERS if not text.isascii() else "-_":
        text = text.replace(joiner, "")
    return text


def skeleton(text: str) -> str:
    """As :func:`fold`, with letters of other scripts as the Latin ones they look like; distinct words may become equal."""
    # Capitals before their case is folded; small letters again after, for what has lost its accent only then (ё, ά).
    return _as_latin(fold(_as_latin(text)))


def _as_latin(text: str) -> str:
    return _CONFUSABLE.sub(lambda run: run[0].translate(_CONFUSABLES), text)


def has_lookalikes(text: str) -> bool:
    """Whether a text holds letters that :func:`skeleton` replaces."""
    return not text.isascii() and bool(_CONFUSABLE.search(text))


def offsets(text: str, folding: Fold) -> array[int]:
    """For each character of the folded text, the offset of the one it came from in the text as given."""
    found = array("L")
    sizes: dict[str, int] = {}
    for offset, character in enumerate(text):
        size = sizes.get(character)
        if size is None:
            size = sizes[character] = len(folding(character))
        for _ in range(size):
            found.append(offset)
    return found
