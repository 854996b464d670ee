"""What a policy sees of a scenario, and the policies by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.errors import InputError
from lab.gateway.replies import Reply
from lab.gateway.request import ChatRequest


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


def policy_named(name: str) -> Policy:
    """Looks a policy up.

    Raises:
        InputError: No policy of that name; the known ones are named.
    """
    from lab.gateway.policies.scripted import POLICIES  # noqa: PLC0415  (the policies use the types of this module)

    if name not in POLICIES:
        raise InputError(f"no policy is named {name!r}", f"one of: {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
