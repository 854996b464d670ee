"""The lock of a run: digests of all that decides its results, exact versions, and facts about the host."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import lab

LOCK_SCHEMA = 1
"""Version of the form of ``lock.json`` and ``plan.json``. A lock without one is of version 1 or of before."""


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
