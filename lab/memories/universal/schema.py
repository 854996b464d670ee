"""The universal layer's own SQLite file: its tables, how it is opened, and what SQLite's errors mean to a user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import InputError, LabError
from lab.memories.universal.records import SCHEMA_VERSION
from lab.snapshots.sqlite import explained, statements

APPLICATION_ID = 0x4C616255
"""Marks a file as a store of the universal layer (``LabU``)."""

WAIT_SECONDS = 10.0
"""How long one writer waits for another's transaction."""

_COLUMNS = """
    record_id INTEGER PRIMARY KEY {autoincrement},
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('episodic', 'semantic')),
    agent_id TEXT NOT NULL,
    content TEXT NOT NULL,
    tags TEXT NOT NULL,
    trust REAL NOT NULL CHECK (trust BETWEEN 0 AND 1),
    created_at REAL,
    last_used_at REAL,
    ttl REAL,
    access_count INTEGER NOT NULL DEFAULT 0,
    founder INTEGER CHECK ((founder IS NULL) = (kind = 'episodic')),
    schema_version INTEGER NOT NULL
"""
COLUMNS = (
    "record_id, key, kind, agent_id, content, tags, trust, created_at, last_used_at, ttl, access_count, founder, "
    "schema_version"
)
"""What a record and an archived record have in common."""

_SAME = "(key, content, tags) = (old.key, old.content, old.tags)"

# The triggers are why nothing is ever lost, whoever gives the order: a row leaves one of the two tables only when the
# other one has it, and never changes but for its use and its trust. A replacing insert deletes without a delete
# trigger, so the insert is refused as well where the row is there.
_TABLES = f"""
CREATE TABLE records ({_COLUMNS.format(autoincrement="AUTOINCREMENT")});
CREATE TABLE archive ({_COLUMNS.format(autoincrement="")},
    archived_at REAL NOT NULL, reason TEXT NOT NULL CHECK (reason IN ('expired', 'least used')));
CREATE TABLE sources (record_id INTEGER NOT NULL, source_id INTEGER NOT NULL, PRIMARY KEY (record_id, source_id))
    WITHOUT ROWID;
CREATE TABLE entities (entity_id INTEGER PRIMARY KEY, name TEXT NOT NULL, words TEXT NOT NULL UNIQUE);
CREATE TABLE mentions (record_id INTEGER NOT NULL, entity_id INTEGER NOT NULL REFERENCES entities,
    PRIMARY KEY (record_id, entity_id)) WITHOUT ROWID;
CREATE INDEX mentions_of_entity ON mentions (entity_id, record_id);
CREATE TABLE relations (record_id INTEGER NOT NULL, subject_id INTEGER NOT NULL REFERENCES entities,
    kind TEXT NOT NULL, target_id INTEGER NOT NULL REFERENCES entities,
    PRIMARY KEY (record_id, subject_id, kind, target_id)) WITHOUT ROWID;
CREATE INDEX relations_of_subject ON relations (subject_id);
CREATE INDEX relations_of_target ON relations (target_id);
CREATE VIRTUAL TABLE words USING fts5(content, tags, tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE batches (batch_id INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL DEFAULT 'staged' CHECK (state IN ('staged', 'committed', 'discarded')));
CREATE TABLE staged (batch_id INTEGER NOT NULL REFERENCES batches, position INTEGER NOT NULL,
    draft TEXT, record_id INTEGER, PRIMARY KEY (batch_id, position)) WITHOUT ROWID;
CREATE TABLE generation (number INTEGER NOT NULL);
INSERT INTO generation VALUES (0);
CREATE TRIGGER one_more AFTER INSERT ON records BEGIN UPDATE generation SET number = number + 1; END;
CREATE TRIGGER one_less AFTER DELETE ON records BEGIN UPDATE generation SET number = number + 1; END;
CREATE TRIGGER nothing_is_deleted BEFORE DELETE ON records
    WHEN NOT EXISTS (SELECT 1 FROM archive WHERE record_id = old.record_id AND {_SAME})
    BEGIN SELECT RAISE(ABORT, 'a record is archived, never deleted'); END;
CREATE TRIGGER nothing_leaves_the_archive BEFORE DELETE ON archive
    WHEN NOT EXISTS (SELECT 1 FROM records WHERE record_id = old.record_id AND {_SAME})
    BEGIN SELECT RAISE(ABORT, 'an archived record is restored, never deleted'); END;
CREATE TRIGGER records_stay
    BEFORE UPDATE OF record_id, key, kind, agent_id, content, tags, created_at, ttl, founder, schema_version ON records
    BEGIN SELECT RAISE(ABORT, 'a record is never rewritten: commit another'); END;
CREATE TRIGGER the_archive_stays BEFORE UPDATE ON archive
    BEGIN SELECT RAISE(ABORT, 'an archived record is never rewritten: commit another'); END;
CREATE TRIGGER records_are_new BEFORE INSERT ON records
    WHEN EXISTS (SELECT 1 FROM records WHERE record_id = new.record_id OR key = new.key)
    BEGIN SELECT RAISE(ABORT, 'that record is there already'); END;
CREATE TRIGGER archived_ones_are_new BEFORE INSERT ON archive
    WHEN EXISTS (SELECT 1 FROM archive WHERE record_id = new.record_id OR key = new.key)
    BEGIN SELECT RAISE(ABORT, 'that record is archived already'); END;
CREATE TRIGGER sources_remain BEFORE DELETE ON sources
    BEGIN SELECT RAISE(ABORT, 'a source is never deleted'); END;
CREATE TRIGGER sources_stay BEFORE UPDATE ON sources
    BEGIN SELECT RAISE(ABORT, 'a source is never changed'); END;
"""  # noqa: S608 - no value stands in it


def open_database(path: Path) -> sqlite3.Connection:
    """Opens a store that is there, or makes one; in WAL mode, so that readers do not wait for a writer.

    Raises:
        InputError: It is another program's, damaged, locked, or of another version.
        EnvironmentUnusable: It cannot be written.
    """
    with told(path):
        connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA foreign_keys = ON")
            with transaction(connection):
                _make_or_check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing; takes the right to write at once, so that two writers wait and never collide halfway."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into one line that names the file."""
    try:
        yield
    except LabError:
        raise
    except sqlite3.Error as error:
        raise explained(error, path) from error


def _make_or_check(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION_ID:
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{path} has schema version {version}, this lab reads {SCHEMA_VERSION}",
                "use the lab that wrote it, or make a new store",
            )
        return
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise InputError(f"{path} is a database of another program", "name another file for the universal layer")
    for statement in statements(_TABLES):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
