"""The two directories that a warm sandbox keeps mounted, and how they are made as new between two trials."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
from pathlib import Path

from lab.contamination.sessions.base import give_to_sandbox
from lab.isolation.work import make_work_directory, remove_tree

_FS_IOC_GETFLAGS = 0x80086601  # linux/fs.h, on 64-bit machines


class Slot:
    """Home and exchange directory of one warm sandbox.

    The directories themselves stay, because they are mounted; only their contents go. What else a session may have
    left on them (mode, owner, attributes, even the size that many entries leave) is not repaired but compared: a slot
    that is not as it was is not used again.
    """

    def __init__(self) -> None:
        self.root = make_work_directory()
        self.home, self.io = self.root / "home", self.root / "io"
        self.home.mkdir(mode=0o700)
        self.io.mkdir(mode=0o755)
        for path in (self.home, self.io):
            give_to_sandbox(path)
        self._new = {path: _state(path) for path in (self.home, self.io)}

    def clear(self) -> bool:
        """Empties both directories; False where they are not as they were when new."""
        cleared = [self.clear_one(path) for path in (self.home, self.io)]
        return all(cleared)

    def clear_one(self, path: Path) -> bool:
        """Empties one of the two directories; no process of a session may be alive."""
        with contextlib.suppress(OSError):
            _empty(path)
            os.utime(path)
            return _state(path) == self._new[path]
        return False

    def remove(self) -> None:
        """Removes the directories."""
        remove_tree(self.root)


def _empty(path: Path) -> None:
    with os.scandir(path) as entries:
        found = list(entries)
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            Path(entry.path).unlink()
            continue
        try:
            shutil.rmtree(entry.path)
        except (OSError, RecursionError):
            remove_tree(Path(entry.path))


def _state(path: Path) -> tuple[object, ...]:
    """All that a directory can tell of its past, but for times, which are set."""
    info = path.lstat()
    flags = None
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # not every file system has flags
            flags = struct.unpack("l", fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, struct.pack("l", 0)))[0]
        names = os.listdir(descriptor)  # noqa: PTH208 - there is no path to a descriptor
    finally:
        os.close(descriptor)
    attributes: dict[str, bytes] = {}
    with contextlib.suppress(OSError):  # nor attributes
        attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_size, flags, attributes, names
