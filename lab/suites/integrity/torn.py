"""Files that a bad disk or a bad copy has left: cut, swapped, emptied, without their log."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from lab.memories.hfea.archive import open_archive
from lab.memories.hfea.nightly import run_nightly
from lab.retrieval.build_database import build_database
from lab.retrieval.database import read_facts
from lab.retrieval.testset import Fact
from lab.snapshots.freeze import freeze
from lab.snapshots.sqlite import open_frozen, side_files
from lab.snapshots.store import open_snapshot
from lab.suites.integrity.cases import Case, Finding, Held, judge, looked, size, told_by
from lab.suites.integrity.living import FIRST, SECOND, case, fresh
from lab.suites.integrity.stores import AGENT, CHRONICLES, STORES, WORD, StoreKind
from lab.suites.integrity.writers import Writers

_PAGE = 4096
_LEAVES = (0x0A, 0x0D)
"""First byte of a page that holds rows: of a table without row ids, and of any other."""

_TEXT = f"{WORD} ".encode()

Damage = Callable[[Path], None]


def _leaves(data: bytes | bytearray) -> list[int]:
    """Pages on which texts begin, by number from 0, the first page left out."""
    pages = range(1, len(data) // _PAGE)
    return [p for p in pages if data[p * _PAGE] in _LEAVES and _TEXT in data[p * _PAGE : (p + 1) * _PAGE]]


def _cut_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // _PAGE // 2 * _PAGE])


def _cut_within_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: -_PAGE // 2])


def _swap_pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    leaves = _leaves(data)
    one, two = (slice(page * _PAGE, (page + 1) * _PAGE) for page in (leaves[0], leaves[len(leaves) // 2]))
    data[one], data[two] = data[two], data[one]
    path.write_bytes(data)


def _empty_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    page = _leaves(data)[0]
    data[page * _PAGE : (page + 1) * _PAGE] = bytes(_PAGE)
    path.write_bytes(data)


def _flip_text(path: Path) -> None:
    """One letter of one text, wherever it stands in rows and indexes of words: no checksum of SQLite's covers it."""
    data, (text, *_) = path.read_bytes(), FIRST
    wrong = text.replace("memo", "nemo", 1)
    path.write_bytes(data.replace(text[:40].encode(), wrong[:40].encode()))


DAMAGES: dict[str, Damage] = {
    "file cut in half": _cut_half,
    "last page cut": _cut_within_page,
    "two pages of rows swapped": _swap_pages,
    "a page of rows emptied": _empty_page,
    "a letter of a text changed": _flip_text,
}
"""Faults of a database file, by name."""


def torn(work: Path) -> Iterator[Case]:
    """Damages each store's file and reads it by the store's own code, and, of a database, by freezing it as well."""
    for kind in STORES:
        if kind is CHRONICLES:
            yield from _chronicles(work)
            continue
        sound = fresh(work, "sound", kind.name)
        with closing(kind.open(sound, "one")) as handle:
            handle.add(FIRST)
            handle.add(SECOND)
        before, expected = size(sound / kind.file), {*FIRST, *SECOND}
        for fault, damage in DAMAGES.items():
            place, frozen = (fresh(work, fault, way, kind.name) for way in ("opened", "frozen"))
            for copy in (place, frozen):
                shutil.copyfile(sound / kind.file, copy / kind.file)
                damage(copy / kind.file)
            yield case(kind, fault, "opened by the store", expected=expected, before=before, place=place)
            yield _frozen(kind, fault, frozen, before)


def _frozen(kind: StoreKind, fault: str, place: Path, before: int) -> Case:
    """Freezes a damaged store; what was frozen is read if nothing was told."""
    refused = told_by(partial(_freeze, kind, place))
    place = place if refused else place / "copy"
    return case(
        kind, fault, "frozen as a snapshot", expected={*FIRST, *SECOND}, before=before, place=place, told=refused
    )


def _freeze(kind: StoreKind, place: Path) -> None:
    freeze(place / kind.file, place, name="frozen", licence="synthetic")
    (place / "copy").mkdir()
    open_snapshot(place / "frozen").copy_to(place / "copy" / kind.file)


def logs(writers: Writers, work: Path) -> Iterator[Case]:
    """Takes the write-ahead log of a killed program away, or its end, before the store is opened again."""
    for kind in (kind for kind in STORES if kind.wal):
        for fault, keep in (("write-ahead log missing", 0.0), ("write-ahead log cut", 0.5)):
            place = fresh(work, fault, kind.name)
            writer = writers.start(kind, place)
            writer.add(FIRST)
            writer.checkpoint()
            writer.add(SECOND)
            path = place / kind.file
            before = size(path, *side_files(path))
            writer.kill()
            log = path.with_name(f"{path.name}-wal")
            data = log.read_bytes()
            log.write_bytes(data[: int(len(data) * keep)])
            yield case(kind, fault, "opened by the store", expected={*FIRST, *SECOND}, before=before, place=place)


def snapshots(work: Path) -> Iterator[Case]:
    """Damages a frozen snapshot; it is opened as a benchmark does, and, as a baseline, like any database."""
    place = fresh(work, "snapshot")
    facts = [Fact(id=f"f{n}", text=text) for n, text in enumerate((*FIRST, *SECOND))]
    build_database(facts, place / "facts.db")
    freeze(place / "facts.db", place, name="sound", licence="synthetic")
    for fault, damage in DAMAGES.items():
        folder = place / fault.replace(" ", "_")
        shutil.copytree(place / "sound", folder)
        database = folder / "memory.db"
        database.chmod(0o600)
        before = size(database)
        damage(database)
        for way, baseline in (("opened as a snapshot", False), ("opened as a plain database", True)):
            finding = looked(partial(_facts, database if baseline else folder))
            yield Case(
                store="frozen snapshot",
                fault=fault,
                way=way,
                baseline=baseline,
                before=Held(rows=len(facts), bytes=before),
                after=Held(rows=None if finding.found is None else len(finding.found), bytes=size(database)),
                verdict=judge({*FIRST, *SECOND}, finding),
                told=finding.told,
            )


def _facts(path: Path) -> Finding:
    with closing(open_frozen(path) if path.is_file() else open_snapshot(path).connect()) as connection:
        return Finding(found=frozenset(fact.content for fact in read_facts(connection)))


def _cut_chronicle(archive: Path) -> None:
    (path,) = (archive / "chronicles").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _change_chronicle(archive: Path) -> None:
    (path,) = (archive / "chronicles").iterdir()
    path.write_bytes(path.read_bytes().replace(b"memo 0000", b"nemo 0000"))


def _remove_chronicle(archive: Path) -> None:
    (path,) = (archive / "chronicles").iterdir()
    path.unlink()


def _cut_index(archive: Path) -> None:
    _cut_half(archive / "index.db")


def _chronicles(work: Path) -> Iterator[Case]:
    kind = CHRONICLES
    for fault, damage in {
        "chronicle cut in half": _cut_chronicle,
        "a letter of a chronicle changed": _change_chronicle,
        "chronicle removed": _remove_chronicle,
        "index cut in half": _cut_index,
    }.items():
        place = fresh(work, fault, kind.name)
        with closing(kind.open(place, "one")) as handle:
            handle.add(FIRST)
            handle.add(SECOND)
            before = size(place / kind.file)
            damage(place / kind.file)
            yield case(kind, fault, "searched as it is", expected={*FIRST, *SECOND}, before=before, place=place)
        for way, gone in (("after a nightly run, with the logs", False), ("after a nightly run, the logs gone", True)):
            again = fresh(work, fault, way, kind.name)
            shutil.copytree(place, again, dirs_exist_ok=True)
            if gone:
                shutil.rmtree(again / "logs")
                (again / "logs").mkdir()
            night = run_nightly(open_archive(again / kind.file, AGENT), again / "logs")
            told = "; ".join(map(str, night.damages))
            yield case(kind, fault, way, expected={*FIRST, *SECOND}, before=before, place=again, told=told)
