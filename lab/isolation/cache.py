"""Where prepared environments are kept between runs: one folder on this machine, safe to delete as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

_NAME = "agent-memory-lab"


def cache_root() -> Path:
    """``$LAB_CACHE``, else ``$XDG_CACHE_HOME/agent-memory-lab``, else ``~/.cache/agent-memory-lab``; need not exist."""
    if explicit := os.environ.get("LAB_CACHE"):
        return Path(explicit).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / _NAME


def remove_tree(path: Path) -> None:
    """Removes a directory, also where sealed (unwritable) directories lie in it; one that is gone is fine."""
    if not path.exists():
        return
    if os.geteuid() != 0:
        for parent, _, _ in os.walk(path):
            with contextlib.suppress(OSError):
                Path(parent).chmod(stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
