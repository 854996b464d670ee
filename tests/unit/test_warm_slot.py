"""What is compared before a warm sandbox is used again: the slot's directories, and the home that was imported over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.contamination.sessions.imports import Contents, ImportsTooMuch, Trace
from lab.contamination.sessions.slot import Slot
from lab.contamination.sessions.warm_sandbox import memory_kills
from lab.isolation import work


@pytest.fixture
def slot() -> Iterator[Slot]:
    made = Slot()
    yield made
    made.remove()
    assert not made.root.exists()


def fill(home: Path) -> None:
    deep = home / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("heron21")
    (home / "link").symlink_to("/etc/passwd")
    os.mkfifo(home / "pipe")
    os.utime(home, (1, 1))


def test_a_slot_is_emptied_and_follows_no_link(slot: Slot, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    fill(slot.home)
    (slot.home / "out").symlink_to(kept)
    inode = slot.home.stat().st_ino
    assert slot.clear()
    assert list(slot.home.iterdir()) == [] and slot.home.stat().st_ino == inode
    assert (kept / "file").read_text() == "mine"
    assert slot.home.stat().st_mtime > 1, "times are set"


MARKS: dict[str, Callable[[Path], object]] = {
    "mode": lambda home: home.chmod(0o777),
    "attribute": lambda home: os.setxattr(home, "user.planted", b"heron21"),
    "many entries": lambda home: [(home / f"{'x' * 200}{n}").touch() for n in range(400)],
}


@pytest.mark.parametrize("mark", MARKS)
def test_a_slot_with_a_mark_is_not_used_again(slot: Slot, mark: str) -> None:
    assert slot.clear()
    size = slot.home.stat().st_size
    try:
        MARKS[mark](slot.home)
    except OSError as error:
        pytest.skip(f"this file system has no such mark: {error}")
    if mark == "many entries" and slot.home.stat().st_size == size:
        pytest.skip("directories of this file system do not tell by their size how full they were")
    if mark == "many entries":
        [entry.unlink() for entry in slot.home.iterdir()]
        if slot.home.stat().st_size == size:
            pytest.skip("directories of this file system shrink")
    assert not slot.clear()


def test_the_directory_of_a_dead_lab_is_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(work.tempfile, "tempdir", str(tmp_path))
    mine = work.make_work_directory()
    dead = tmp_path / f"{work.WORK_PREFIX}{4_194_305}-gone"
    dead.mkdir()
    assert work.sweep_work_directories() == [str(dead)]
    assert mine.exists()


SEED = {"config": "on: true\n", "memories/MEMORY.md": "one"}
TOUCHED = {"config": ("content",), "cache": ("names",), "memories": ("kind",), "SOUL.md": ("content",)}


def home_with(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    home = home_with(tmp_path / "imported", SEED)
    before = Contents.of(home)
    home_with(home, {"SOUL.md": "me"})
    (home / "cache").mkdir(mode=0o700)
    return Trace.of(home, before, TOUCHED)


def test_what_importing_made_is_laid_into_another_home(trace: Trace, tmp_path: Path) -> None:
    assert set(trace.files) == {"SOUL.md"} and set(trace.directories) == {"cache"}
    home = home_with(tmp_path / "home", {**SEED, "memories/MEMORY.md": "another"})
    assert not trace.holds_in(home)
    trace.lay(home)
    assert trace.holds_in(home)
    assert (home / "SOUL.md").read_text() == "me" and (home / "memories/MEMORY.md").read_text() == "another"


DIFFERENCES: dict[str, Callable[[Path], object]] = {
    "content": lambda home: (home / "config").write_text("on: false\n"),
    "names": lambda home: (home / "cache" / "x").touch(),
    "kind": lambda home: (home / "memories").rename(home / "gone"),
    "removed": lambda home: (home / "SOUL.md").unlink(),
    "link": lambda home: ((home / "cache").rmdir(), (home / "cache").symlink_to("/tmp")),
    "pipe": lambda home: ((home / "config").unlink(), os.mkfifo(home / "config")),
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_home_that_importing_would_see_otherwise_is_noticed(trace: Trace, tmp_path: Path, difference: str) -> None:
    home = home_with(tmp_path / "home", SEED)
    trace.lay(home)
    assert trace.holds_in(home)
    DIFFERENCES[difference](home)
    assert not trace.holds_in(home)


SPOILED: dict[str, Callable[[Path], object]] = {
    "changes": lambda home: (home / "config").write_text("x"),
    "removes": lambda home: (home / "config").unlink(),
    "makes": lambda home: (home / "link").symlink_to("config"),
}


@pytest.mark.parametrize("word", SPOILED)
def test_importing_that_cannot_be_repeated_forbids_the_fork(tmp_path: Path, word: str) -> None:
    home = home_with(tmp_path / "home", SEED)
    before = Contents.of(home)
    SPOILED[word](home)
    with pytest.raises(ImportsTooMuch, match=word):
        Trace.of(home, before, {})


def test_memory_kills_are_counted_where_the_kernel_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "vmstat"
    monkeypatch.setattr("lab.contamination.sessions.warm_sandbox._VMSTAT", table)
    assert memory_kills() is None
    table.write_text("nr_free_pages 7\noom_kill 3\n")
    assert memory_kills() == 3
