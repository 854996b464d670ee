"""Brings an episodic index up to its logs: what changed is read, and the index is the same as one made from nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import InputError
from lab.memories.archive.logs import Reason, read_lines
from lab.records import Record, file_digest
from lab.text import printable

SETTLED_NS = 2_000_000_000
"""A file's times count only if they were at least this old when it was last looked at.

File systems keep times to 2 s at worst, so a change just after the look could have left them as they were (Git calls
such files racily clean).
"""

_PREPARE = """
CREATE TEMP TABLE IF NOT EXISTS touched(point TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS earlier(
    point TEXT PRIMARY KEY, content TEXT NOT NULL, file TEXT NOT NULL, offset INTEGER NOT NULL
) WITHOUT ROWID;
"""
_EARLIER = "INSERT OR IGNORE INTO earlier SELECT point, content, file, offset FROM lines WHERE current AND "
_UNINDEX = "INSERT INTO episodes(episodes, rowid, text) SELECT 'delete', row, text FROM lines WHERE current AND "
_OF_FILE, _TOUCHED = "file = ?", "point IN (SELECT point FROM touched)"

# The first line in the order of file and offset is the one that counts: no order of arrival changes that.
_SETTLE = f"""
UPDATE lines SET current = 1 WHERE row IN (
    SELECT row FROM (
        SELECT row, row_number() OVER (PARTITION BY point ORDER BY file, offset) AS place FROM lines WHERE {_TOUCHED}
    ) WHERE place = 1
)
"""  # noqa: S608
_COUNT = """
SELECT count(*) FILTER (WHERE old.point IS NULL),
    count(*) FILTER (WHERE old.content != new.content),
    count(*) FILTER (WHERE old.content = new.content AND (old.file, old.offset) != (new.file, new.offset)),
    (SELECT count(*) FROM lines WHERE current),
    (SELECT count(*) FROM earlier WHERE NOT EXISTS (
        SELECT 1 FROM lines WHERE lines.point = earlier.point AND current
    ))
FROM touched JOIN lines new ON new.point = touched.point AND new.current
LEFT JOIN earlier old ON old.point = new.point
"""
_SKIPPED = f"""
SELECT file, offset, reason, detail FROM skipped
UNION ALL
SELECT later.file, later.offset, '{Reason.TWICE}', 'byte ' || first.offset || ' of ' || first.file
FROM lines later JOIN lines first ON first.point = later.point AND first.current WHERE NOT later.current
ORDER BY 1, 2
"""  # noqa: S608


class Skipped(Record):
    """Something in the logs that is not in the index.

    Attributes:
        file: The log, relative to the folder.
        offset: First byte of the line; None for the whole file.
        reason: Why.
        detail: What exactly is wrong.
    """

    file: str
    offset: int | None
    reason: Reason
    detail: str = ""


class IndexReport(Record):
    """What one run of indexing did.

    Attributes:
        added: Messages that were not there.
        changed: … that say something else now.
        moved: … that say the same in another place.
        unchanged: All others that are there.
        removed: Messages that were there and are no more.
        files: Logs in the folder.
        read: Logs whose bytes were read.
        parsed: Logs whose content is another than at the last run.
        skipped: All that is left out now, also of logs that were not read.
    """

    added: int
    changed: int
    moved: int
    unchanged: int
    removed: int
    files: int
    read: int
    parsed: int
    skipped: tuple[Skipped, ...]

    @property
    def messages(self) -> int:
        """Messages in the index."""
        return self.added + self.changed + self.moved + self.unchanged


@dataclass
class _Tally:
    """Logs by what was done with them."""

    read: int = 0
    parsed: int = 0


def index_logs(connection: sqlite3.Connection, logs: Path, *, read_all: bool) -> IndexReport:
    """Brings an index up to a folder of logs, in one transaction.

    A log whose size, inode and times are those of the last look is not read, unless its times were too fresh then. Any
    other is read and digested, and parsed only if its digest is another. A program can set a modification time back,
    but not the time of that change of the inode, so a modification time that lies is seen.

    Args:
        connection: The index.
        logs: The folder.
        read_all: Whether every log is read and digested, whatever its times say.

    Raises:
        InputError: There is no such folder.
        sqlite3.Error: The index cannot be written; it is as it was.
    """
    if not logs.is_dir():
        raise InputError(f"no folder of logs at {logs}", "name the folder that holds the .jsonl files")
    connection.executescript(_PREPARE)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("DELETE FROM touched")
        connection.execute("DELETE FROM earlier")
        connection.execute("DELETE FROM skipped WHERE offset IS NULL")
        present, tally = set(), _Tally()
        for file, path in _logs(connection, logs):
            connection.execute("SAVEPOINT log")
            try:
                _bring_up(connection, file, path, tally, read_all=read_all)
            except FileNotFoundError:  # removed since the folder was listed
                connection.execute("ROLLBACK TO log")
                continue
            except OSError as error:
                # What cannot be read has not been deleted: its messages stay.
                connection.execute("ROLLBACK TO log")
                _skip(connection, file, Reason.UNREADABLE, error.strerror or "")
            present.add(file)
        known = [file for (file,) in connection.execute("SELECT file FROM files")]
        for file in known:
            if file not in present:
                _forget(connection, file)
                connection.execute("DELETE FROM files WHERE file = ?", (file,))
        report = _settle(connection, len(present), tally)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return report


def _logs(connection: sqlite3.Connection, logs: Path) -> Iterator[tuple[str, Path]]:
    """The logs by their names; what is none, but is called like one, is noted."""
    found = [Path(folder, name) for folder, _, names in os.walk(logs, onerror=_refuse) for name in names]
    for path in sorted(path for path in found if path.suffix == ".jsonl"):
        name = path.relative_to(logs).as_posix()
        try:
            name.encode()
        except UnicodeEncodeError:
            _skip(connection, printable(name), Reason.NO_NAME)
            continue
        if path.is_file() and not path.is_symlink():
            yield name, path
        else:
            # A link could bring in what is not a log, and a pipe would be waited for without end.
            _skip(connection, name, Reason.NO_FILE)


def _refuse(error: OSError) -> None:
    """A folder that cannot be listed is not an empty one: its messages would be taken for deleted."""
    what = f"{error.filename} cannot be listed: {error.strerror}"
    raise InputError(what, "give yourself the right to read it, or move it out of the logs") from error


def _bring_up(connection: sqlite3.Connection, file: str, path: Path, tally: _Tally, *, read_all: bool) -> None:
    looked = time.time_ns()
    found = path.stat()
    stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    query = "SELECT digest, looked_ns, size, mtime_ns, ctime_ns, inode FROM files WHERE file = ?"
    known, last_look, *last_stamp = connection.execute(query, (file,)).fetchone() or (None, 0)
    settled = max(found.st_mtime_ns, found.st_ctime_ns) + SETTLED_NS < last_look
    if tuple(last_stamp) == stamp and settled and not read_all:
        return
    tally.read += 1
    digest = file_digest(path)
    if digest != known:
        tally.parsed += 1
        digest = _parse(connection, file, path)
    connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", (file, digest, *stamp, looked))


def _parse(connection: sqlite3.Connection, file: str, path: Path) -> str:
    """Takes in a log anew and tells the digest of the bytes that were taken in: a writer may have gone on meanwhile."""
    taken = hashlib.sha256()
    with path.open("rb") as stream:
        _forget(connection, file)
        for line in read_lines(stream, taken.update):
            if line.message is None:
                connection.execute(
                    "INSERT INTO skipped VALUES (?, ?, ?, ?)", (file, line.offset, line.reason, line.detail)
                )
                continue
            said = line.message
            connection.execute(
                "INSERT INTO lines(file, offset, length, point, content, id, session, role, author, text, time) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (file, line.offset, line.length, said.point, said.digest(), said.id, said.session, said.role,
                 said.author, said.text, said.time),
            )  # fmt: skip
    connection.execute("INSERT OR IGNORE INTO touched SELECT point FROM lines WHERE file = ?", (file,))
    return taken.hexdigest()


def _forget(connection: sqlite3.Connection, file: str) -> None:
    """Takes a log's lines out; what was current is remembered for the count."""
    connection.execute("INSERT OR IGNORE INTO touched SELECT point FROM lines WHERE file = ?", (file,))
    for statement in (_EARLIER, _UNINDEX):
        connection.execute(statement + _OF_FILE, (file,))
    connection.execute("DELETE FROM lines WHERE file = ?", (file,))
    connection.execute("DELETE FROM skipped WHERE file = ?", (file,))


def _settle(connection: sqlite3.Connection, files: int, tally: _Tally) -> IndexReport:
    """Chooses the line that counts for each id that a change touched, indexes it, and counts."""
    connection.execute(_EARLIER + _TOUCHED)
    connection.execute(_UNINDEX + _TOUCHED)
    connection.execute(f"UPDATE lines SET current = 0 WHERE {_TOUCHED}")  # noqa: S608
    connection.execute(_SETTLE)
    connection.execute(f"INSERT INTO episodes(rowid, text) SELECT row, text FROM lines WHERE current AND {_TOUCHED}")  # noqa: S608
    added, changed, moved, there, removed = connection.execute(_COUNT).fetchone()
    skipped = tuple(
        Skipped(file=file, offset=offset, reason=Reason(reason), detail=detail)
        for file, offset, reason, detail in connection.execute(_SKIPPED)
    )
    return IndexReport(
        added=added, changed=changed, moved=moved, unchanged=there - added - changed - moved, removed=removed,
        files=files, read=tally.read, parsed=tally.parsed, skipped=skipped,
    )  # fmt: skip


def _skip(connection: sqlite3.Connection, file: str, reason: Reason, detail: str = "") -> None:
    connection.execute("INSERT INTO skipped VALUES (?, NULL, ?, ?)", (file, reason, detail))
