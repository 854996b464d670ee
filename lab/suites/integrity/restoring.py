"""A backup put in the place of a store that has gone on since: what was written after it is at stake."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.memories.hfea.archive import open_archive
from lab.memories.hfea.backup import back_up, restore
from lab.snapshots.freeze import copy_database, freeze
from lab.snapshots.sqlite import side_files
from lab.snapshots.store import open_snapshot
from lab.suites.integrity.cases import Case, size, told_by
from lab.suites.integrity.living import FIRST, SECOND, case, fresh
from lab.suites.integrity.stores import AGENT, CHRONICLES, STORES, StoreKind
from lab.suites.integrity.writers import Writers

FAULT = "restore over a newer store"
_NOW = datetime(2026, 3, 5, tzinfo=UTC)


def restores(writers: Writers, work: Path) -> Iterator[Case]:
    """Restores over each store, plainly and as the lab does."""
    for kind in STORES:
        if kind is CHRONICLES:
            yield from _archives(kind, work)
            continue
        kept = fresh(work, "kept", kind.name)
        with closing(kind.open(kept, "one")) as handle:
            handle.add(FIRST)
        backup = kept / "backup.db"
        copy_database(kept / kind.file, backup)
        freeze(kept / kind.file, kept, name="frozen", licence="synthetic")
        snapshot = open_snapshot(kept / "frozen")
        newer = partial(_newer, kind, work)
        yield _restored(kind, "plain copy over it", newer, partial(shutil.copyfile, backup), baseline=True)
        yield _restored(kind, "SQLite backup over it", newer, partial(_backup_over, backup), baseline=True)
        yield _restored(kind, "a snapshot's copy", newer, snapshot.copy_to, baseline=False)
        if kind.wal:
            yield _over_a_log(kind, work, backup, writers)


def _newer(kind: StoreKind, work: Path, way: str) -> Path:
    place = fresh(work, "restore", way, kind.name)
    with closing(kind.open(place, "one")) as handle:
        handle.add(FIRST)
        handle.add(SECOND)
    return place


def _restored(
    kind: StoreKind, way: str, newer: Callable[[str], Path], act: Callable[[Path], object], *, baseline: bool
) -> Case:
    place = newer(way)
    before = size(place / kind.file)
    told = told_by(lambda: act(place / kind.file))
    return case(kind, FAULT, way, expected={*FIRST, *SECOND}, before=before, place=place, baseline=baseline, told=told)


def _own_restore(backup: Path, path: Path, *, over_newer: bool) -> str:
    return "; ".join(restore(backup, path, AGENT, over_newer=over_newer).lost)


def _backup_over(backup: Path, path: Path) -> None:
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def _over_a_log(kind: StoreKind, work: Path, backup: Path, writers: Writers) -> Case:
    """The database is replaced, the write-ahead log of the one before stays: its program was killed."""
    place = fresh(work, "restore-log", kind.name)
    writer = writers.start(kind, place)
    writer.add(FIRST)
    writer.checkpoint()
    writer.add(SECOND)
    path = place / kind.file
    before = size(path, *side_files(path))
    writer.kill()
    shutil.copyfile(backup, path)
    way = "plain copy over it, beside the log of a killed writer"
    return case(kind, FAULT, way, expected={*FIRST, *SECOND}, before=before, place=place, baseline=True)


def _archives(kind: StoreKind, work: Path) -> Iterator[Case]:
    for way, over_newer in (("the archive's own restore", False), ("the archive's own restore, told to", True)):
        place = fresh(work, "restore", way)
        with closing(kind.open(place, "one")) as handle:
            handle.add(FIRST)
            back_up(open_archive(place / kind.file, AGENT), place / "kept", _NOW)
            handle.add(SECOND)
        before = size(place / kind.file)
        told = told_by(partial(_own_restore, place / "kept", place / kind.file, over_newer=over_newer))
        yield case(kind, FAULT, way, expected={*FIRST, *SECOND}, before=before, place=place, told=told)
    place = fresh(work, "restore", "plain", kind.name)
    with closing(kind.open(place, "one")) as handle:
        handle.add(FIRST)
        shutil.copytree(place / kind.file, place / "kept")
        handle.add(SECOND)
    before = size(place / kind.file)
    shutil.rmtree(place / kind.file)
    shutil.copytree(place / "kept", place / kind.file)
    way = "plain copy over it"
    yield case(kind, FAULT, way, expected={*FIRST, *SECOND}, before=before, place=place, baseline=True)
