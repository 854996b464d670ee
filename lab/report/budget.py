"""Bytes that the excerpts of one page may take."""

from __future__ import annotations

from collections.abc import Sequence

from lab.report.hostile import cut, marks_in, weight
from lab.report.trial_model import Excerpt

PIECE = 4_000
"""Longest excerpt in bytes as it stands in HTML, where nothing else is said."""

_LEAST = 160


class Budget:
    """Bytes of HTML that are left for the excerpts of a trial; what comes first is cut last.

    Args:
        total: How many there are.
        needles: What to mark.
    """

    def __init__(self, total: int, needles: Sequence[str]) -> None:
        self._left = total
        self._needles = tuple(needles)
        self._whole: dict[str, tuple[Excerpt, int]] = {}

    def take(self, text: str, most: int = PIECE) -> Excerpt:
        """A piece of a text, around the content where it holds it; never less than a line."""
        limit = max(_LEAST, min(most, self._left))
        known = self._whole.get(text)  # a reviewer is sent what the user said: the same texts come twice
        if known is None or known[1] > limit:
            piece = cut(text, limit, self._needles)
            known = piece, weight(piece.text)
            if len(piece.text) == len(text):
                self._whole[text] = known
        self._left -= known[1]
        return known[0]

    def holds(self, text: str) -> bool:
        """Whether a text holds what is to be marked."""
        return bool(marks_in(text, self._needles))
