"""Databases for the tests of snapshots: a memory of upstream's shape, and a writer in a process of its own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

MEMORY = """
CREATE TABLE facts (fact_id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL UNIQUE, tags TEXT DEFAULT '',
    trust_score REAL DEFAULT 0.5, hrr_vector BLOB);
CREATE TABLE fact_entities (fact_id INTEGER, entity_id INTEGER, PRIMARY KEY (fact_id, entity_id));
CREATE INDEX idx_facts_trust ON facts(trust_score DESC);
CREATE VIRTUAL TABLE facts_fts USING fts5(content, tags, content=facts, content_rowid=fact_id);
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags); END;
CREATE TRIGGER facts_ad AFTER DELETE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags); END;
CREATE TRIGGER facts_au AFTER UPDATE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags);
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags); END;
"""

# Every transaction books one amount in both tables, so that in any consistent state their sums are the same. It writes
# without pause until it is killed; the first line says that it has begun.
WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
connection.executescript('''
CREATE TABLE IF NOT EXISTS facts (fact_id INTEGER PRIMARY KEY, content TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS ledger (entry INTEGER PRIMARY KEY, amount INTEGER);
''')
number = 0
while True:
    number += 1
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO facts (content, amount) VALUES (?, ?)", ("fact " * 40, number))
    connection.execute("INSERT INTO ledger (amount) VALUES (?)", (number,))
    connection.execute("COMMIT")
    if number == int(sys.argv[3]):
        print("begun", flush=True)
        if sys.argv[4] == "hold":
            sys.stdin.read()
"""


def make_memory(path: Path, count: int = 50, *, journal_mode: str = "delete", page_size: int = 4096) -> Path:
    """A database of ``count`` facts with an index and a full-text index over them."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.executescript(MEMORY)
        rows = ((f"fact {n} about topic{n % 7}", "a,b", n / 10, bytes([n % 256] * 16)) for n in range(count))
        connection.executemany("INSERT INTO facts (content, tags, trust_score, hrr_vector) VALUES (?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO fact_entities VALUES (2, 1), (1, 1)")
        connection.commit()
    return path


def execute(path: Path, script: str) -> None:
    """Runs SQL on a database, also on a frozen one that may not be written to."""
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()


@contextmanager
def writing(
    path: Path, *, journal_mode: str = "wal", after: int = 50, hold: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes; with ``hold`` it stops after ``after`` transactions and keeps its connection."""
    command = [sys.executable, "-c", WRITER, str(path), journal_mode, str(after), "hold" if hold else "go on"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "begun\n"
            yield process
        finally:
            process.kill()


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their relative path."""
    return {os.fspath(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def wait_for(path: Path, seconds: float = 20) -> None:
    """Waits until a file is there and holds something."""
    end = time.monotonic() + seconds
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.001)
