"""The lock of a run: digests of all that decides its results, versions, host facts; and how two of them differ."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import lab

LOCK_SCHEMA = 1
"""Version of the form of ``lock.json`` and ``plan.json``. A lock without one is of version 1 or of before."""
_LONGEST, _BEFORE = 40, 8
"""Characters that are shown of a value that differs, and of what it has in common with the other."""


def new_run_id(decisive_digest: str) -> str:
    """Time (UTC, to the second) and the first eight digits of what decides the results."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{decisive_digest[:8]}"


def host_facts() -> dict[str, str]:
    """Facts that decide nothing, but that a reader may ask for."""
    return {"kernel": platform.release(), "arch": platform.machine(), "python": sys.version.split()[0]}


def make_lock(run_id: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Puts the lock together.

    Args:
        run_id: Id of the run.
        inputs: What decides the results: builds, setups, models, scenarios, backend, driver.
    """
    return {
        "schema_version": LOCK_SCHEMA,
        "run_id": run_id,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "lab_version": lab.__version__,
        "host": host_facts(),
        **inputs,
    }


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Names each part in which two locks differ, with both values: ``limits.wall_seconds is 120 and 60``.

    Args:
        one: A lock, or a part of it: whatever JSON holds.
        other: The same part of another.
        place: Where the part stands.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}".lstrip("."))
    elif one != other:
        mine, theirs = ("absent" if value is None else str(value) for value in (one, other))
        # Long values that begin alike, as lists do, are shown from where they part.
        part = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
        start = part - _BEFORE if part > _LONGEST // 2 else 0
        yield f"{place} is {_short(mine, start)} and {_short(theirs, start)}"


def _short(text: str, start: int) -> str:
    end = start + _LONGEST
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
