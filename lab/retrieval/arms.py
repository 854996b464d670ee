"""The arms of a benchmark run: names under which configured systems can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.retrieval.systems.base import System

PREFETCH = 5
"""Facts that the real plugin injects; deeper metrics are not defined for it."""


@dataclass(frozen=True)
class Arm:
    """One configuration of a system under test.

    Attributes:
        name: Name by which it is asked for; also that of its files.
        label: One line for reports.
        depth: Most hits it can return.
        settings: All that decides its results beside the database.
        make: Makes the system.
    """

    name: str
    label: str
    depth: int
    settings: Mapping[str, Any]
    make: Callable[[], System]
