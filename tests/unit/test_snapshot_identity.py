"""The content digest: layout never changes it, one changed cell always does."""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.snapshots.identity import content_digest, identify
from lab.snapshots.relations import normalised
from tests.snapshot_databases import MEMORY, execute, make_memory


def digest_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return content_digest(connection)


def digest_after(script: str) -> str:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        return content_digest(connection)


@pytest.mark.parametrize(
    "script",
    [
        "VACUUM",
        "PRAGMA journal_mode = wal",
        "PRAGMA page_size = 1024; VACUUM",
        "PRAGMA auto_vacuum = 1; VACUUM",
        "REINDEX",
        "ANALYZE",
        "INSERT INTO facts_fts (facts_fts) VALUES ('optimize')",
        "INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')",
        "INSERT INTO facts_fts (facts_fts, rank) VALUES ('automerge', 8)",
        "UPDATE facts SET content = content || 'x' WHERE fact_id = 3; UPDATE facts SET content = 'fact 2 about topic2' "
        "WHERE fact_id = 3",
        "CREATE TABLE passing (a); INSERT INTO passing VALUES (1); DROP TABLE passing",
        "DELETE FROM facts WHERE fact_id = 9; INSERT INTO facts VALUES "
        "(9, 'fact 8 about topic1', 'a,b', 0.8, x'08080808080808080808080808080808')",
    ],
)
def test_layout_is_no_part_of_it(tmp_path: Path, script: str) -> None:
    path = make_memory(tmp_path / "a.db")
    before, content = path.read_bytes(), digest_of(path)
    execute(path, script)
    assert digest_of(path) == content
    if "REINDEX" not in script:
        assert path.read_bytes() != before, "the script did nothing, so the test shows nothing"


@pytest.mark.parametrize(
    "script",
    [
        "UPDATE facts SET trust_score = trust_score + 1e-15 WHERE fact_id = 7",
        "UPDATE facts SET hrr_vector = x'00' WHERE fact_id = 7",
        "UPDATE facts SET hrr_vector = NULL WHERE fact_id = 7",
        "UPDATE facts SET tags = 'a,b ' WHERE fact_id = 7",
        "DELETE FROM facts WHERE fact_id = 50",
        "INSERT INTO facts (content) VALUES ('new')",
        "DELETE FROM fact_entities WHERE fact_id = 1",
        "DROP INDEX idx_facts_trust",
        "DROP INDEX idx_facts_trust; CREATE INDEX idx_facts_trust ON facts(trust_score)",
        "DROP TRIGGER facts_ad",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE facts RENAME COLUMN tags TO labels",
        "ALTER TABLE facts ADD COLUMN author TEXT",
        "ALTER TABLE fact_entities RENAME TO links",
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 7",
        "UPDATE sqlite_sequence SET seq = 99",
        # The index falls behind its table: the rows are the same, what a query finds is not.
        "INSERT INTO facts_fts (facts_fts, rowid, content, tags) VALUES ('delete', 1, 'fact 0 about topic0', 'a,b')",
        "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')",
        # A term stands for another document: the vocabulary is the same, the lengths of the documents are not.
        "INSERT INTO facts_fts (facts_fts, rowid, content, tags) VALUES ('delete', 1, 'fact 0 about topic0', 'a,b'), "
        "('delete', 2, 'fact 1 about topic1', 'a,b'); INSERT INTO facts_fts (rowid, content, tags) VALUES "
        "(1, 'fact 0 1 about topic0', 'a,b'), (2, 'fact about topic1', 'a,b')",
        "DROP TABLE facts_fts; CREATE VIRTUAL TABLE facts_fts USING fts5(content, tags, content=facts, "
        "content_rowid=fact_id, tokenize=porter); INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')",
    ],
)
def test_every_change_of_content_changes_it(tmp_path: Path, script: str) -> None:
    path = make_memory(tmp_path / "a.db")
    content = digest_of(path)
    execute(path, script)
    assert digest_of(path) != content


def test_values_are_digested_with_their_type() -> None:
    values = [
        "1",
        "1.0",
        "'1'",
        "x'31'",
        "NULL",
        "''",
        "x''",
        "'1.0'",
        "0",
        "9e999",
        "-9e999",
        "'NULL'",
        "'a' || char(0)",
    ]
    digests = {digest_after(f"CREATE TABLE t (a); INSERT INTO t VALUES ({value})") for value in values}
    assert len(digests) == len(values)


def test_cells_do_not_run_into_each_other() -> None:
    rows = ["('ab', 'c')", "('a', 'bc')", "('abc', '')", "('a', 'b'), ('c', '')", "('at1:', 'x')", "('a', 't1:x')"]
    digests = {digest_after(f"CREATE TABLE t (a, b); INSERT INTO t VALUES {row}") for row in rows}
    assert len(digests) == len(rows)


def test_sqlite_stores_no_nan_and_takes_minus_zero_for_zero() -> None:
    def of(value: float | None) -> str:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t (a)")
            connection.execute("INSERT INTO t VALUES (?)", (value,))
            return content_digest(connection)

    assert of(float("nan")) == of(None)
    assert of(-0.0) == of(0.0) != of(0)


def test_text_that_is_no_utf8_and_nul_are_content(tmp_path: Path) -> None:
    made = {
        digest_after(f"CREATE TABLE t (a); INSERT INTO t VALUES (CAST(x'{v}' AS TEXT))") for v in ("ff", "fe", "6100")
    }
    assert len(made) == 3


@pytest.mark.parametrize(
    "table",
    [
        "t (a INTEGER PRIMARY KEY, b)",
        "t (a TEXT PRIMARY KEY, b)",
        "t (a TEXT COLLATE NOCASE PRIMARY KEY, b)",
        "t (a, b)",
        "t (a PRIMARY KEY, b) WITHOUT ROWID",
        "t (a INTEGER PRIMARY KEY DESC, b)",
        "t (a COLLATE NOCASE, b COLLATE RTRIM)",
        "t (b, a, PRIMARY KEY (a, b))",
    ],
)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), cell=st.sampled_from([1, 1.0, "1", b"1", None, "a", "A", "a ", "é"]))
def test_the_order_of_insertion_is_no_part_of_it(table: str, seed: int, cell: object) -> None:
    rows = [(n, random.Random(n).choice([1, 1.0, "1", b"1", None, "a", "A", "a "])) for n in range(12)]
    rows += (
        []
        if "PRIMARY" in table
        else [(1, 1), (1, 1.0), (1.0, 1), (1, 1), (1, "a"), (1, "A"), (None, None), (None, None)]
    )
    shuffled = random.Random(seed).sample(rows, len(rows))

    def of(ordered: list[tuple[object, object]]) -> str:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute(f"CREATE TABLE {table}")
            connection.executemany("INSERT INTO t (a, b) VALUES (?, ?)", ordered)
            return content_digest(connection)

    assert of(rows) == of(shuffled)
    (key, old), *rest = rows
    if type(old) is not type(cell) or old != cell:
        assert of([(key, cell), *rest]) != of(rows)


def test_rows_without_a_key_are_counted_with_their_repetitions() -> None:
    twice = digest_after("CREATE TABLE t (a); INSERT INTO t VALUES (1), (1), (2)")
    assert twice != digest_after("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (2)")
    assert twice != digest_after("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")


@pytest.mark.parametrize("module", ["fts5(a, b)", "fts5(a, b, content='')", "fts4(a, b)", "rtree(id, a, b)"])
def test_virtual_tables_stand_for_their_rows_not_for_how_they_keep_them(module: str) -> None:
    rtree = module.startswith("rtree")
    rows = [(n, n, n + 1) if rtree else (n, f"word{n} same", f"tail{n % 3}") for n in range(1, 40)]
    columns = "id, a, b" if rtree else "rowid, a, b"

    def of(ordered: list[tuple[object, ...]], one_by_one: bool) -> str:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.execute(f"CREATE VIRTUAL TABLE v USING {module}")
            if not one_by_one:
                connection.execute("BEGIN")
            connection.executemany(f"INSERT INTO v ({columns}) VALUES (?, ?, ?)", ordered)
            if not one_by_one:
                connection.execute("COMMIT")
            return content_digest(connection)

    assert of(rows, True) == of(rows[::-1], False)
    other = [*rows[:-1], (39, 39, 41) if rtree else (39, "word39 other", "tail0")]
    assert of(other, True) != of(rows, True)


def test_only_tables_of_the_index_itself_are_layout(tmp_path: Path) -> None:
    """Somebody's table that is merely named like one is content."""
    path = make_memory(tmp_path / "a.db")
    execute(path, "CREATE TABLE facts_fts_content (a); CREATE TABLE other_data (a); INSERT INTO other_data VALUES (1)")
    before = digest_of(path)
    execute(path, "INSERT INTO facts_fts_content VALUES (1)")
    after = digest_of(path)
    execute(path, "UPDATE other_data SET a = 2")
    assert len({before, after, digest_of(path)}) == 3


def test_a_module_that_is_not_there_leaves_its_tables_as_they_are(tmp_path: Path) -> None:
    path = make_memory(tmp_path / "a.db")
    execute(
        path,
        "CREATE TABLE vec_chunks (a); INSERT INTO vec_chunks VALUES (1); PRAGMA writable_schema = 1; INSERT INTO "
        "sqlite_master VALUES ('table', 'vec', 'vec', 0, 'CREATE VIRTUAL TABLE vec USING vec0(e float[3])')",
    )
    before = digest_of(path)
    execute(path, "UPDATE vec_chunks SET a = 2")
    assert digest_of(path) != before


def test_names_with_quotes_and_keywords_are_only_names() -> None:
    script = """CREATE TABLE "a""b; DROP TABLE x--" ("select" INTEGER PRIMARY KEY, "sum(1)" TEXT);
        INSERT INTO "a""b; DROP TABLE x--" VALUES (1, 'x');
        CREATE VIRTUAL TABLE "using fts5(" USING fts5("order"); INSERT INTO "using fts5(" VALUES ('x')"""
    assert digest_after(script) != digest_after(script.replace("'x'", "'y'"))


def test_definitions_are_compared_without_spaces_and_comments() -> None:
    assert normalised("CREATE TABLE a(b,c)") == normalised("CREATE  TABLE a (\n b, -- first\n c /* second */ )")
    assert normalised("CREATE TABLE a(b DEFAULT 'x  y')") != normalised("CREATE TABLE a(b DEFAULT 'x y')")
    assert normalised("CHECK (a = '--x')") != normalised("CHECK (a = '')")


def test_generated_columns_are_told_by_their_definition() -> None:
    script = "CREATE TABLE t (a, b AS (a * 2), c AS (a * 3) STORED); INSERT INTO t VALUES (1)"
    assert digest_after(script) != digest_after(script.replace("(1)", "(2)"))


def test_the_connection_is_left_as_it_was(tmp_path: Path) -> None:
    with closing(sqlite3.connect(make_memory(tmp_path / "a.db"))) as connection:
        connection.row_factory = sqlite3.Row
        content_digest(connection)
        assert not connection.in_transaction
        assert connection.execute("SELECT content FROM facts").fetchone()["content"] == "fact 0 about topic0"
        assert not connection.execute("SELECT 1 FROM temp.sqlite_master").fetchall()


def test_utf16_is_read(tmp_path: Path) -> None:
    script = f"PRAGMA encoding = 'UTF-16le'; {MEMORY} INSERT INTO facts (content) VALUES ('ação 記憶')"
    assert digest_after(script) == digest_after(script)
    assert digest_after(script) != digest_after(script.replace("ação", "acao"))


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Ten times the rows take no more memory; a table without a key is sorted by SQLite, not here."""

    def peak(count: int) -> int:
        with closing(sqlite3.connect(tmp_path / f"{count}.db")) as connection:
            connection.execute("CREATE TABLE t (a, b)")
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                "INSERT INTO t SELECT i, hex(zeroblob(500)) FROM n",
                (count,),
            )
            tracemalloc.start()
            try:
                assert identify(connection).tables["t"].rows == count
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    peak(100)
    assert peak(20_000) < 1.5 * peak(2_000) + 100_000


def test_a_small_change_in_every_place_is_seen(tmp_path: Path) -> None:
    """Each cell in turn; the digests are all different."""
    path = make_memory(tmp_path / "a.db", 4)
    changes: list[Callable[[int], str]] = [
        lambda n: f"UPDATE facts SET content = content || '!' WHERE fact_id = {n}",
        lambda n: f"UPDATE facts SET tags = tags || '!' WHERE fact_id = {n}",
        lambda n: f"UPDATE facts SET trust_score = trust_score + 1 WHERE fact_id = {n}",
    ]
    seen = {digest_of(path)}
    for number in range(1, 5):
        for change in changes:
            execute(path, change(number))
            seen.add(digest_of(path))
    assert len(seen) == 13
