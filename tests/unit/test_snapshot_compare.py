"""The difference of two snapshots names rows added, changed and gone."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from lab.snapshots.compare import Difference, TableDifference, diff
from lab.snapshots.freeze import freeze
from lab.snapshots.store import open_snapshot
from lab.snapshots.verify import Kind
from tests.snapshot_databases import execute, make_memory


def difference(tmp_path: Path, before: str, after: str, *, limit: int = 10, memory: bool = False) -> Difference:
    """Freezes a database, runs ``after`` on it, freezes again and compares."""
    source = tmp_path / "memory.db"
    if memory:
        make_memory(source)
    execute(source, before) if source.exists() else sqlite3.connect(source).executescript(before).close()
    freeze(source, tmp_path / "s", name="a", licence="synthetic")
    execute(source, after)
    freeze(source, tmp_path / "s", name="b", licence="synthetic")
    return diff(open_snapshot(tmp_path / "s" / "a"), open_snapshot(tmp_path / "s" / "b"), limit=limit)


def table(found: Difference, name: str) -> TableDifference:
    (one,) = (t for t in found.tables if t.table == name)
    return one


def test_the_same_content_in_another_layout_has_no_difference(tmp_path: Path) -> None:
    found = difference(tmp_path, "", "VACUUM; PRAGMA page_size = 1024; VACUUM", memory=True)
    assert found.same


def test_rows_of_a_memory_are_named(tmp_path: Path) -> None:
    script = """INSERT INTO facts (content, trust_score) VALUES ('new one', 1);
        DELETE FROM facts WHERE fact_id IN (4, 5);
        UPDATE facts SET trust_score = 0.75, tags = 'c' WHERE fact_id = 7"""
    found = difference(tmp_path, "", script, memory=True)
    facts = table(found, "facts")
    assert facts.key == ("fact_id",) and (facts.added, facts.changed, facts.gone) == (1, 1, 2)
    assert facts.rows_added[0]["content"] == "new one" and facts.rows_added[0]["fact_id"] == 51
    assert [row["fact_id"] for row in facts.rows_gone] == [4, 5]
    (changed,) = facts.rows_changed
    assert changed.key == {"fact_id": 7}
    assert changed.before == {"tags": "a,b", "trust_score": 0.6} and changed.after == {"tags": "c", "trust_score": 0.75}
    assert table(found, "facts_fts (index)").rows_added[0] == {"term": "c", "doc": 1, "cnt": 1}
    assert found.changes == ()


def test_schema_and_tables_of_one_side_are_named(tmp_path: Path) -> None:
    script = "DROP INDEX idx_facts_trust; CREATE TABLE extra (a); INSERT INTO extra VALUES (1)"
    found = difference(tmp_path, "", script, memory=True)
    assert [(c.kind, c.what) for c in found.changes] == [
        (Kind.SCHEMA, "index idx_facts_trust"),
        (Kind.SCHEMA, "table extra"),
        (Kind.ROWS, "extra"),
    ]
    assert not found.tables and not found.same


def test_columns_are_named_and_the_others_compared(tmp_path: Path) -> None:
    before = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); INSERT INTO t VALUES (1, 'x', 'y'), (2, 'x', 'y')"
    after = "ALTER TABLE t ADD COLUMN c DEFAULT 5; ALTER TABLE t DROP COLUMN b; UPDATE t SET a = 'z' WHERE id = 2"
    found = table(difference(tmp_path, before, after), "t")
    assert (found.columns_added, found.columns_gone) == (("c",), ("b",))
    assert (found.added, found.changed, found.gone) == (0, 1, 0)


def test_whole_rows_are_matched_with_their_repetitions(tmp_path: Path) -> None:
    before = "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL), ('A', 1)"
    after = "DELETE FROM t; INSERT INTO t VALUES ('A', 1.0), (1, 'x'), (2, NULL), (2, NULL)"
    found = table(difference(tmp_path, before, after), "t")
    assert found.key == () and (found.added, found.changed, found.gone) == (2, 0, 3)
    assert Counter(map(repr, found.rows_gone)) == {"{'a': 1, 'b': 'x'}": 2, "{'a': 'A', 'b': 1}": 1}
    assert Counter(map(repr, found.rows_added)) == {"{'a': 2, 'b': None}": 1, "{'a': 'A', 'b': 1.0}": 1}


def test_keys_that_are_null_are_no_keys(tmp_path: Path) -> None:
    before = "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1), (NULL, 1), ('a', 1)"
    found = table(difference(tmp_path, before, "INSERT INTO t VALUES (NULL, 1)"), "t")
    assert found.key == () and (found.added, found.changed, found.gone) == (1, 0, 0)


@pytest.mark.parametrize("change", ["'A'", "1.0", "x'61'", "NULL", "'a '"])
def test_a_changed_cell_is_seen_whatever_sqlite_takes_for_equal(tmp_path: Path, change: str) -> None:
    before = "CREATE TABLE t (k INTEGER PRIMARY KEY, v COLLATE NOCASE, w); INSERT INTO t VALUES (1, 'a', 1)"
    column = "w" if change == "1.0" else "v"
    found = table(difference(tmp_path, before, f"UPDATE t SET {column} = {change}"), "t")
    assert (found.added, found.changed, found.gone) == (0, 1, 0)
    assert list(found.rows_changed[0].after) == [column]


def test_the_number_of_rows_shown_is_bounded_and_all_are_counted(tmp_path: Path) -> None:
    before = "CREATE TABLE t (k INTEGER PRIMARY KEY, v); CREATE TABLE u (v)"
    fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO"
    found = difference(tmp_path, before, f"{fill} t SELECT i, i FROM n; {fill} u SELECT 7 FROM n", limit=3)
    for name in ("t", "u"):
        one = table(found, name)
        assert one.added == 1000 and len(one.rows_added) == 3


@pytest.mark.parametrize(
    "declared", ["k INTEGER PRIMARY KEY, v", "k TEXT PRIMARY KEY, v", "k PRIMARY KEY, v) WITHOUT ROWID --"]
)
def test_it_agrees_with_a_comparison_made_by_hand(tmp_path: Path, declared: str) -> None:
    rng = random.Random(7)
    old = {n if "INTEGER" in declared else f"k{n}": rng.randrange(5) for n in rng.sample(range(300), 150)}
    new = {k: (v if rng.random() < 0.7 else v + 10) for k, v in old.items() if rng.random() < 0.8}
    new |= {n if "INTEGER" in declared else f"k{n}": 1 for n in range(300, 330)}
    for name, rows in (("a", old), ("b", new)):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            connection.execute(f"CREATE TABLE t ({declared}\n" + ("" if "--" in declared else ")"))
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows.items())
            connection.commit()
        freeze(tmp_path / f"{name}.db", tmp_path / "s", name=name, licence="synthetic")
    found = table(diff(open_snapshot(tmp_path / "s" / "a"), open_snapshot(tmp_path / "s" / "b"), limit=1000), "t")
    assert {row["k"] for row in found.rows_added} == new.keys() - old.keys()
    assert {row["k"] for row in found.rows_gone} == old.keys() - new.keys()
    assert {r.key["k"] for r in found.rows_changed} == {k for k in old.keys() & new.keys() if old[k] != new[k]}
    assert found.key == ("k",)
