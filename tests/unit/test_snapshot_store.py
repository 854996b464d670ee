"""Opening and verifying: only what was frozen is opened, and everything that is not as it was is named."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest

from lab.errors import InputError
from lab.snapshots.freeze import DATABASE, freeze
from lab.snapshots.manifest import MANIFEST, SCHEMA_FILE, Manifest, manifest_schema, publish, schema_text
from lab.snapshots.store import find_snapshot, open_snapshot, refuse_live, snapshot_folders
from lab.snapshots.verify import Kind, verify
from tests.snapshot_databases import execute, make_memory, tree, writing

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    freeze(make_memory(tmp_path / "memory_store.db"), tmp_path / "s", name="a", licence="synthetic")
    return tmp_path / "s" / "a"


def edited(folder: Path, change: Callable[[dict], object], *, sealed: bool = False) -> None:
    """Edits the manifest; with its seal made again where that is asked for."""
    path = folder / MANIFEST
    data = json.loads(path.read_text())
    change(data)
    text = Manifest.model_validate(data).sealed().model_dump_json() if sealed else json.dumps(data)
    path.write_text(text)


def test_an_untouched_snapshot_opens_and_verifies(folder: Path) -> None:
    before = tree(folder)
    snapshot = open_snapshot(folder)
    with closing(snapshot.connect()) as connection:
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (50,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM facts")
    assert verify(folder) == ()
    assert tree(folder) == before


def test_a_private_copy_may_be_written_to(folder: Path, tmp_path: Path) -> None:
    snapshot = open_snapshot(folder)
    snapshot.copy_to(tmp_path / "copy.db")
    execute(tmp_path / "copy.db", "PRAGMA journal_mode = wal; DELETE FROM facts")
    assert verify(folder) == ()
    with pytest.raises(InputError, match="exists"):
        snapshot.copy_to(tmp_path / "copy.db")
    (tmp_path / "other.db-wal").write_bytes(b"of an earlier copy")
    with pytest.raises(InputError, match=r"other.db-wal exists"):
        snapshot.copy_to(tmp_path / "other.db")


def test_no_manifest_is_no_snapshot(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    for look in (open_snapshot, verify):
        with pytest.raises(InputError, match=r"manifest.json is missing.*lab snapshot freeze"):
            look(folder)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 2}', "\x00", "[" * 100_000, '{"name": "../x"}'])
def test_a_damaged_manifest_is_named(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    with pytest.raises(InputError, match=r"manifest.json is damaged") as refused:
        open_snapshot(folder)
    assert "\n" not in str(refused.value)
    assert [change.kind for change in verify(folder)] == [Kind.MANIFEST]


def test_an_edited_manifest_is_named(folder: Path) -> None:
    edited(folder, lambda data: data.update(licence="CC0-1.0"))
    with pytest.raises(InputError, match=r"manifest.json was edited.*lab snapshot verify"):
        open_snapshot(folder)
    assert [(c.kind, c.what) for c in verify(folder)] == [(Kind.MANIFEST, MANIFEST)]


def test_a_manifest_with_a_new_seal_does_not_fit_its_own_content(folder: Path) -> None:
    edited(folder, lambda data: data["content"]["tables"]["facts"].update(rows=51), sealed=True)
    with pytest.raises(InputError, match="was edited"):
        open_snapshot(folder)


def test_a_file_with_another_digest_is_refused(folder: Path) -> None:
    execute(folder / DATABASE, "UPDATE facts SET trust_score = 0.9 WHERE fact_id = 1")
    with pytest.raises(InputError, match=r"not the file that was frozen.*lab snapshot verify"):
        open_snapshot(folder)


def test_same_size_and_time_are_no_identity(folder: Path) -> None:
    database = folder / DATABASE
    info = database.stat()
    data = bytearray(database.read_bytes())
    data[data.index(b"fact 20 about")] ^= 1
    database.chmod(0o644)
    database.write_bytes(data)
    os.utime(database, ns=(info.st_atime_ns, info.st_mtime_ns))
    with pytest.raises(InputError, match="not the file that was frozen"):
        open_snapshot(folder)


def test_a_database_in_use_is_refused(folder: Path) -> None:
    execute(folder / DATABASE, "DROP TABLE facts")
    with writing(folder / DATABASE, hold=True), pytest.raises(InputError, match=r"memory.db-wal holds changes"):
        open_snapshot(folder)


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_the_lock_of_a_writer_is_seen_before_it_writes_anything(folder: Path, lock: str) -> None:
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute(sys.argv[2])\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    database = folder / DATABASE
    database.chmod(0o644)
    command = [sys.executable, "-c", program, str(database), lock]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="a writer holds a lock"):
            open_snapshot(folder)
        assert Kind.IN_USE in {change.kind for change in verify(folder)}
        holder.communicate("")
    open_snapshot(folder)


def test_readers_do_no_harm(folder: Path) -> None:
    with closing(sqlite3.connect(f"file:{folder / DATABASE}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM facts").fetchone()
        open_snapshot(folder)


def test_a_plain_database_is_always_refused_with_the_way_to_freeze_it(tmp_path: Path) -> None:
    path = make_memory(tmp_path / "memory_store.db")
    mend = f"lab snapshot freeze {path} --name memory_store"
    for refuse in (refuse_live, open_snapshot):
        with pytest.raises(InputError, match="is a live database, not a snapshot") as refused:
            refuse(path)
        assert refused.value.mend == mend
    with pytest.raises(InputError, match="is a live database"):
        find_snapshot(str(path), tmp_path)
    with (
        writing(tmp_path / "live.db", hold=True),
        pytest.raises(InputError, match=r"in use: live.db-wal holds changes"),
    ):
        refuse_live(tmp_path / "live.db")
    with pytest.raises(InputError, match="no database at"):
        refuse_live(tmp_path / "nowhere.db")


VERIFIED: list[tuple[str, list[tuple[Kind, str, str]]]] = [
    ("VACUUM; PRAGMA page_size = 8192; VACUUM", [(Kind.LAYOUT, DATABASE, "other bytes, the same content")]),
    ("UPDATE facts SET trust_score = 1 WHERE fact_id = 3", [(Kind.ROWS, "facts", "50 rows as before, other contents")]),
    ("DELETE FROM fact_entities WHERE fact_id = 2", [(Kind.ROWS, "fact_entities", "2 → 1 row")]),
    ("DROP INDEX idx_facts_trust", [(Kind.SCHEMA, "index idx_facts_trust", "gone")]),
    (
        "CREATE TABLE extra (a); INSERT INTO extra VALUES (1), (2)",
        [(Kind.SCHEMA, "table extra", "added"), (Kind.ROWS, "extra", "added with 2 rows")],
    ),
    (
        "DROP TABLE fact_entities",
        [(Kind.SCHEMA, "table fact_entities", "gone"), (Kind.ROWS, "fact_entities", "gone with 2 rows")],
    ),
    ("PRAGMA user_version = 4", [(Kind.SETTING, "user_version", "0 → 4")]),
    (
        "DROP TRIGGER facts_au; CREATE TRIGGER facts_au AFTER UPDATE ON facts BEGIN SELECT 1; END",
        [(Kind.SCHEMA, "trigger facts_au", "defined otherwise")],
    ),
]


@pytest.mark.parametrize(
    ("script", "expected"), VERIFIED, ids=lambda value: value[:24] if isinstance(value, str) else ""
)
def test_verify_names_what_changed(folder: Path, script: str, expected: list[tuple[Kind, str, str]]) -> None:
    execute(folder / DATABASE, script)
    assert [(c.kind, c.what, c.detail) for c in verify(folder)] == expected


def test_verify_names_files(folder: Path) -> None:
    (folder / "notes.txt").write_text("x")
    (folder / f"{DATABASE}-shm").write_bytes(b"")
    assert [(c.kind, c.what) for c in verify(folder)] == [
        (Kind.EXTRA_FILE, f"{DATABASE}-shm"),
        (Kind.EXTRA_FILE, "notes.txt"),
    ]
    (folder / DATABASE).unlink()
    assert [(c.kind, c.what) for c in verify(folder)] == [(Kind.MISSING, DATABASE)]
    with pytest.raises(InputError, match=r"memory.db is missing"):
        open_snapshot(folder)


@pytest.mark.parametrize("damage", ["truncated", "noise", "other file"])
def test_verify_names_damage(folder: Path, damage: str) -> None:
    database = folder / DATABASE
    data = bytearray(database.read_bytes())
    database.chmod(0o644)
    if damage == "truncated":
        del data[len(data) // 2 :]
    elif damage == "noise":
        data[4096:4200] = b"\xa5" * 104
    else:
        data = bytearray(b"hello")
    database.write_bytes(data)
    changes = verify(folder)
    assert Kind.DAMAGED in {change.kind for change in changes}
    assert Kind.LAYOUT not in {change.kind for change in changes}


def test_a_snapshot_is_found_by_name_and_by_path(folder: Path, tmp_path: Path) -> None:
    assert find_snapshot("a", tmp_path / "s") == folder
    assert find_snapshot(str(folder), tmp_path / "nowhere") == folder
    with pytest.raises(InputError, match=r"no snapshot 'b'.*one of \[a\]"):
        find_snapshot("b", tmp_path / "s")
    assert snapshot_folders(tmp_path / "s") == (folder,)
    assert snapshot_folders(tmp_path / "nowhere") == ()


def test_the_published_schema_is_current_and_describes_a_manifest(folder: Path, tmp_path: Path) -> None:
    mend = "run: python -c 'from lab.snapshots.manifest import *; publish(Path(\"snapshots\"))'"
    assert (PROJECT / "snapshots" / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text(), mend
    assert json.loads(publish(tmp_path).read_text()) == manifest_schema()
    validator = jsonschema.Draft202012Validator(manifest_schema())
    data = json.loads((folder / MANIFEST).read_text())
    validator.validate(data)
    for change in ({"format": 2}, {"name": "../a"}, {"unknown": 1}, {"content_sha256": "x"}, {"file": {}}):
        assert not validator.is_valid({**data, **change}), change
    for part in (manifest_schema(), *manifest_schema()["$defs"].values()):
        assert all(field.get("description") for field in part["properties"].values())
