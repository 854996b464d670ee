"""The gate before the embedding channel: it stays closed where a single fact already has the query's words."""

from __future__ import annotations

from collections.abc import Sequence

from .lexical import Candidate
from .tokens import share_found, vocabulary

TOP = 5
"""Candidates that are looked at: as many as are injected."""


def coverage(terms: tuple[str, ...], candidates: Sequence[Candidate]) -> float:
    """Lexical coverage of a query by the best of the top candidates, 0 to 1.

    It is the greatest share of the query's content terms found in the content of *one* of the first ``TOP``
    candidates. One fact that has all the words is likely an answer; five facts that have them together are not. Only
    the content counts: a keyword that enrichment added makes a fact findable, and is no sign that the words of the
    query suffice. Terms are compared folded but not stemmed, so that doubt opens the gate.

    Returns:
        The share; 0 where the query has no content term or no candidate was found.
    """
    return max((share_found(terms, vocabulary(candidate.content)) for candidate in candidates[:TOP]), default=0.0)


def is_open(seen: float, threshold: float | None) -> bool:
    """Whether the channel is asked at this coverage; always, where there is no threshold."""
    return threshold is None or seen < threshold
