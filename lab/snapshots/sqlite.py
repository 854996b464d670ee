"""How databases are opened and how SQLite's errors are told: one line that names the file, and the mend."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lab.errors import EnvironmentUnusable, InputError, LabError

MAGIC = b"SQLite format 3\x00"
SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite adds to a database's name for the files that it keeps beside it."""

_RETRY_SECONDS = 0.0002
RECOVER = "mend a copy of it first: sqlite3 COPY .recover | sqlite3 MENDED.db"

_MEANING: dict[int, tuple[type[LabError], str, str]] = {
    sqlite3.SQLITE_BUSY: (InputError, "{path} is locked by a writer", "try again when its transaction has ended"),
    sqlite3.SQLITE_FULL: (
        EnvironmentUnusable,
        "the disk is full: {path}",
        "make room, then give the same command again",
    ),
    sqlite3.SQLITE_IOERR: (
        EnvironmentUnusable,
        "{path} cannot be read or written: {error}",
        "look at the disk and its free space",
    ),
    sqlite3.SQLITE_READONLY: (
        InputError,
        "{path} holds a write that was interrupted and waits to be rolled back",
        "open it once with its own program, or: sqlite3 FILE 'PRAGMA user_version'",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        InputError,
        "{path} cannot be opened: {error}",
        "a database in WAL mode needs a folder that can be written to; copy it there together with its -wal file",
    ),
}
"""By SQLite's primary result code; every other one is about what is in the file."""


def quoted(name: str) -> str:
    """An SQL identifier for any name."""
    return '"' + name.replace('"', '""') + '"'


def check_is_database(path: Path) -> None:
    """Refuses what cannot be a database, in the words of whoever gave the path.

    Raises:
        InputError: There is no such file, it cannot be read, or it is something else.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder", "give the database file in it")
    if not path.is_file():
        raise InputError(f"no database at {path}", "give the path of an SQLite file, such as memory_store.db")
    try:
        with path.open("rb") as stream:
            head = stream.read(len(MAGIC))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "give yourself the right to read it") from error
    if not head:
        raise InputError(f"{path} is empty", "give a database that its program has written to")
    if head != MAGIC:
        raise InputError(f"{path} is not an SQLite database, or it is encrypted", "give a plain SQLite file")


@contextmanager
def reading_live(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Opens somebody's database for reading, beside its writers, within a transaction that fixes one state of it.

    Args:
        path: The database.
        timeout: Seconds to try for while a writer holds it locked.

    Raises:
        sqlite3.Error: It cannot be read, or stays locked.
    """
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
        end = time.monotonic() + timeout
        while True:
            connection.execute("BEGIN")
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                break
            except sqlite3.OperationalError as error:
                connection.rollback()
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            # SQLite's own busy handler soon asks every 100 ms only: beside a writer that commits without pause to a
            # rollback journal it found no gap in 5 s.
            time.sleep(_RETRY_SECONDS)
        yield connection


def open_frozen(path: Path) -> sqlite3.Connection:
    """Opens a database that nobody changes: no lock is taken and no file appears beside it."""
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def explained(error: Exception, path: Path) -> LabError:
    """What an error of SQLite means to the user.

    Args:
        error: The error; of ``sqlite3``, of the system, or of decoding a name that is no text.
        path: The file that was read or written.
    """
    if isinstance(error, OSError):
        return EnvironmentUnusable(f"{path} cannot be written: {error.strerror}", "make room or choose another folder")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    kind, what, mend = _MEANING.get(code, (InputError, "{path} is damaged: {error}", RECOVER))
    return kind(what.format(path=path, error=error), mend)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.is_file() else 0


def side_files(database: Path) -> tuple[Path, ...]:
    """Files that SQLite has left beside a database."""
    beside = (database.with_name(database.name + suffix) for suffix in SIDE_FILES)
    return tuple(path for path in beside if os.path.lexists(path))


def statements(script: str) -> Iterator[str]:
    """The statements of a script; ``executescript`` would commit the transaction in which they are to stand."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
