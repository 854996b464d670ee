"""Delta debugging: the algorithm ``ddmin``, pure.

Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering
28(2), 2002, section 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], shows: Callable[[Sequence[T]], bool]) -> list[T]:
    """Finds a part of ``items`` that still shows what they show, and of which no single item can be left out.

    The empty part is asked for first: it is the commonest result here, and the paper's algorithm, for which it shows
    nothing by definition, never asks for it.

    Args:
        items: They must show it; this is not asked again.
        shows: Whether a part, in the order of ``items``, shows it. What it cannot tell counts as no. What it raises
            ends the search.

    Returns:
        A 1-minimal part, in order. With a monotone ``shows`` it is minimal; otherwise a smaller one may exist.
    """
    left = list(items)
    if not left or shows([]):
        return []
    parts = 2
    while len(left) > 1:
        chunks = _split(left, parts)
        # Of two halves each is the complement of the other, which comes next.
        single = next((chunk for chunk in chunks if shows(chunk)), None) if parts > 2 else None
        if single is not None:
            left, parts = single, 2
            continue
        rest = next((r for r in (_without(chunks, n) for n in range(len(chunks))) if shows(r)), None)
        if rest is not None:
            left, parts = rest, max(parts - 1, 2)
        elif parts >= len(left):
            break
        else:
            parts = min(parts * 2, len(left))
    return left


def _split(items: list[T], parts: int) -> list[list[T]]:
    """Cuts a list into so many pieces, none empty, whose lengths differ by one at most."""
    edges = [len(items) * n // parts for n in range(parts + 1)]
    return [items[start:end] for start, end in itertools.pairwise(edges)]


def _without(chunks: list[list[T]], left_out: int) -> list[T]:
    return [item for n, chunk in enumerate(chunks) if n != left_out for item in chunk]
