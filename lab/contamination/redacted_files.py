"""What is kept of a home's file that holds a secret: the same content without it, in a form that the judge reads.

Text is kept as text. A database is made anew from its rows, because its pages hold deleted rows, split values and
checksums; tables, order and words stay, so that places and verdicts do. In other bytes a secret is overwritten.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.contamination.observe.readable import MAX_VALUE_BYTES, SQLITE_MAGIC
from lab.contamination.secrets import Redactor

MAX_STEPS = 20_000_000
_COMPANIONS = ("-wal", "-journal", "-shm")


class Unredactable(Exception):
    """A file holds a secret that cannot be taken out of it."""


def redacted_file(path: Path, data: bytes, redactor: Redactor) -> bytes:
    """The content of a file without secrets; the same bytes where there are none.

    Args:
        path: The file, beside which the log of a database lies.
        data: Its content.
        redactor: What takes secrets out.

    Raises:
        Unredactable: It holds a secret and is a database that cannot be read.
        OSError: The log beside it cannot be read.
    """
    if not redactor.active:
        return data
    if path.name.endswith(_COMPANIONS):
        database = path.with_name(path.name.rpartition("-")[0])
        if database.is_file() and _holds(database, redactor):
            return b""  # what it adds is in the database that is made anew
    elif data.startswith(SQLITE_MAGIC):
        return _made_anew(path, data, redactor) if _holds(path, redactor) else data
    return redactor.data(data)


def _holds(database: Path, redactor: Redactor) -> bool:
    """Whether a database or what lies beside it holds a secret, be it in a page or in a row."""
    parts = [database, *(database.with_name(database.name + end) for end in _COMPANIONS)]
    if any(redactor.data(data) != data for part in parts if part.is_file() and (data := part.read_bytes())):
        return True
    try:
        with _opened(database.read_bytes(), _log_of(database)) as connection:
            texts = (cell for _, rows in _tables(connection) for row in rows for cell in row if cell is not None)
            return any(_cell(cell, redactor) != cell for cell in texts)
    except sqlite3.Error:
        return False  # nothing was found in its bytes, and nobody can read rows in it


def _made_anew(path: Path, data: bytes, redactor: Redactor) -> bytes:
    with tempfile.TemporaryDirectory(prefix=f"lab-work-{os.getpid()}-db-") as scratch:
        target = Path(scratch) / "clean.db"
        try:
            with _opened(data, _log_of(path)) as old, contextlib.closing(sqlite3.connect(target)) as new:
                for name, rows in _tables(old):
                    quoted = '"' + redactor.text(name).replace('"', '""') + '"'
                    columns = ", ".join(f"c{i}" for i in range(rows.width))
                    new.execute(f"CREATE TABLE {quoted} ({columns})")
                    marks = ", ".join("?" * rows.width)
                    clean = ([_cell(cell, redactor) for cell in row] for row in rows)
                    new.executemany(f"INSERT INTO {quoted} VALUES ({marks})", clean)  # noqa: S608
                new.commit()
        except sqlite3.Error as error:
            raise Unredactable(str(error)) from error
        return target.read_bytes()


class _Rows:
    """The rows of one table."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor, self.width = cursor, len(cursor.description)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._cursor)


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, _Rows]]:
    """Tables with their rows; those behind a virtual table are left out: they hold its words again, in pieces."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = tuple(f"{name}_" for name, sql in found if str(sql or "").upper().startswith("CREATE VIRTUAL"))
    for name, _ in found:
        if not name.startswith((*virtual, "sqlite_")):
            quoted = name.replace('"', '""')
            yield name, _Rows(connection.execute(f'SELECT * FROM "{quoted}"'))  # noqa: S608


@contextlib.contextmanager
def _opened(data: bytes, log: bytes) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix=f"lab-work-{os.getpid()}-db-") as scratch:
        copy = Path(scratch) / "copy.db"
        copy.write_bytes(data)
        if log:
            copy.with_name("copy.db-wal").write_bytes(log)
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            # A column that is computed may promise gigabytes.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            steps = iter(range(MAX_STEPS // 10_000))
            connection.set_progress_handler(lambda: next(steps, None) is None, 10_000)
            yield connection


def _log_of(database: Path) -> bytes:
    log = database.with_name(f"{database.name}-wal")
    return log.read_bytes() if log.is_file() else b""


def _cell(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    return redactor.data(value) if isinstance(value, bytes) else value
