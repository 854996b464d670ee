"""What importing the agent does to a home, and depends on in it: so that a fork's home is that of a cold start.

Modules of the agent make directories and files in the home while they are imported, and read its configuration. A
fork has that behind it. So what importing made is laid into each new home, and a session whose home differs in what
importing looked at is started cold.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.isolation.base import sandbox_ids
from lab.records import digest

_MOST_BYTES = 8 << 20
"""Of all files together that importing may make."""

State = tuple[str, ...]
"""What is at a path: kind, and where it is asked for a file's digest or a directory's names."""


class ImportsTooMuch(Exception):
    """Importing does to the home what cannot be repeated in another."""


@dataclass(frozen=True)
class Lesson:
    """What a rehearsal has taught.

    Attributes:
        modules: Modules to import, in order.
        touched: Paths of the home that importing them looks at, each with what it looks at: ``content``, ``names``,
            ``kind``.
    """

    modules: tuple[str, ...] = ()
    touched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Contents:
    """What is in a home.

    Attributes:
        directories: Modes by path.
        files: Modes and bytes by path.
    """

    directories: Mapping[str, int]
    files: Mapping[str, tuple[int, bytes]]

    @classmethod
    def of(cls, home: Path) -> Contents:
        """Reads a home in which no session has run.

        Raises:
            ImportsTooMuch: It holds more than can be copied, or what is neither file nor directory.
        """
        directories, files, room = {}, {}, _MOST_BYTES
        for path in sorted(home.rglob("*")):
            name, info = str(path.relative_to(home)), path.lstat()
            if stat.S_ISDIR(info.st_mode):
                directories[name] = stat.S_IMODE(info.st_mode)
                continue
            room -= info.st_size
            if not stat.S_ISREG(info.st_mode) or room < 0:
                raise ImportsTooMuch(f"importing the agent makes {name} in its home, which cannot be copied")
            files[name] = (stat.S_IMODE(info.st_mode), path.read_bytes())
        return cls(directories, files)


@dataclass(frozen=True)
class Trace:
    """What importing left in a home and saw of it.

    Attributes:
        directories: Modes of the directories that importing made, or gave another mode, by path.
        files: Mode and content of the files that importing made, by path.
        touched: As of the lesson.
        seen: State of every touched path afterwards.
    """

    directories: dict[str, int] = field(default_factory=dict)
    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    touched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seen: dict[str, State] = field(default_factory=dict)

    @classmethod
    def of(cls, home: Path, seed: Contents, touched: Mapping[str, tuple[str, ...]]) -> Trace:
        """Reads it off a home in which the agent was imported.

        Args:
            home: The home; no session has run in it.
            seed: What was in it before.
            touched: Paths that importing touches.

        Raises:
            ImportsTooMuch: It changed a file that was there, or made what is neither file nor directory.
        """
        after = Contents.of(home)
        if gone := (seed.directories.keys() | seed.files.keys()) - (after.directories.keys() | after.files.keys()):
            raise ImportsTooMuch(f"importing the agent removes {sorted(gone)} from its home")
        if changed := [name for name, file in seed.files.items() if after.files[name] != file]:
            raise ImportsTooMuch(f"importing the agent changes {changed} in its home")
        directories = {n: mode for n, mode in after.directories.items() if seed.directories.get(n) != mode}
        files = {name: file for name, file in after.files.items() if name not in seed.files}
        return cls(directories, files, touched, _states(home, touched))

    def lay(self, home: Path) -> None:
        """Makes in a home what importing would make there.

        Only before its first session: afterwards a link may lead out of it.
        """
        for name, mode in self.directories.items():
            path = home / name
            path.mkdir(exist_ok=True)
            path.chmod(mode)
            _give(path)
        for name, (mode, data) in self.files.items():
            path = home / name
            if not path.exists():
                path.write_bytes(data)
                path.chmod(mode)
                _give(path)

    def holds_in(self, home: Path) -> bool:
        """Whether importing would see and leave in this home what it saw and left in its own; reads only."""
        return (
            all(_is(home / name, stat.S_ISDIR) for name in self.directories)
            and all(_is(home / name, stat.S_ISREG) for name in self.files)
            and _states(home, self.touched) == self.seen
        )


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(path.lstat().st_mode)
    except OSError:
        return False


def _states(home: Path, touched: Mapping[str, tuple[str, ...]]) -> dict[str, State]:
    return {name: _state(home / name, parts) for name, parts in touched.items()}


def _state(path: Path, parts: tuple[str, ...]) -> State:
    try:
        info = path.lstat()
        if stat.S_ISDIR(info.st_mode):
            return ("directory", *(sorted(entry.name for entry in path.iterdir()) if "names" in parts else ()))
        if not stat.S_ISREG(info.st_mode):
            return ("other",)
        if "content" not in parts:
            return ("file",)
        return ("file", digest(path.read_bytes()) if info.st_size <= _MOST_BYTES else str(info.st_mtime_ns))
    except FileNotFoundError:
        return ("absent",)
    except OSError as error:
        return ("unreadable", type(error).__name__)


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, *sandbox_ids(), follow_symlinks=False)
