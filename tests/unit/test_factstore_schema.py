"""Databases of upstream's, ours, and of nobody's: migration in a copy, and writes of others while a store is open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lab.retrieval.factstore import schema
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.systems.factstore import FactstoreSystem
from tests.factstore_stores import ids

ROWS = "SELECT fact_id, content, category, tags, trust_score, retrieval_count, created_at, updated_at FROM facts"


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A database as the real plugin leaves it, in WAL mode and with rows that are old."""
    path = tmp_path / "memory_store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(schema.UPSTREAM)
        connection.executemany(
            "INSERT INTO facts (content, tags, created_at, updated_at) VALUES (?, ?, '2020-01-01', '2020-02-02')",
            [("Ana drinks tea", "drink"), ("Otávio mora em Olinda", "")],
        )
        connection.commit()
    return path


def test_an_upstream_database_is_migrated_in_a_copy_and_no_row_changes(upstream: Path, tmp_path: Path) -> None:
    before, copy = upstream.read_bytes(), tmp_path / "copy.db"
    schema.copy_store(upstream, copy)
    with closing(schema.open_store(copy)) as store, closing(sqlite3.connect(upstream)) as old:
        assert list(map(tuple, store.execute(ROWS))) == old.execute(ROWS).fetchall()
        assert {tuple(row) for row in store.execute("SELECT author, keywords FROM facts")} == {("unknown", "")}
        assert store.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION
    assert upstream.read_bytes() == before
    system = FactstoreSystem(FactstoreSettings())
    system.open(copy)
    assert ids(system.search("olinda", 5)) == [2]


def test_opening_again_changes_nothing(upstream: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    schema.copy_store(upstream, copy)
    schema.open_store(copy).close()
    once = copy.read_bytes()
    schema.open_store(copy).close()
    assert copy.read_bytes() == once


def test_rows_in_the_write_ahead_log_come_along(upstream: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(upstream)) as writer:
        writer.execute("INSERT INTO facts (content) VALUES ('still in the log')")
        writer.commit()
        schema.copy_store(upstream, tmp_path / "copy.db")
    with closing(schema.open_store(tmp_path / "copy.db")) as store:
        assert store.execute("SELECT count(*) FROM facts").fetchone()[0] == 3


def test_a_database_of_upstreams_first_versions_gets_the_vector_column(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema.UPSTREAM.replace(",\n    hrr_vector BLOB", ""))
    with closing(schema.open_store(path)) as store:
        assert store.execute("SELECT count(hrr_vector) FROM facts").fetchone()[0] == 0


def test_a_later_version_and_foreign_tables_are_refused_and_left_alone(tmp_path: Path) -> None:
    later, foreign = tmp_path / "later.db", tmp_path / "foreign.db"
    schema.open_store(later).close()
    with closing(sqlite3.connect(later)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE facts (id INTEGER, text TEXT)")
    for path in (later, foreign):
        before = path.read_bytes()
        with pytest.raises(schema.StoreUnreadable):
            schema.open_store(path)
        assert path.read_bytes() == before
    with pytest.raises(schema.StoreUnreadable):
        schema.copy_store(tmp_path / "none.db", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_what_another_program_writes_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    schema.open_store(path).close()
    system = FactstoreSystem(FactstoreSettings())
    system.open(path)
    assert ids(system.search("otter", 5)) == []
    with closing(sqlite3.connect(path)) as other:  # knows nothing of our columns, like the real plugin
        other.execute("INSERT INTO facts (content) VALUES ('The otter sleeps')")
        other.commit()
        assert ids(system.search("otter", 5)) == [1]
        other.execute("UPDATE facts SET content = 'The badger sleeps'")
        other.commit()
        assert (ids(system.search("otter", 5)), ids(system.search("badger", 5))) == ([], [1])
