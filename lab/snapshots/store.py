"""The store of snapshots: opening one for a benchmark, listing them, and refusing what is none."""

from __future__ import annotations

import fcntl
import re
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from lab.errors import InputError
from lab.records import file_digest
from lab.snapshots.freeze import DATABASE
from lab.snapshots.manifest import MANIFEST, NAME_PATTERN, Manifest, read_manifest
from lab.snapshots.sqlite import check_is_database, explained, open_frozen, side_files, size_of

WAL_HEADER_BYTES = 32
"""A write-ahead log that is longer holds frames: changes that are not in the database file."""

# SQLite's locks lie on this range of the file: pending, reserved, and the range that readers share.
_LOCKS_START, _LOCKS_BYTES = 0x40000000, 512


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that was found to be what its manifest says.

    Attributes:
        folder: Where it lies.
        manifest: What it holds.
        database: The frozen file; open it with ``connect`` only.
    """

    folder: Path
    manifest: Manifest
    database: Path

    def connect(self) -> sqlite3.Connection:
        """Opens the database read-only and immutable: no lock is taken and no file appears beside it."""
        return open_frozen(self.database)

    def copy_to(self, path: Path) -> None:
        """Makes a private copy that a system under test may write to.

        Raises:
            InputError: Something is at the path, or beside it what SQLite would take for the copy's own log.
            EnvironmentUnusable: The copy cannot be written.
        """
        for taken in (path, *side_files(path)):
            if taken.exists() or taken.is_symlink():
                raise InputError(f"{taken} exists", "copy a snapshot to a path of its own")
        try:
            shutil.copyfile(self.database, path)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise explained(error, path) from error


def open_snapshot(folder: Path) -> Snapshot:
    """Opens a snapshot for a benchmark, after proving that it is what was frozen.

    The whole file is digested every time, piece by piece (a gigabyte takes about a second): size and time of a file are
    no identity.

    Raises:
        InputError: There is no manifest or it was edited, the file is not the frozen one, or it is in use.
    """
    if folder.is_file():
        refuse_live(folder)
    manifest = read_manifest(folder)
    mend = f"see what changed: lab snapshot verify {folder}"
    if not manifest.is_intact():
        raise InputError(f"{folder / MANIFEST} was edited", mend)
    database = folder / DATABASE
    if not database.is_file():
        raise InputError(f"{database} is missing", "freeze the database again")
    if problem := in_use(database):
        raise InputError(f"{database} is in use: {problem}", "end that program, then freeze the database again")
    try:
        same = size_of(database) == manifest.file.bytes and file_digest(database) == manifest.file.sha256
    except OSError as error:
        raise InputError(f"{database} cannot be read: {error.strerror}", "see that you may read it") from error
    if not same:
        raise InputError(f"{database} is not the file that was frozen", mend)
    return Snapshot(folder, manifest, database)


def in_use(database: Path) -> str:
    """How a database shows that somebody writes to it; empty where it does not."""
    wal, journal = (database.with_name(database.name + suffix) for suffix in ("-wal", "-journal"))
    if size_of(wal) > WAL_HEADER_BYTES:
        return f"{wal.name} holds changes that are not in it"
    if size_of(journal):
        return f"{journal.name} holds a write that has not ended"
    try:
        with database.open("rb") as stream:
            # A shared lock is refused exactly while somebody holds one for writing; it is let go at once.
            fcntl.lockf(stream, fcntl.LOCK_SH | fcntl.LOCK_NB, _LOCKS_BYTES, _LOCKS_START)
    except BlockingIOError:
        return "a writer holds a lock on it"
    except OSError:
        return ""  # no right to read it: the caller will say so
    return ""


def refuse_live(database: Path) -> Never:
    """Refuses a plain database for a benchmark: nothing says that it will be the same at the next query.

    Raises:
        InputError: Always, with the way to freeze it.
    """
    check_is_database(database)
    problem = in_use(database)
    state = f"is in use: {problem}" if problem else "is a live database, not a snapshot"
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", database.stem).lstrip("._-")[:64] or "memory"
    raise InputError(f"{database} {state}", f"lab snapshot freeze {database} --name {stem}")


def find_snapshot(given: str, root: Path) -> Path:
    """The folder of a snapshot by its name under ``root``, or by its path.

    Raises:
        InputError: There is none.
    """
    if re.fullmatch(NAME_PATTERN, given) and (root / given / MANIFEST).exists():
        return root / given
    path = Path(given)
    if path.is_file():
        refuse_live(path)
    if path.is_dir():
        return path
    known = ", ".join(folder.name for folder in snapshot_folders(root))
    raise InputError(f"no snapshot {given!r} under {root}", f"one of [{known}]" if known else "lab snapshot freeze")


def snapshot_folders(root: Path) -> tuple[Path, ...]:
    """Folders under ``root`` that have a manifest, sound or not, by name; unfinished ones are hidden."""
    return tuple(sorted(path.parent for path in root.glob(f"[!.]*/{MANIFEST}")))
