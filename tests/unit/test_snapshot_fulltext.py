"""Full-text indexes of what is frozen: a damaged one is refused, and a sound one is not touched."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import InputError
from lab.records import file_digest
from lab.retrieval.factstore.schema import UPSTREAM
from lab.snapshots.freeze import DATABASE, freeze
from lab.snapshots.fulltext import check_full_text
from lab.snapshots.store import open_snapshot
from lab.snapshots.verify import Kind, verify
from tests.snapshot_databases import execute, make_memory, tree

ROWS = 400
NORMAL = "CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words SELECT content FROM facts;"
CONTENTLESS = (
    "CREATE VIRTUAL TABLE words USING fts5(text, content=''); INSERT INTO words (text) SELECT content FROM facts;"
)
ODD = 'CREATE VIRTUAL TABLE "a "" b" USING fts5(text); INSERT INTO "a "" b" SELECT content FROM facts;'


def tear(path: Path, index: str) -> None:
    """Empties the largest piece of an index in place: SQLite's own pages stay sound, as after a page that was lost."""
    data = '"' + index.replace('"', '""') + '_data"'
    execute(
        path,
        f"UPDATE {data} SET block = zeroblob(length(block)) "
        f"WHERE id = (SELECT id FROM {data} WHERE id > 10 ORDER BY length(block) DESC LIMIT 1)",
    )


def found(path: Path, index: str = "facts_fts") -> int:
    with closing(sqlite3.connect(path)) as connection:
        try:
            return len(connection.execute(f"SELECT rowid FROM {index} WHERE {index} MATCH 'fact'").fetchall())
        except sqlite3.Error:
            return 0


@pytest.mark.parametrize(
    ("index", "script"),
    [("facts_fts", ""), ("words", NORMAL), ("words", CONTENTLESS), ('a " b', ODD)],
    ids=["external content", "own content", "contentless", "odd name"],
)
def test_a_damaged_index_is_refused_in_one_line_and_the_same_one_whole_is_frozen(
    tmp_path: Path, index: str, script: str
) -> None:
    sound, torn = make_memory(tmp_path / "sound.db", ROWS), make_memory(tmp_path / "torn.db", ROWS)
    for path in (sound, torn):
        execute(path, script)
    tear(torn, index)
    with closing(sqlite3.connect(torn)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",) or sqlite3.sqlite_version_info >= (3, 44)
    with pytest.raises(InputError, match="is damaged: its full-text index") as refused:
        freeze(torn, tmp_path / "s", name="torn", licence="synthetic")
    assert "torn.db" in refused.value.message and "rebuild" in refused.value.mend
    assert "\n" not in str(refused.value)
    assert not list((tmp_path / "s").iterdir())
    freeze(sound, tmp_path / "s", name="sound", licence="synthetic")


def test_the_mend_that_is_named_mends_it(tmp_path: Path) -> None:
    path = make_memory(tmp_path / "a.db", ROWS)
    tear(path, "facts_fts")
    assert found(path) < ROWS
    with pytest.raises(InputError) as refused:
        freeze(path, tmp_path / "s", name="a", licence="synthetic")
    execute(path, refused.value.mend.partition(": ")[2])
    assert found(path) == ROWS
    freeze(path, tmp_path / "s", name="a", licence="synthetic")


def test_the_check_changes_no_byte_and_leaves_no_file(tmp_path: Path) -> None:
    for journal_mode in ("delete", "wal"):
        path = make_memory(tmp_path / f"{journal_mode}.db", ROWS, journal_mode=journal_mode)
        execute(path, NORMAL + "PRAGMA wal_checkpoint(TRUNCATE)")
        before, digest = tree(tmp_path), file_digest(path)
        check_full_text(path, path)
        assert file_digest(path) == digest
        assert tree(tmp_path) == before


def test_an_index_that_lags_behind_or_was_made_from_prepared_texts_is_sound(tmp_path: Path) -> None:
    """What is measured is often such a memory; its content says which words the index finds."""
    path = make_memory(tmp_path / "a.db", ROWS)
    execute(path, "INSERT INTO facts_fts (facts_fts) VALUES ('delete-all')")
    execute(path, "INSERT INTO facts_fts (rowid, content, tags) VALUES (1, 'other words than the fact has', '')")
    freeze(path, tmp_path / "s", name="a", licence="synthetic")


def test_upstreams_layout_is_frozen(tmp_path: Path) -> None:
    path = tmp_path / "memory_store.db"
    path.touch()
    execute(path, UPSTREAM + "INSERT INTO facts (content) VALUES ('one'), ('two'); DELETE FROM facts")
    freeze(path, tmp_path / "s", name="a", licence="synthetic")


@pytest.mark.parametrize("using", ["fts5(text, tokenize=missing)", "missing(text)"])
def test_an_index_that_nobody_here_can_read_is_passed_over(tmp_path: Path, using: str) -> None:
    path = make_memory(tmp_path / "a.db")
    execute(
        path,
        "PRAGMA writable_schema = ON; INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) "
        f"VALUES ('table', 'foreign_words', 'foreign_words', 0, 'CREATE VIRTUAL TABLE foreign_words USING {using}')",
    )
    freeze(path, tmp_path / "s", name="a", licence="synthetic")


def test_verify_names_a_damaged_index_and_no_damage_where_only_the_layout_is_another(tmp_path: Path) -> None:
    """The rows of an index with texts of its own are all there, so nothing else would tell."""
    source = make_memory(tmp_path / "a.db", ROWS)
    execute(source, NORMAL)
    freeze(source, tmp_path / "s", name="a", licence="synthetic")
    torn = tmp_path / "s" / "a"
    other = shutil.copytree(torn, tmp_path / "s" / "b")
    tear(torn / DATABASE, "words")
    execute(other / DATABASE, "VACUUM")
    digest = file_digest(torn / DATABASE)
    (change,) = verify(torn)
    assert change.kind is Kind.DAMAGED and "full-text index words" in change.detail
    assert file_digest(torn / DATABASE) == digest
    assert [change.kind for change in verify(other)] == [Kind.LAYOUT]
    with pytest.raises(InputError, match="not the file that was frozen"):
        open_snapshot(torn)
