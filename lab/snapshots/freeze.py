"""Freezing: a consistent copy of a database while others write to it, in a folder with its manifest, or nothing."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import lab
from lab.errors import InputError
from lab.records import file_digest
from lab.snapshots.fulltext import check_full_text
from lab.snapshots.identity import Content, identify
from lab.snapshots.manifest import MANIFEST, NAME_PATTERN, FrozenFile, Manifest, Source, Tools
from lab.snapshots.sqlite import RECOVER, check_is_database, explained, open_frozen, reading_live

DATABASE = "memory.db"
"""Name of the database in every snapshot; it is never taken from data."""

LOCK_SECONDS = 10.0
"""How long a freeze waits by default for a writer that holds its database locked."""

Progress = Callable[[int, int], None]
"""Is told how many bytes of the copy are done, and of how many."""

# The copy is made in steps only so that progress can be shown. SQLite begins a backup again at its first page when the
# source was written to between two steps. Measured, 80 MB in steps of 1,000 pages beside a writer that commits without
# pause: not done after 20 s, with 2,501 new beginnings in WAL mode and 11,604 with a rollback journal. So one read
# transaction is held on the source throughout: it fixes one state, nothing begins again (0 times; 0.2 s), and the copy
# ends after one pass, in one step or in many. In WAL mode the writer goes on meanwhile; with a rollback journal its
# commit waits for the copy, about a second for a gigabyte in memory, which its busy timeout must allow.
_STEP_PAGES = 4096
_SYNC_SECONDS = 0.1

# The source is read through a memory map: its pages then cost no system call each. 1.3 GB to disk, median of five
# beside other work: cp 1.18 s, without the map 1.89 s, with it 1.61 s, without map and syncing meanwhile 2.26 s.
# The price: a disk that fails while it is read ends the process with SIGBUS instead of a line; that, too, leaves
# nothing that looks like a snapshot.
_MAPPED_BYTES = 2**31 - 1


def freeze(
    source: Path,
    folder: Path,
    *,
    name: str,
    licence: str,
    progress: Progress | None = None,
    timeout: float = LOCK_SECONDS,
) -> Manifest:
    """Freezes a database as ``<folder>/<name>/``.

    The snapshot is made in a hidden folder beside and renamed when it is complete and on disk, so that a full disk or a
    killed freeze leaves nothing that looks like a snapshot. What a killed one left is removed by the next of that name.

    Args:
        source: The database, in use or not. It is opened for reading only.
        folder: Folder of the snapshots; made where it is missing.
        name: Name of the snapshot.
        licence: Licence of the data, or ``synthetic``.
        progress: Is called while the copy is made.
        timeout: Seconds to wait for a writer that holds the source locked.

    Raises:
        InputError: The name is none, the snapshot exists, or the source is no sound database or stays locked.
        EnvironmentUnusable: The copy cannot be written: no space, no right.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        raise InputError(f"{name!r} is no name of a snapshot", "use letters, digits, dot, dash, underscore; 64 at most")
    check_is_database(source)
    target = folder / name
    if os.path.lexists(target):
        raise InputError(f"{target} exists and is never overwritten", "choose another name, or remove it yourself")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _place(folder, name) as part:
            database = part / DATABASE
            journal_mode = copy_database(source, database, progress=progress, timeout=timeout)
            looked = _look_at(source, database)
            manifest = Manifest(
                name=name,
                created=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
                licence=licence,
                source=Source(file=os.fsencode(source.name).decode("utf-8", "replace"), journal_mode=journal_mode),
                file=looked.file,
                content=looked.content,
                content_sha256=looked.content.digest(),
                tools=Tools(lab=lab.__version__, sqlite=sqlite3.sqlite_version, python=platform.python_version()),
            ).sealed()
            database.chmod(0o444)
            _write_synced(part / MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")
            _sync(part)
            try:
                part.rename(target)
            except OSError as error:  # somebody else made one of that name meanwhile
                raise InputError(f"{target} exists and is never overwritten", "choose another name") from error
        _sync(folder)
    except OSError as error:
        raise explained(error, target) from error
    return manifest


@contextmanager
def _place(folder: Path, name: str) -> Iterator[Path]:
    """A hidden empty folder that is this process's own; removed at the end unless it was renamed.

    Raises:
        InputError: Another process is freezing under that name.
    """
    part = folder / f".{name}.part"
    part.mkdir(exist_ok=True)
    held = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between open and lock the owner before may have renamed it: then the lock is on a finished snapshot.
            mine = part.exists() and os.path.samestat(part.stat(), os.fstat(held))
        except BlockingIOError:
            mine = False
        if not mine:
            raise InputError(f"another lab is freezing {folder / name}", "wait until it has ended")
        for left in part.iterdir():  # of one that was killed
            left.unlink()
        try:
            yield part
        finally:
            if part.exists() and os.path.samestat(part.stat(), os.fstat(held)):
                shutil.rmtree(part, ignore_errors=True)
    finally:
        os.close(held)


def copy_database(
    source: Path, target: Path, *, progress: Progress | None = None, timeout: float = LOCK_SECONDS
) -> str:
    """Copies one consistent state of a database, on disk when it returns, that needs no file beside it.

    Args:
        source: Database that others may be writing to.
        target: New file.
        progress: Is called after each piece.
        timeout: Seconds to wait for a writer that holds the source locked.

    Returns:
        Journal mode of the source.

    Raises:
        InputError: The source cannot be read, or stays locked.
        EnvironmentUnusable: The copy cannot be written.
    """
    try:
        with reading_live(source, timeout) as live:
            live.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
            journal_mode: str = live.execute("PRAGMA journal_mode").fetchone()[0]
            page_size: int = live.execute("PRAGMA page_size").fetchone()[0]
            _copy_pages(live, target, page_size, progress)
    except sqlite3.Error as error:
        at_fault = target if _is_about_writing(error) else source
        raise explained(error, at_fault) from error
    return journal_mode


def _copy_pages(live: sqlite3.Connection, target: Path, page_size: int, progress: Progress | None) -> None:
    def told(_status: int, remaining: int, total: int) -> None:
        if progress:
            progress((total - remaining) * page_size, total * page_size)

    target.touch(exist_ok=False)
    with closing(sqlite3.connect(target, isolation_level=None)) as copy, _written_back(target):
        # Nobody sees the copy before it is whole, so it needs no journal; it is brought to disk below, once.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            copy.execute(f"PRAGMA {pragma}")
        live.backup(copy, pages=_STEP_PAGES, progress=told)
        # The copy has the source's mode in its header; in WAL mode even a reader would leave files beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
    _sync(target)


@contextmanager
def _written_back(path: Path) -> Iterator[None]:
    """Brings a file to disk while it is being written, so that the last sync finds little left to do."""
    done = threading.Event()

    def sync() -> None:
        while not done.wait(_SYNC_SECONDS):
            _sync(path)

    with ThreadPoolExecutor(1) as pool:
        syncing = pool.submit(sync)
        try:
            yield
        finally:
            done.set()
    syncing.result()


def _is_about_writing(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    reading = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)
    return code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR) and code not in reading


@dataclass(frozen=True)
class _Looked:
    """What was seen in a copy."""

    file: FrozenFile
    content: Content


def _look_at(source: Path, database: Path) -> _Looked:
    """Checks and digests a copy; its bytes and its contents at the same time, for both are work of seconds.

    Raises:
        InputError: The source was damaged: its copy is not sound.
        EnvironmentUnusable: There is no space to sort its rows in.
    """
    with ThreadPoolExecutor(1) as pool:
        file = pool.submit(_look_at_file, source, database)
        try:
            with closing(open_frozen(database)) as connection:
                content = identify(connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            file.result()  # what the checks say is more exact, where they say something
            raise explained(error, source) from error
        return _Looked(file.result(), content)


def _look_at_file(source: Path, database: Path) -> FrozenFile:
    try:
        with closing(open_frozen(database)) as connection:
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            page_size, schema_version = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "schema_version")
            )
    except sqlite3.Error as error:
        raise explained(error, source) from error
    try:
        # SQLite 3.44 and later looks into full-text indexes as well, but knows no mend for them.
        if said == "ok" or "fts5" in said.lower():
            check_full_text(database, source)
    except sqlite3.Error as error:
        raise explained(error, source) from error
    if said != "ok":
        raise InputError(f"{source} is damaged: {' '.join(said.split())}", RECOVER)
    return FrozenFile(
        bytes=database.stat().st_size,
        sha256=file_digest(database),
        page_size=page_size,
        schema_version=schema_version,
    )


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
