"""Text of unknown origin made fit to stand in one line of a message, a log or a table."""

from __future__ import annotations

import re

NEWLINE_SIGN = "␤"
"""What a line break becomes, so that hostile text cannot start a line of its own."""

ELLIPSIS = "…"

# Complete sequences go as a whole, so that no "[31m" is left behind. The string part of OSC and its kin is bounded and
# ends at the next control: an unterminated one must neither swallow the rest of the text nor make the search quadratic.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # short escapes
)
_NEWLINES = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def printable(text: str, limit: int = 200) -> str:
    """Makes text safe to print: one line, no terminal control, no reordering, bounded length.

    It does not escape for HTML, Markdown or spreadsheets: that is the writers' part.

    Args:
        text: Any text, hostile or not.
        limit: Longest result in characters; a longer text is cut and ends in an ellipsis.

    Returns:
        Text without ANSI sequences, C0 and C1 controls and bidirectional controls, with ``␤`` for each line break and
        U+FFFD for what cannot be encoded.
    """
    text = _ANSI.sub("", text)
    text = _NEWLINES.sub(NEWLINE_SIGN, text)
    text = _CONTROLS.sub("", text)
    text = _SURROGATES.sub("\ufffd", text)
    limit = max(limit, 1)
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS
