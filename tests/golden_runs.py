"""Runs that earlier versions of the lab wrote, kept as they were to the byte.

``run-0.1.0`` was written by version 0.1.0 (commit 4e52504), ``run-result-schema-1`` by the last commit that wrote
results of schema 1 (ec0264e): scenario F1-001 and its twin, under bubblewrap, with the real agent.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
RUNS = ("run-0.1.0", "run-result-schema-1")


def unpack(name: str, folder: Path) -> Path:
    """Gives a fresh copy of a golden run."""
    target = folder / name
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return target
