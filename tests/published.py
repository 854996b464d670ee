"""The scenarios that are published, read once for all tests of a process: reading them takes most of a second."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lab.contamination.scenarios.library import load_library
from lab.contamination.scenarios.scenario import Scenario


@cache
def published() -> tuple[Scenario, ...]:
    """All of them, in the library's order. They are frozen: no test can change them for another."""
    return tuple(load_library(Path(__file__).parents[1] / "scenarios"))
