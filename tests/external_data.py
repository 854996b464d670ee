"""Finds data of others that stay outside the tree because of their licences."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def external_data(name: str) -> Path:
    """The folder of a foreign set below ``LAB_EXTERNAL_DATA``; the test is skipped where it is not there."""
    folder = Path(os.environ.get("LAB_EXTERNAL_DATA") or ROOT.parent / "shared" / "data") / name
    if not folder.is_dir():
        pytest.skip(f"no external data set {name}: name their folder in LAB_EXTERNAL_DATA")
    return folder
