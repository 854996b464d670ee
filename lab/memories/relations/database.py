"""The file of a relation graph: its table, the triggers that refuse a change, and SQLite's faults as clear lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.records import first_fault
from lab.snapshots.sqlite import statements

APPLICATION_ID, VERSION = 0x4C616252, 1
"""What marks a file as ours (``LabR``) and its layout."""

WAIT_SECONDS = 30.0
"""How long a writer waits for another."""

# A replacing insert deletes without a delete trigger, so the insert is refused as well where the id is there.
_SCHEMA = """
CREATE TABLE claims(
    id TEXT PRIMARY KEY, subject TEXT NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL,
    valid_from TEXT NOT NULL, valid_to TEXT, ingested_at TEXT NOT NULL, supersedes TEXT
) WITHOUT ROWID;
CREATE INDEX claims_subject ON claims(subject, kind);
CREATE INDEX claims_object ON claims(object);
CREATE INDEX claims_supersedes ON claims(supersedes);
CREATE TRIGGER claims_stay BEFORE UPDATE ON claims
    BEGIN SELECT RAISE(ABORT, 'a claim is never changed: append one that supersedes it'); END;
CREATE TRIGGER claims_remain BEFORE DELETE ON claims
    BEGIN SELECT RAISE(ABORT, 'a claim is never deleted: append a retraction'); END;
CREATE TRIGGER claims_are_new BEFORE INSERT ON claims WHEN EXISTS (SELECT 1 FROM claims WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'a claim of that id is there already'); END;
"""

_MACHINE = {
    sqlite3.SQLITE_FULL: "free disk space",
    sqlite3.SQLITE_IOERR: "check the disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "make its folder, and make it readable and writable",
    sqlite3.SQLITE_BUSY: "wait for the other process that writes to it",
}


def connect(path: Path | None) -> sqlite3.Connection:
    """Opens the file of a graph, or makes one.

    Args:
        path: The file; None for a graph in memory.

    Raises:
        InputError: The file is damaged, or is something else.
        EnvironmentUnusable: It cannot be opened or made.
    """
    with told(path):
        connection = sqlite3.connect(path or ":memory:", timeout=WAIT_SECONDS, isolation_level=None)
        try:
            _require_ours(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _require_ours(connection: sqlite3.Connection, path: Path | None) -> None:
    # In one transaction, or two processes could both find the file empty and make the table.
    with transaction(connection):
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if (mark, version) == (APPLICATION_ID, VERSION):
            return
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            raise InputError(f"{path} is no relation graph of this lab, or of another version", "name another file")
        for statement in statements(_SCHEMA):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing, with the right to write from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def told(path: Path | None) -> Iterator[None]:
    """What SQLite or a row's form finds wrong becomes one line with a mend."""
    where = path or "the relation graph in memory"
    try:
        yield
    except sqlite3.DatabaseError as error:
        mend = _MACHINE.get((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF)
        if mend:
            raise EnvironmentUnusable(f"{where} cannot be used: {error}", mend) from error
        raise InputError(f"{where} is damaged or no relation graph: {error}", "restore it from a backup") from error
    except ValidationError as error:
        raise InputError(
            f"{where} holds a row that is no claim: {first_fault(error)}", "restore it from a backup"
        ) from error
