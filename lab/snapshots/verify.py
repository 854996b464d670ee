"""Verifying a snapshot: everything that is not as it was frozen, by name."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.errors import InputError
from lab.records import file_digest
from lab.snapshots.freeze import DATABASE
from lab.snapshots.fulltext import check_full_text
from lab.snapshots.identity import Content, identify
from lab.snapshots.manifest import MANIFEST, Manifest, read_manifest
from lab.snapshots.sqlite import explained, open_frozen, side_files
from lab.snapshots.store import in_use


class Kind(StrEnum):
    """What a change is about."""

    MANIFEST = "manifest"
    MISSING = "missing"
    DAMAGED = "damaged"
    LAYOUT = "layout"
    """The bytes of the file are others, what they say is the same."""
    SETTING = "setting"
    SCHEMA = "schema"
    ROWS = "rows"
    IN_USE = "in use"
    EXTRA_FILE = "extra file"


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was frozen.

    Attributes:
        kind: What it is about.
        what: Its name: a file, a table, ``index idx_facts_trust``; hostile.
        detail: What happened to it, in words; hostile.
    """

    kind: Kind
    what: str
    detail: str


def verify(folder: Path) -> tuple[Change, ...]:
    """Compares a snapshot with its manifest; nothing where it is as it was frozen.

    Raises:
        InputError: It is no snapshot: there is no manifest.
        EnvironmentUnusable: Its bytes are others, and there is no room for the copy whose indexes are checked.
    """
    if not (folder / MANIFEST).exists():
        read_manifest(folder)
    return tuple(_changes(folder))


def _changes(folder: Path) -> Iterator[Change]:
    database = folder / DATABASE
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        yield Change(Kind.MANIFEST, MANIFEST, error.message)
        return
    if not manifest.is_intact():
        yield Change(Kind.MANIFEST, MANIFEST, "was edited after it was sealed")
    if not database.is_file():
        yield Change(Kind.MISSING, DATABASE, "is not there")
        return
    if problem := in_use(database):
        yield Change(Kind.IN_USE, DATABASE, f"{problem}; what follows is without it")
    expected = {folder / MANIFEST, database}
    own = side_files(database)
    for path in sorted(set(folder.iterdir()) - expected):
        detail = "was made by a program that opened the database for writing" if path in own else "does not belong here"
        yield Change(Kind.EXTRA_FILE, path.name, detail)
    try:
        if file_digest(database) != manifest.file.sha256:
            yield from _in_database(database, manifest)
    except OSError as error:
        yield Change(Kind.DAMAGED, DATABASE, f"cannot be read: {error.strerror}")


def _in_database(database: Path, manifest: Manifest) -> Iterator[Change]:
    try:
        with closing(open_frozen(database)) as connection:
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            now = identify(connection)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield Change(Kind.DAMAGED, DATABASE, explained(error, database).message)
        return
    damage = " ".join(said.split()) if said != "ok" else _in_full_text(database)
    if damage:
        yield Change(Kind.DAMAGED, DATABASE, damage)
    changes = tuple(content_changes(manifest.content, now))
    yield from changes
    if not (changes or damage):
        yield Change(Kind.LAYOUT, DATABASE, "other bytes, the same content")


def _in_full_text(database: Path) -> str:
    """What is wrong with the full-text indexes; empty where nothing is. A snapshot is read only, so a copy is asked.

    Raises:
        EnvironmentUnusable: There is no room for the copy.
    """
    with TemporaryDirectory(prefix="lab-verify-") as folder:
        copy = Path(folder) / DATABASE
        try:
            shutil.copyfile(database, copy)
            check_full_text(copy, database)
        except OSError as error:
            raise explained(error, copy) from error
        except sqlite3.Error as error:
            return explained(error, database).message
        except InputError as error:
            return error.message
    return ""


def content_changes(before: Content, after: Content) -> Iterator[Change]:
    """Names what two contents differ in."""
    for name in ("encoding", "user_version", "application_id"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield Change(Kind.SETTING, name, f"{old} → {new}")
    yield from _objects(before.objects, after.objects)
    for name in sorted({*before.tables, *after.tables}):
        was, now = before.tables.get(name), after.tables.get(name)
        if was is None:
            yield Change(Kind.ROWS, name, f"added with {_rows(after.tables[name].rows)}")
        elif now is None:
            yield Change(Kind.ROWS, name, f"gone with {_rows(was.rows)}")
        elif was.rows != now.rows:
            yield Change(Kind.ROWS, name, f"{was.rows} → {_rows(now.rows)}")
        elif was.sha256 != now.sha256:
            yield Change(Kind.ROWS, name, f"{_rows(was.rows)} as before, other contents")


def _objects(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        if name not in after:
            yield Change(Kind.SCHEMA, name, "gone")
        elif name not in before:
            yield Change(Kind.SCHEMA, name, "added")
        elif before[name] != after[name]:
            yield Change(Kind.SCHEMA, name, "defined otherwise")


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
