"""Choices that depend on a seed and on nothing else: no hash of the process, no method of a library that may change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")


def sample(items: Iterable[_Item], size: int, seed: int, name: Callable[[_Item], str]) -> list[_Item]:
    """Chooses at most ``size`` items: those whose names have the smallest SHA-256 with the seed; their order is kept.

    The choice does not depend on the order of the items, and an item that is added displaces at most one other.
    """
    pool = list(items)
    ranked = sorted(range(len(pool)), key=lambda i: hashlib.sha256(f"{seed}\0{name(pool[i])}".encode()).digest())
    return [pool[i] for i in sorted(ranked[:size])]
