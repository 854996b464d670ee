"""Where prepared environments are kept between runs: one folder on this machine, safe to delete as a whole."""

from __future__ import annotations

import os
from pathlib import Path

_NAME = "agent-memory-lab"


def cache_root() -> Path:
    """``$LAB_CACHE``, else ``$XDG_CACHE_HOME/agent-memory-lab``, else ``~/.cache/agent-memory-lab``; need not exist."""
    if explicit := os.environ.get("LAB_CACHE"):
        return Path(explicit).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / _NAME
