"""Why a model server could not be used: one line, one mend, one stable cause."""

from __future__ import annotations

from enum import StrEnum

from lab.errors import EnvironmentUnusable
from lab.text import printable

LONGEST_REASON = 200
"""Characters that are kept of what a server says of itself."""


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
    return printable(str(text).strip(), limit=limit)
