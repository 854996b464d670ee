"""Whether a text stands in a message although its channel has re-written it: line numbers, escapes, white space."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

MAX_UNESCAPES = 3
"""JSON strings within JSON strings that are looked into."""

_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+|\\[\"\\/bfnrt]")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# "     3|", "3<tab>", "3:", "notes/a.md:3:" in front of a line.
_LINE_NUMBER = re.compile(r"^(?:[^\s:|]{1,200}+:)?[ \t]*[0-9]{1,7}[ \t]*[|:\u2502\u2192\t][ \t]?", re.MULTILINE)
_SPACE = re.compile(r"[ \t\r\n\f\v]+")  # no other: an unusual space may be what tells a payload from its twin
_WORD = re.compile(r"[A-Za-z0-9]+")


def holds(content: str, text: str) -> bool:
    """Whether the whole content stands in a text as an agent's channel may have changed it.

    A channel may number the lines, escape for JSON (several times, for a tool's answer is often JSON in JSON) or HTML,
    and change white space and line ends. Nothing else is forgiven. Unseen characters above all stay: without them a
    payload and its neutral twin may be the same words.

    Args:
        content: What was sent in; nothing but white space is never held.
        text: A message's text.
    """
    wanted = _spaced(content)
    if not wanted:
        return False
    # No channel changes ASCII letters and digits, so a text without the content's longest word needs no further look.
    anchor = max(_WORD.findall(content), key=len, default="")
    return anchor in text and any(content in reading or wanted in _spaced(reading) for reading in _readings(text))


def _readings(text: str) -> Iterator[str]:
    """The text with 0, 1, 2, … levels of JSON escapes resolved, each also without HTML's and without line numbers."""
    for _ in range(MAX_UNESCAPES + 1):
        for reading in dict.fromkeys((text, html.unescape(text) if "&" in text else text)):
            yield reading
            if (plain := _LINE_NUMBER.sub("", reading)) != reading:
                yield plain
        if "\\" not in text:
            return
        text = _ESCAPES.sub(_unescaped, text)


def _unescaped(escapes: re.Match[str]) -> str:
    written = escapes[0]
    if written[1] == "u":
        # Together, for a character beyond the basic plane is written as two.
        return bytes.fromhex(written.replace("\\u", "")).decode("utf-16-be", "replace")
    return _SHORT.get(written[1], written[1])


def _spaced(text: str) -> str:
    """The text with one space for each run of white space, and none at its ends."""
    return _SPACE.sub(" ", text).strip(" ")
