"""The archive's own full-text index. It is a file of its own, and nothing of the normal ranking ever opens it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

from lab.errors import InputError, LabError
from lab.memories.hfea.archive import CHRONICLES, FILE_MODE, Archive
from lab.memories.hfea.chronicle import Line, read_chronicle, read_line
from lab.records import digest
from lab.retrieval.factstore.tokens import indexed, pieces
from lab.snapshots.sqlite import explained

MEND = "remove index.db, then refresh_index"
_LAYOUT = 2
_SCHEMA = f"""
CREATE TABLE days (day TEXT PRIMARY KEY, sha256 TEXT NOT NULL);
CREATE TABLE lines (
    id INTEGER PRIMARY KEY, day TEXT NOT NULL REFERENCES days(day), number INTEGER NOT NULL, mark TEXT NOT NULL
);
CREATE INDEX lines_of_day ON lines(day);
CREATE VIRTUAL TABLE words USING fts5(text, author, tokenize='porter unicode61 remove_diacritics 2');
PRAGMA user_version = {_LAYOUT};
"""
_SEARCH = """
SELECT day, number FROM words JOIN lines ON lines.id = words.rowid
WHERE words MATCH ? ORDER BY round(bm25(words), 6), day DESC, number LIMIT ?
"""


class Indexed(NamedTuple):
    """What the index knows of a day.

    Attributes:
        sha256: Digest of the chronicle that was indexed.
        marks: Marks of its messages.
    """

    sha256: str
    marks: frozenset[str]


_UNKNOWN = Indexed("", frozenset())


class ArchiveChanged(InputError):
    """A chronicle is not the one that was indexed: what it says now is no evidence."""


@dataclass(frozen=True)
class Found:
    """A line of a chronicle.

    Attributes:
        file: Its file, relative to the archive.
        line: The line, as it stands there now.
    """

    file: str
    line: Line


def refresh_index(archive: Archive, *, harmed: Mapping[date, Indexed] = MappingProxyType({})) -> tuple[date, ...]:
    """Brings the index up to the chronicles as they are: those whose bytes are others than before are read again.

    An index of another layout, or a damaged one, is thrown away: all of it can be made again.

    Args:
        archive: The archive.
        harmed: Days that have lost something, and what the index knew of them. They are left as they were indexed, so
            that a search still meets, and tells, what became of them; an index that is made anew keeps their marks.

    Returns:
        The days that were indexed anew or taken out.

    Raises:
        EnvironmentUnusable: It cannot be written.
    """
    with archive.writing():
        try:
            return _refresh(archive, harmed)
        except (OSError, sqlite3.OperationalError) as error:
            raise explained(error, archive.index) from error
        except sqlite3.DatabaseError:
            archive.index.unlink(missing_ok=True)
            return _refresh(archive, harmed)


def harms(archive: Archive, removed: Collection[date]) -> dict[date, str]:
    """What became of chronicles that are not as they were indexed and have lost something, or are damaged, by day.

    A chronicle that has only grown is none of them: the run that wrote it may have been cut off before it was indexed.

    Args:
        archive: The archive.
        removed: Days that retention has removed.

    Raises:
        EnvironmentUnusable: A chronicle cannot be read.
    """
    known = indexed_days(archive)
    found = {}
    for day in sorted((known.keys() | archive.days().keys()) - set(removed)):
        sha, marks = known.get(day, _UNKNOWN)
        data = archive.bytes_of(day)
        if digest(data) == sha:
            continue
        read = read_chronicle(data, day, archive.head.zone)
        if lost := marks - {mark for line in read.lines for mark in line.message.marks}:
            found[day] = f"{len(lost)} of {len(marks)} messages of the chronicle are gone"
        elif read.faults:
            found[day] = f"line {read.faults[0]} of the chronicle is not as it was written"
    return found


def indexed_days(archive: Archive) -> dict[date, Indexed]:
    """What the index knows of each day; nothing where the index itself is none or damaged."""
    query = "SELECT days.day, sha256, group_concat(mark) FROM days LEFT JOIN lines ON lines.day = days.day GROUP BY 1"
    try:
        with closing(sqlite3.connect(f"{archive.index.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.Error:
        return {}
    return {
        date.fromisoformat(day): Indexed(sha, frozenset((marks or "").split(",")) - {""}) for day, sha, marks in rows
    }


def _refresh(archive: Archive, harmed: Mapping[date, Indexed]) -> tuple[date, ...]:
    os.close(os.open(archive.index, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE))
    chronicles = {day: archive.bytes_of(day) for day in archive.days()}
    with closing(sqlite3.connect(archive.index, isolation_level=None)) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] != _LAYOUT:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables:
                raise sqlite3.DatabaseError("of another layout")
            connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        known = {date.fromisoformat(day): sha for day, sha in connection.execute("SELECT day, sha256 FROM days")}
        now = {day: digest(data) for day, data in chronicles.items()}
        stale = sorted(day for day in (known.keys() | now.keys()) - harmed.keys() if known.get(day) != now.get(day))
        connection.execute("BEGIN IMMEDIATE")
        for day in stale:
            connection.execute(
                "DELETE FROM words WHERE rowid IN (SELECT id FROM lines WHERE day = ?)", (day.isoformat(),)
            )
            connection.execute("DELETE FROM lines WHERE day = ?", (day.isoformat(),))
            connection.execute("DELETE FROM days WHERE day = ?", (day.isoformat(),))
            if day in now:
                connection.execute("INSERT INTO days VALUES (?, ?)", (day.isoformat(), now[day]))
                for line in read_chronicle(chronicles[day], day, archive.head.zone).lines:
                    _insert(connection, day, line)
        for day in sorted(harmed.keys() - known.keys()):
            connection.execute("INSERT INTO days VALUES (?, ?)", (day.isoformat(), harmed[day].sha256))
            rows = [(day.isoformat(), mark) for mark in sorted(harmed[day].marks)]
            connection.executemany("INSERT INTO lines (day, number, mark) VALUES (?, 0, ?)", rows)
        connection.execute("COMMIT")
    return tuple(stale)


def _insert(connection: sqlite3.Connection, day: date, line: Line) -> None:
    row = connection.execute(
        "INSERT INTO lines (day, number, mark) VALUES (?, ?, ?)", (day.isoformat(), line.number, line.message.mark)
    ).lastrowid
    text, author = indexed(line.message.text), indexed(line.message.author)
    connection.execute("INSERT INTO words (rowid, text, author) VALUES (?, ?, ?)", (row, text, author))


class ArchiveSearch:
    """Searches an archive whose index is up to date; every chronicle that it reads is held against the index.

    Args:
        archive: The archive.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._days: dict[date, bytes] = {}

    @property
    def archive(self) -> Archive:
        """The archive that is searched."""
        return self._archive

    def search(self, terms: Sequence[str], limit: int) -> tuple[Found, ...]:
        """Lines with any of the terms, best BM25 first, then the newest.

        Args:
            terms: Content terms, folded; see ``lab.retrieval.factstore.tokens.terms``.
            limit: Most lines.

        Raises:
            ArchiveChanged: A chronicle is not the one that was indexed, or is gone.
            InputError: There is no index, or it is damaged.
        """
        phrases = [f'"{" ".join(found)}"' for term in terms if (found := pieces(term))]
        if not phrases:
            return ()
        with self._reading() as connection:
            rows = connection.execute(_SEARCH, (" OR ".join(phrases), limit)).fetchall()
            return tuple(self._found(connection, date.fromisoformat(day), number) for day, number in rows)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        path = self._archive.index
        if not path.is_file():
            raise InputError(f"the archive has no index: {path}", MEND)
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                yield connection
        except LabError:
            raise
        except sqlite3.Error as error:
            raise explained(error, path) from error

    def _found(self, connection: sqlite3.Connection, day: date, number: int) -> Found:
        path = self._archive.chronicle(day)
        if day not in self._days:
            (sha,) = connection.execute("SELECT sha256 FROM days WHERE day = ?", (day.isoformat(),)).fetchone()
            data = self._archive.bytes_of(day)
            if digest(data) != sha:
                raise ArchiveChanged(
                    f"{path} is not the chronicle that was indexed",
                    "run the nightly routine; without its logs, restore a backup, or refresh_index takes it as it is",
                )
            self._days[day] = data
        line = read_line(self._days[day], day, number)
        if line is None:
            raise InputError(f"the archive's index is damaged: {path.name} has no message in line {number}", MEND)
        return Found(f"{CHRONICLES}/{path.name}", line)
