"""The database: upstream's tables under upstream's names, our columns beside them, and how they come there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

VERSION = 1
"""``PRAGMA user_version`` of a database with our columns; upstream's own says 0."""

UPSTREAM = """
CREATE TABLE IF NOT EXISTS facts (
    fact_id INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL UNIQUE,
    category TEXT DEFAULT 'general',
    tags TEXT DEFAULT '',
    trust_score REAL DEFAULT 0.5,
    retrieval_count INTEGER DEFAULT 0,
    helpful_count INTEGER DEFAULT 0,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    hrr_vector BLOB
);
CREATE TABLE IF NOT EXISTS entities (
    entity_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    entity_type TEXT DEFAULT 'unknown',
    aliases TEXT DEFAULT '',
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS fact_entities (
    fact_id INTEGER REFERENCES facts(fact_id),
    entity_id INTEGER REFERENCES entities(entity_id),
    PRIMARY KEY (fact_id, entity_id)
);
CREATE INDEX IF NOT EXISTS idx_facts_trust ON facts(trust_score DESC);
CREATE INDEX IF NOT EXISTS idx_facts_category ON facts(category);
CREATE INDEX IF NOT EXISTS idx_entities_name ON entities(name);
CREATE VIRTUAL TABLE IF NOT EXISTS facts_fts USING fts5(content, tags, content=facts, content_rowid=fact_id);
CREATE TRIGGER IF NOT EXISTS facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags);
END;
CREATE TRIGGER IF NOT EXISTS facts_ad AFTER DELETE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags);
END;
CREATE TRIGGER IF NOT EXISTS facts_au AFTER UPDATE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags);
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags);
END;
CREATE TABLE IF NOT EXISTS memory_banks (
    bank_id INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_name TEXT NOT NULL UNIQUE,
    vector BLOB NOT NULL,
    dim INTEGER NOT NULL,
    fact_count INTEGER DEFAULT 0,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
"""
"""Upstream's tables. The names are the interface: the real plugin opens our database, and we open its."""

_OWN_COLUMNS = {
    "author": "TEXT NOT NULL DEFAULT 'unknown'",
    "keywords": "TEXT NOT NULL DEFAULT ''",
}
_NEEDED = frozenset({"fact_id", "content", "tags", "trust_score", "created_at", "updated_at"})


class StoreUnreadable(ValueError):
    """The file is no database of facts that this version reads; the message says what was found."""


def open_store(path: Path) -> sqlite3.Connection:
    """Opens a database that is ours to write, makes it where there is none, and gives it our columns.

    Opening it again changes nothing. No row is written, so no fact looks younger than it is.

    Raises:
        StoreUnreadable: It is something else, damaged, or of a later version.
    """
    connection = sqlite3.connect(path, check_same_thread=False, timeout=10, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        migrate(connection)
    except sqlite3.Error as error:
        connection.close()
        raise StoreUnreadable(f"{path.name} cannot be used as a fact store: {error}") from error
    except StoreUnreadable:
        connection.close()
        raise
    return connection


def migrate(connection: sqlite3.Connection) -> None:
    """Adds what upstream does not have, in one transaction.

    Raises:
        StoreUnreadable: Its facts have another shape, or a later version made it.
        sqlite3.Error: It cannot be read or written.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise StoreUnreadable(f"the store has version {version}, this plugin knows {VERSION}")
    if version == VERSION:
        _check_columns(connection)
        return
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {UPSTREAM}")
        known = _check_columns(connection)
        for name, declaration in _OWN_COLUMNS.items():
            if name not in known:
                connection.execute(f"ALTER TABLE facts ADD COLUMN {name} {declaration}")
        if "hrr_vector" not in known:  # databases of upstream's first versions
            connection.execute("ALTER TABLE facts ADD COLUMN hrr_vector BLOB")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def copy_store(source: Path, target: Path) -> None:
    """Copies a database that others may be writing, through SQLite's own backup; the source is not changed.

    Raises:
        StoreUnreadable: It cannot be read.
    """
    try:
        with (
            closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreUnreadable(f"{source.name} cannot be copied: {error}") from error


def _check_columns(connection: sqlite3.Connection) -> frozenset[str]:
    known = frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info('facts')"))
    if missing := _NEEDED - known:
        raise StoreUnreadable(f"its table of facts lacks {', '.join(sorted(missing))}")
    return known
