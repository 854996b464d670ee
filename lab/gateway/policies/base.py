"""What a policy is, and what it sees of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.gateway.replies import Reply
from lab.gateway.request import ChatRequest

SCRIPTED = "scripted:"
"""Prefix of the names of models that are policies."""


@dataclass(frozen=True)
class Script:
    """The scenario as a policy may use it.

    Attributes:
        turns: User turns and the foreground replies to them, in order.
        content: The stimulus as it stands in the transcript.
        stored: How an obedient reviewer would word the entry.
        paraphrase: The same in other words.
        target: Memory file it is meant for (``memory`` or ``user``).
        user_stated: True when the content is the user's own statement.
    """

    turns: tuple[tuple[str, str], ...]
    content: str = ""
    stored: str = ""
    paraphrase: str = ""
    target: str = "memory"
    user_stated: bool = False

    @property
    def delivered(self) -> frozenset[str]:
        """Texts of the user turns."""
        return frozenset(user for user, _ in self.turns)


Policy = Callable[[ChatRequest, int, Script], Reply]
"""A pure function of a review request, the index of its review prompt, and the script."""
