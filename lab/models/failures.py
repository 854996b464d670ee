"""Why a model server could not be used: one line, one mend, one stable cause."""

from __future__ import annotations

import json
import os
import re
from enum import StrEnum
from functools import lru_cache

from lab.errors import EnvironmentUnusable
from lab.text import printable

LONGEST_REASON = 200
"""Characters that are kept of what a server says of itself."""

OLLAMA_KEY_VARIABLE = "OLLAMA_API_KEY"
"""Variable from which Ollama's own client takes a key; the lab reads it only to keep it out of what it prints."""
SHORTEST_KEY = 8
"""A shorter key, such as a local server is given for form's sake, would be found in words that are none."""
MASK = "[key]"


class Cause(StrEnum):
    """What went wrong with a model server."""

    UNREACHABLE = "unreachable"
    """Nobody answers, or whoever answered hung up."""
    TIMEOUT = "timeout"
    MISSING = "missing"
    """The server has no such model."""
    KEY_REFUSED = "key_refused"
    REFUSED = "refused"
    """It answered, with an error."""
    GARBAGE = "garbage"
    """It answered with something else than its protocol."""


class ServerFailed(EnvironmentUnusable):
    """A model server gave no answer that can be used.

    Attributes:
        cause: Which kind of failure.
        status: HTTP status; 0 where there was none.
        said: What the server said, one bounded line; hostile all the same where it goes into HTML.
    """

    def __init__(self, message: str, mend: str = "", *, cause: Cause, status: int = 0, said: str = "") -> None:
        super().__init__(message, mend)
        self.cause = cause
        self.status = status
        self.said = said


def one_line(text: object, limit: int = LONGEST_REASON) -> str:
    """What a server said, fit to stand in a message."""
    told = mask_key(str(text), os.environ.get(OLLAMA_KEY_VARIABLE, "").strip())
    return printable(told.strip(), limit=limit)


def mask_key(text: str, key: str) -> str:
    """Takes a key out of what a server said: it was sent the key, and may echo it.

    Args:
        text: JSON stays JSON.
        key: Also found as JSON escapes it, once or twice, and in percent-encoding.
    """
    return _every_form(key).sub(MASK, text) if len(key) >= SHORTEST_KEY else text


@lru_cache(maxsize=8)
def _every_form(key: str) -> re.Pattern[str]:
    return re.compile("".join(_forms(character) for character in key))


def _forms(character: str) -> str:
    # The number of backslashes is bounded, so that a long row of them cannot hold the search up.
    escaped = "".join(rf"\\{{1,4}}u(?i:{unit:04x})" for unit in _units(character))
    percent = "".join(f"%(?i:{byte:02x})" for byte in character.encode("utf-8", "surrogateescape"))
    return rf"(?:\\{{0,4}}{re.escape(character)}|{escaped}|{percent})"


def _units(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2]) for place in range(0, len(data), 2)]


def said_by(data: bytes) -> str:
    """What an error answer says, in one bounded line, whichever of the usual shapes it has."""
    text = data.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return one_line(text[:1000])
    if isinstance(found, dict):
        error = found.get("error", found.get("detail", found.get("message", "")))
        return one_line(error.get("message", "") if isinstance(error, dict) else error)
    return one_line(found)
