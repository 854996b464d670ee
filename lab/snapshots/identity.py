"""Identity of a database: the digest of its logical content, which pages and their order have no part in."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ConfigDict, Field

from lab.records import Record, canonical_json, digest
from lab.snapshots.relations import Relation, contents

CONTENT_RULE = 1
"""Version of the rule by which content is digested; part of every digest."""

_PIECE_BYTES = 1 << 16
"""Small enough to stay in a processor's cache between being written and being digested: a third faster than 1 MiB."""

_REAL = struct.Struct(">d")


class TableContent(Record):
    """The rows of one table."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    rows: int = Field(ge=0)
    """Number of rows."""
    sha256: str
    """Digest of all rows in their defined order."""


class Content(Record):
    """What a database says, without how it is laid out."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    encoding: str
    """Encoding of its text."""
    user_version: int
    """`PRAGMA user_version`: the version of the schema that its program keeps."""
    application_id: int
    """`PRAGMA application_id`."""
    objects: dict[str, str]
    """Digest of the definition of every table, index, trigger and view, by kind and name."""
    tables: dict[str, TableContent]
    """Rows of every table; `NAME (index)` is the vocabulary of a full-text index over another table."""

    def digest(self) -> str:
        """The identity: digest of all this, and of the rule by which it was taken."""
        return digest({"rule": CONTENT_RULE, **self.model_dump(mode="json")})


def content_digest(connection: sqlite3.Connection) -> str:
    """Digest of a database's logical content; see ``identify``."""
    return identify(connection).digest()


def identify(connection: sqlite3.Connection) -> Content:
    """Reads a whole database once and digests what it says.

    Rows are streamed, so memory is bounded by the largest value; tables without a key are sorted by SQLite, on disk
    where they are large. Values are digested with their type. A real -0.0 counts as 0.0, which SQLite takes for equal;
    it stores no NaN.

    Args:
        connection: Open database; one that others write to is read within one transaction.

    Raises:
        sqlite3.Error: It cannot be read.
        UnicodeDecodeError: A name in its schema is no text.
    """
    with _raw_text(connection), _one_state(connection):
        found = contents(connection)
        tables = {name: _table(connection, relation) for name, relation in found.relations.items()}
        encoding, user_version, application_id = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("encoding", "user_version", "application_id")
        )
    return Content(
        encoding=encoding.decode(),
        user_version=user_version,
        application_id=application_id,
        objects=found.objects,
        tables=tables,
    )


@contextmanager
def _raw_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text comes as ``bytearray``, so that it is told from a BLOB and need not be valid; rows come as plain tuples."""
    kept = connection.text_factory, connection.row_factory
    connection.text_factory, connection.row_factory = bytearray, None
    try:
        yield
    finally:
        connection.text_factory, connection.row_factory = kept


@contextmanager
def _one_state(connection: sqlite3.Connection) -> Iterator[None]:
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.rollback()


def _table(connection: sqlite3.Connection, relation: Relation) -> TableContent:
    if not relation.columns:
        return TableContent(rows=0, sha256=digest(b""))
    digested = hashlib.sha256(canonical_json(relation.columns))
    rows = 0
    buffer = bytearray()
    for row in connection.execute(relation.select()):
        rows += 1
        _append(buffer, row)
        if len(buffer) > _PIECE_BYTES:
            digested.update(buffer)
            buffer.clear()
    digested.update(buffer)
    return TableContent(rows=rows, sha256=digested.hexdigest())


def _append(buffer: bytearray, row: Iterable[Any]) -> None:
    """Writes a row so that no other row is written the same: each value with its type, and its length where it varies.

    This runs once for every value of a database of gigabytes; hence the tests by type, in the order of frequency.
    """
    for value in row:
        kind = type(value)
        if kind is bytearray:
            buffer += b"t%d:" % len(value)
            buffer += value
        elif kind is int:
            buffer += b"i%d;" % value
        elif kind is float:
            buffer += b"r" + _REAL.pack(value + 0.0)
        elif value is None:
            buffer += b"n"
        else:
            buffer += b"b%d:" % len(value)
            buffer += value
    buffer += b"\n"
