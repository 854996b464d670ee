"""The searchable texts of a stored file: plain text, the strings of JSON, the rows of a database."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SQLITE_MAGIC = b"SQLite format 3\x00"
MAX_CHARACTERS = 64 << 20
MAX_VALUE_BYTES = 16 << 20
MAX_STEPS = 20_000_000
"""Bounds of reading a database that a trial has made: a small file may promise gigabytes."""


class TooMuchToRead(Exception):
    """The content is larger than may be read, or cannot be read whole; its absence cannot be shown."""


def readable_texts(data: bytes, wal: bytes = b"") -> list[tuple[str, str]]:
    """Lists a file's texts with their places.

    Text is given as it stands; of JSON also every string with its escapes resolved, for behind an escaped line break a
    word does not stand alone in the bytes. A database is read by its rows: its pages may hold rows that were deleted.

    Args:
        data: Content of the file.
        wal: Content of a database's write-ahead log beside it.

    Returns:
        Place (empty for the text itself) and text.

    Raises:
        TooMuchToRead: The file cannot be read whole within its bounds.
    """
    if data.startswith(SQLITE_MAGIC):
        return _rows(data, wal)
    text = data.decode("utf-8", "replace")
    texts = [("", text)]
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):  # no JSON after all: its text is taken as it stands
            texts += [("(a string of its JSON)", string) for string in _strings(json.loads(text))]
    return texts


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _rows(data: bytes, wal: bytes) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix=f"lab-work-{os.getpid()}-db-") as scratch:
        database = Path(scratch) / "copy.db"
        database.write_bytes(data)
        if wal:
            database.with_name("copy.db-wal").write_bytes(wal)
        connection = sqlite3.connect(database)
        try:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            steps = iter(range(MAX_STEPS // 10_000))
            connection.set_progress_handler(lambda: next(steps, None) is None, 10_000)
            return list(_within_bounds(connection))
        except (sqlite3.Error, MemoryError) as error:
            raise TooMuchToRead(str(error)) from error
        finally:
            connection.close()


def _within_bounds(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    room = MAX_CHARACTERS
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        quoted = table.replace('"', '""')
        for number, row in enumerate(connection.execute(f'SELECT * FROM "{quoted}"'), 1):  # noqa: S608
            text = "\n".join(_cell(value) for value in row if value is not None)
            room -= len(text)
            if room < 0:
                raise TooMuchToRead(f"more than {MAX_CHARACTERS} characters in its rows")
            yield f"table {table} row {number}", text


def _cell(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
