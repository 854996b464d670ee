"""Faults of stores in use: a backup beside a writer, a kill in mid-write, two writers at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from lab.memories.hfea.archive import Archive, open_archive
from lab.memories.hfea.backup import back_up, restore
from lab.snapshots.freeze import copy_database
from lab.snapshots.sqlite import side_files
from lab.suites.integrity.cases import Case, Finding, Held, judge, looked, size, told_by
from lab.suites.integrity.stores import AGENT, CHRONICLES, REPLACED, REWRITTEN, STORES, StoreKind, texts
from lab.suites.integrity.writers import Writer, Writers

BACKUP, KILL, TWO = "backup while a writer writes", "kill in mid-write", "two writers at once"
FIRST, SECOND, HELD, LATER = texts(0), texts(100), texts(200), texts(300)
"""What is written first, what after a checkpoint, what is in mid-write, and what comes after the fault."""

_PATIENCE = 0.2
"""Seconds after which a backup that waits for the writer is given its turn."""

_NOW = datetime(2026, 3, 5, tzinfo=UTC)


def fresh(work: Path, *names: str) -> Path:
    """A new empty folder, named after a case."""
    folder = work / "-".join("".join(c if c.isalnum() else "_" for c in name) for name in names)
    folder.mkdir(parents=True)
    return folder


def case(
    kind: StoreKind,
    fault: str,
    way: str,
    *,
    expected: Set[str],
    before: int,
    place: Path,
    allowed: Set[str] = frozenset(),
    baseline: bool = False,
    told: str = "",
) -> Case:
    """Reads a store after a fault and judges it.

    Args:
        kind: The store.
        fault: What was done.
        way: By which means.
        expected: What must be there.
        before: Bytes before.
        place: Where it is to be read.
        allowed: What may be there.
        baseline: Whether the way is not the lab's.
        told: What was told already.
    """
    after = size(place / kind.file)
    finding = looked(lambda: kind.read(place))
    finding = Finding(found=finding.found, told=told or finding.told)
    return Case(
        store=kind.name,
        fault=fault,
        way=way,
        baseline=baseline,
        before=Held(rows=len(expected), bytes=before),
        after=Held(rows=None if finding.found is None else len(finding.found), bytes=after),
        verdict=judge(expected, finding, allowed),
        told=finding.told,
    )


def backups(writers: Writers, work: Path) -> Iterator[Case]:
    """Copies each store in the middle of a write, plainly and as the lab does."""
    for kind in STORES:
        place = fresh(work, "backup", kind.name)
        writer = writers.start(kind, place)
        writer.add(FIRST)
        if kind.wal:
            writer.checkpoint()
        writer.add(SECOND)
        writer.hold(HELD)
        yield from (_chronicle_backups if kind is CHRONICLES else _file_backups)(kind, place, work, writer)
        writer.close()


def _file_backups(kind: StoreKind, place: Path, work: Path, writer: Writer) -> Iterator[Case]:
    source, expected = place / kind.file, {*FIRST, *SECOND}
    before = size(source, *side_files(source))
    plain, parted, whole, own = (fresh(work, way, kind.name) for way in ("plain", "parted", "whole", "own"))
    for folder in (plain, parted, whole):
        shutil.copyfile(source, folder / kind.file)
    for beside in side_files(source):
        if not beside.name.endswith("-shm"):
            shutil.copyfile(beside, whole / beside.name)
    told = _beside(writer, lambda: _copied(source, own / kind.file))
    if kind.wal:
        writer.checkpoint()
    for beside in side_files(source):
        if not beside.name.endswith("-shm"):
            shutil.copyfile(beside, parted / beside.name)
    for way, folder, baseline in (
        ("plain copy of the file", plain, True),
        ("plain copy of the file and its log, a commit between", parted, True),
        ("plain copy of the file and its log, nothing between", whole, True),
        ("SQLite backup", own, False),
    ):
        yield case(
            kind, BACKUP, way, expected=expected, allowed={*HELD}, before=before, place=folder, baseline=baseline,
            told="" if baseline else told,
        )  # fmt: skip


def _chronicle_backups(kind: StoreKind, place: Path, work: Path, writer: Writer) -> Iterator[Case]:
    plain, own, backup = fresh(work, "plain", kind.name), fresh(work, "own", kind.name), fresh(work, "backup-of")
    before, expected = size(place / kind.file), {*FIRST, *SECOND}
    shutil.copytree(place / kind.file, plain / kind.file)
    archive = open_archive(place / kind.file, AGENT)
    told = _beside(writer, lambda: _backed_up(archive, backup / "kept"))
    restore(backup / "kept", own / kind.file, AGENT)
    for way, folder in (("plain copy of the folder", plain), ("backup of the archive", own)):
        yield case(
            kind, BACKUP, way, expected=expected, allowed={*HELD}, before=before, place=folder,
            baseline=folder is plain, told="" if folder is plain else told,
        )  # fmt: skip


def _copied(source: Path, target: Path) -> None:
    copy_database(source, target)


def _backed_up(archive: Archive, target: Path) -> None:
    back_up(archive, target, _NOW)


def _beside(writer: Writer, act: Callable[[], object]) -> str:
    """Does something beside a held writer, which goes on when it is waited for; returns what was told."""
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(told_by, act)
        with suppress(NotDone):
            acting.result(_PATIENCE)
        writer.release()
        told = acting.result()
        writer.done()
    return told


def kills(writers: Writers, work: Path) -> Iterator[Case]:
    """Kills the writer of each store before its commit, reads, and writes on."""
    for kind in (*STORES, REWRITTEN, REPLACED):
        place = fresh(work, "kill", kind.name)
        writer = writers.start(kind, place)
        writer.add(FIRST)
        writer.hold(HELD)
        before = size(place / kind.file, *side_files(place / kind.file))
        writer.kill()
        baseline = kind is REWRITTEN
        yield case(
            kind, KILL, "read afterwards", expected={*FIRST}, allowed={*HELD}, before=before, place=place,
            baseline=baseline,
        )  # fmt: skip
        if kind not in STORES:
            continue
        after = writers.start(kind, place, "after")
        told = after.add(LATER)
        after.close()
        yield case(
            kind, KILL, "written and read afterwards", expected={*FIRST, *LATER}, allowed={*HELD}, before=before,
            place=place, told=told,
        )  # fmt: skip


def pairs(writers: Writers, work: Path) -> Iterator[Case]:
    """Lets a second writer begin while the first one is in mid-write."""
    for kind in (*STORES, REWRITTEN):
        place = fresh(work, "two", kind.name)
        one, two = writers.start(kind, place, "one"), writers.start(kind, place, "two")
        one.add(FIRST)
        before = size(place / kind.file)
        one.hold(HELD)
        two.send(SECOND)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(two.done)
            with suppress(NotDone):
                second.result(_PATIENCE)
            one.release()
            told = "; ".join(filter(None, (one.done(), second.result())))
        one.close()
        two.close()
        yield case(
            kind, TWO, "each by the store's own code", expected={*FIRST, *HELD, *SECOND}, before=before, place=place,
            baseline=kind is REWRITTEN, told=told,
        )  # fmt: skip
