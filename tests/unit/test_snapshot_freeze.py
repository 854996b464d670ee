"""Freezing: consistent while others write, whole or not at all, and one line for what cannot be frozen."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, ExitCode, InputError
from lab.snapshots.freeze import DATABASE, copy_database, freeze
from lab.snapshots.manifest import MANIFEST
from lab.snapshots.sqlite import open_frozen
from lab.snapshots.store import open_snapshot, snapshot_folders
from tests.snapshot_databases import execute, make_memory, tree, wait_for, writing

PROJECT = Path(__file__).parents[2]


def count(path: Path, table: str = "facts") -> int | str:
    """Rows of a table as a plain reader sees them, or what SQLite says."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.Error as error:
            return str(error)


@pytest.mark.parametrize("checkpointed", [0, 30])
def test_a_plain_copy_of_a_database_in_use_loses_rows_and_a_backup_does_not(tmp_path: Path, checkpointed: int) -> None:
    """The fault that snapshots exist for, counted: the last rows of a WAL database are not in its main file."""
    live = tmp_path / "memory_store.db"
    if checkpointed:
        with writing(live, after=checkpointed, hold=True):
            pass
        execute(live, "PRAGMA wal_checkpoint(TRUNCATE)")
    with writing(live, after=50, hold=True):
        written = 50 + checkpointed
        shutil.copyfile(live, tmp_path / "copied.db")
        copy_database(live, tmp_path / "backed-up.db")
        plain, backed_up = count(tmp_path / "copied.db"), count(tmp_path / "backed-up.db")
    assert backed_up == written
    assert plain == (checkpointed or "no such table: facts"), "50 committed rows are missing, without any error"


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_every_copy_made_beside_a_writer_is_one_consistent_state(
    tmp_path: Path, journal_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer commits without pause; its two tables agree in every state, and each freeze ends after one pass."""
    monkeypatch.setattr("lab.snapshots.freeze._STEP_PAGES", 1)  # the steps of a large database, in a small one
    live = tmp_path / "memory_store.db"
    seen = []
    with writing(live, journal_mode=journal_mode, after=200) as writer:
        for number in range(6):
            steps: list[tuple[int, int]] = []

            def told(done: int, total: int, steps: list[tuple[int, int]] = steps) -> None:
                steps.append((done, total))
                assert steps[-2:] == sorted(steps[-2:]), "it began again"

            started = time.monotonic()
            manifest = freeze(live, tmp_path, name=f"s{number}", licence="synthetic", progress=told)
            assert time.monotonic() - started < 20
            assert len(steps) > 5 and steps[-1][0] == steps[-1][1]
            assert writer.poll() is None, "the writer has ended, so nothing is shown"
            assert manifest.source.journal_mode == journal_mode
            with closing(open_snapshot(tmp_path / f"s{number}").connect()) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                facts = connection.execute("SELECT count(*), sum(amount) FROM facts").fetchone()
                assert facts == connection.execute("SELECT count(*), sum(amount) FROM ledger").fetchone()
            seen.append(facts[0])
    assert seen == sorted(set(seen)) and seen[0] >= 200, "the writer went on between the copies"


def test_a_frozen_database_needs_no_file_beside_it_and_the_source_is_only_read(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "memory_store.db", journal_mode="wal")
    before = source.read_bytes()
    manifest = freeze(source, tmp_path / "snapshots", name="a", licence="synthetic")
    assert source.read_bytes() == before
    folder = tmp_path / "snapshots" / "a"
    frozen = folder / DATABASE
    with closing(sqlite3.connect(frozen)) as connection:
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (50,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert sorted(tree(folder)) == [MANIFEST, DATABASE]
    assert manifest.source.file == "memory_store.db" and manifest.source.journal_mode == "wal"
    assert str(tmp_path) not in (folder / MANIFEST).read_text()
    assert manifest.content.tables["facts"].rows == 50
    assert frozen.stat().st_mode & 0o222 == 0


def test_two_freezes_of_one_state_have_one_identity(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db", journal_mode="wal")
    one = freeze(source, tmp_path / "s", name="one", licence="synthetic")
    execute(source, "VACUUM")
    two = freeze(source, tmp_path / "s", name="two", licence="synthetic")
    assert one.content_sha256 == two.content_sha256
    assert one.file.sha256 != two.file.sha256


def test_a_snapshot_is_never_overwritten(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db")
    freeze(source, tmp_path / "s", name="a", licence="synthetic")
    before = tree(tmp_path / "s")
    with pytest.raises(InputError, match="never overwritten"):
        freeze(source, tmp_path / "s", name="a", licence="synthetic")
    assert tree(tmp_path / "s") == before


@pytest.mark.parametrize("name", ["", "../a", "a/b", "/a", ".", "..", ".hidden", "a\n", "a b", "é", "x" * 65, "-a"])
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    source = make_memory(tmp_path / "a.db")
    with pytest.raises(InputError, match="no name of a snapshot"):
        freeze(source, tmp_path / "s", name=name, licence="synthetic")
    assert not (tmp_path / "s").exists()


def broken(kind: str, path: Path) -> Path:
    """A file that is no sound database."""
    if kind == "missing":
        return path
    if kind == "folder":
        path.mkdir()
        return path
    make_memory(path, 400)
    data = bytearray(path.read_bytes())
    if kind == "empty":
        data = bytearray()
    elif kind == "text":
        data = bytearray(b"id,content\n1,hello\n" * 100)
    elif kind == "encrypted":
        data[:16] = bytes(range(100, 116))
    elif kind == "magic only":
        del data[16:]
    elif kind == "truncated":
        del data[len(data) // 2 :]
    elif kind == "page of noise":
        page = next(n for n in range(2, len(data) // 4096) if b"fact 20" in data[n * 4096 : (n + 1) * 4096])
        data[page * 4096 : page * 4096 + 64] = os.urandom(64)
    elif kind == "schema of noise":
        data[100:160] = b"\xff" * 60
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", "no database at"),
        ("folder", "is a folder"),
        ("empty", "is empty"),
        ("text", "is not an SQLite database"),
        ("encrypted", "is not an SQLite database, or it is encrypted"),
        ("magic only", "is damaged"),
        ("truncated", "is damaged"),
        ("page of noise", "is damaged"),
        ("schema of noise", "is damaged"),
    ],
)
def test_what_is_no_sound_database_gets_one_line_and_leaves_nothing(tmp_path: Path, kind: str, words: str) -> None:
    source = broken(kind, tmp_path / "memory_store.db")
    with pytest.raises(InputError, match=words) as refused:
        freeze(source, tmp_path / "s", name="a", licence="synthetic")
    assert "memory_store.db" in refused.value.message and refused.value.mend
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "s").exists() or not list((tmp_path / "s").iterdir())


def test_a_database_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db")
    source.chmod(0)
    if os.access(source, os.R_OK):
        pytest.skip("the superuser may read everything — run the tests as another user")
    with pytest.raises(InputError, match="cannot be read"):
        freeze(source, tmp_path / "s", name="a", licence="synthetic")


def test_a_writer_that_never_lets_go_is_named_after_a_bounded_wait(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db")
    with closing(sqlite3.connect(source, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="is locked by a writer"):
            freeze(source, tmp_path / "s", name="a", licence="synthetic", timeout=0.1)
        assert not list((tmp_path / "s").iterdir())
        writer.execute("COMMIT")
    freeze(source, tmp_path / "s", name="a", licence="synthetic")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root — run the tests as root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path, small_disk: Path) -> None:
    source = make_memory(tmp_path / "a.db", 5000)
    with pytest.raises(EnvironmentUnusable, match="disk is full") as refused:
        freeze(source, small_disk / "s", name="a", licence="synthetic")
    assert str(small_disk) in refused.value.message and refused.value.exit_code == ExitCode.ENVIRONMENT
    assert not list((small_disk / "s").iterdir())
    freeze(make_memory(tmp_path / "b.db", 50), small_disk / "s", name="a", licence="synthetic")


def test_a_limit_on_the_size_of_files_is_no_traceback(tmp_path: Path) -> None:
    make_memory(tmp_path / "a.db", 5000)
    program = (
        "from pathlib import Path; from lab.errors import EnvironmentUnusable; from lab.snapshots.freeze import *\n"
        "try: freeze(Path('a.db'), Path('s'), name='a', licence='synthetic')\n"
        "except EnvironmentUnusable as error: print(error.message)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
    )
    assert done.stdout.count("\n") == 1 and "memory.db" in done.stdout, done.stdout + done.stderr
    assert not list((tmp_path / "s").iterdir())


def test_a_killed_freeze_leaves_nothing_that_looks_like_a_snapshot(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db", 200)
    program = (
        "import sys, time; from pathlib import Path; from lab.snapshots.freeze import freeze\n"
        "freeze(Path('a.db'), Path('s'), name='a', licence='synthetic', progress=lambda *_: time.sleep(60))"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=environment) as process:
        wait_for(tmp_path / "s" / ".a.part" / DATABASE)
        with pytest.raises(InputError, match="another lab is freezing"):
            freeze(source, tmp_path / "s", name="a", licence="synthetic")
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / "s" / ".a.part").exists(), "it was killed too late, so nothing is shown"
    assert not snapshot_folders(tmp_path / "s")
    with pytest.raises(InputError, match="manifest"):
        open_snapshot(tmp_path / "s" / ".a.part")
    freeze(source, tmp_path / "s", name="a", licence="synthetic")
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["a"]


def test_ctrl_c_during_the_copy_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    source = make_memory(tmp_path / "a.db")
    with pytest.raises(KeyboardInterrupt):
        freeze(source, tmp_path / "s", name="a", licence="synthetic", progress=interrupt)
    assert not list((tmp_path / "s").iterdir())


def test_the_copy_is_byte_for_byte_what_the_manifest_says(tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db", page_size=8192)
    manifest = freeze(source, tmp_path / "s", name="a", licence="CC0-1.0")
    frozen = tmp_path / "s" / "a" / DATABASE
    assert manifest.file.page_size == 8192 and manifest.file.bytes == frozen.stat().st_size
    assert manifest.licence == "CC0-1.0" and manifest.is_intact()
    with closing(open_frozen(frozen)) as connection:
        assert connection.execute("PRAGMA schema_version").fetchone() == (manifest.file.schema_version,)
