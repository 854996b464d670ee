"""Working directories outside the run folder: made per process, and removed also when that process was killed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

WORK_PREFIX = "lab-work-"


def make_work_directory() -> Path:
    """A private directory whose name tells which process made it."""
    return Path(tempfile.mkdtemp(prefix=f"{WORK_PREFIX}{os.getpid()}-"))


def remove_tree(path: Path) -> None:
    """Removes a directory that a sandbox may have filled; the system's ``rm`` takes any depth and follows no link."""
    subprocess.run(["rm", "-rf", "--one-file-system", "--", path], check=False, stderr=subprocess.DEVNULL)


def sweep_work_directories() -> list[str]:
    """Removes working directories whose lab process is gone: a killed lab cannot tidy up.

    Returns:
        Paths of the removed directories.
    """
    removed = []
    for path in Path(tempfile.gettempdir()).glob(f"{WORK_PREFIX}*"):
        owner = path.name.removeprefix(WORK_PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and path.lstat().st_uid == os.geteuid():
            remove_tree(path)
            removed.append(str(path))
    return removed
