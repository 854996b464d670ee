"""Which code judged a trial: the lab's version and a digest of every module that a verdict depends on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lab
from lab.records import digest

ROOT = Path(lab.__file__).parent
PARTS = (
    "contamination/observe",
    "contamination/scenarios",
    "contamination/stores.py",
    "contamination/script.py",
    "agents",
    "gateway",
    "records",
    "errors.py",
    "text.py",
)
"""Modules and folders below the package in which a verdict is made. A test follows the imports of the judge, so that
none is forgotten; that some of these cannot change a verdict only makes two digests differ more often."""

_DIGITS = 12


def sources() -> Iterator[Path]:
    """The files whose bytes the digest is taken over, by name."""
    for part in PARTS:
        place = ROOT / part
        yield from sorted(place.rglob("*.py")) if place.is_dir() else [place]


@cache
def detectors() -> str:
    """Name of the detectors of this lab: ``0.2.0+1a2b3c4d5e6f``; the same code has the same name on every machine."""
    told = {path.relative_to(ROOT).as_posix(): digest(path.read_bytes()) for path in sources()}
    return f"{lab.__version__}+{digest(told)[:_DIGITS]}"
