"""The episodic index: full-text search over session logs, each row with its file, byte offset and message id."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.archive.indexing import IndexReport, index_logs
from lab.memories.archive.logs import Message, parse_line
from lab.records import canonical_json
from lab.retrieval.stopwords import stopwords
from lab.retrieval.systems.base import SCORE_DIGITS
from lab.retrieval.systems.bm25 import Match, match_expression
from lab.snapshots.sqlite import explained

APPLICATION_ID, VERSION = 0x4C616245, 1
"""What marks a file as ours (``LabE``) and its layout."""

TOKENIZER = "unicode61 remove_diacritics 2"
LANGUAGES = ("en", "pt")
"""Whose stopwords are left out of queries."""

WAIT_SECONDS = 10.0
"""How long one process waits for another that is indexing."""

# All lines are kept, also those whose id an earlier one has: when that one goes, they take its place, so the index is
# the same whether logs came one by one or all at once. Only current ones are searched.
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS files(
    file TEXT PRIMARY KEY, digest TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, looked_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lines(
    row INTEGER PRIMARY KEY, file TEXT NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
    point TEXT NOT NULL, content TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, role TEXT NOT NULL,
    author TEXT NOT NULL, text TEXT NOT NULL, time TEXT NOT NULL, current INTEGER NOT NULL DEFAULT 0,
    UNIQUE(file, offset)
);
CREATE INDEX IF NOT EXISTS lines_by_point ON lines(point, current);
CREATE TABLE IF NOT EXISTS skipped(file TEXT NOT NULL, offset INTEGER, reason TEXT NOT NULL, detail TEXT NOT NULL);
CREATE VIEW IF NOT EXISTS messages AS SELECT row, text FROM lines WHERE current;
CREATE VIRTUAL TABLE IF NOT EXISTS episodes
    USING fts5(text, content='messages', content_rowid='row', tokenize='{TOKENIZER}');
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""  # noqa: S608

_EPISODE = "point, file, offset, length, id, session, role, author, text, time"
# Rounded before it is compared; all that are as good as the last one of the cut come with it.
_SEARCH = f"""
WITH scored AS MATERIALIZED (
    SELECT rowid AS row, round(-bm25(episodes), {SCORE_DIGITS}) AS score FROM episodes WHERE episodes MATCH ?
)
SELECT score, {_EPISODE} FROM scored JOIN lines USING (row)
WHERE score >= coalesce((SELECT score FROM scored ORDER BY score DESC LIMIT 1 OFFSET ?), -9e99)
ORDER BY score DESC, point
"""  # noqa: S608

_CONTENT = (
    "SELECT file, digest FROM files ORDER BY file",
    f"SELECT {_EPISODE}, content, current FROM lines ORDER BY file, offset",  # noqa: S608
    "SELECT file, offset, reason, detail FROM skipped ORDER BY file, offset",
)


@dataclass(frozen=True)
class Episode:
    """A message in the index, and where it stands.

    Attributes:
        score: BM25, the higher the better, rounded to 6 decimals.
        point: Its point id.
        file: Its log, relative to the folder of logs.
        offset: First byte of its line.
        length: Bytes of its line.
        message: What it says.
    """

    score: float
    point: str
    file: str
    offset: int
    length: int
    message: Message


class EpisodicIndex:
    """An index in an SQLite file; made where there is none. A context manager, which closes it.

    Args:
        path: The file.

    Raises:
        InputError: The file is damaged or something else.
        EnvironmentUnusable: It cannot be written, or this SQLite has no FTS5.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._dropped = stopwords(LANGUAGES)
        with self._told():
            connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            with self._told():
                _lay_out(connection, path)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def __enter__(self) -> EpisodicIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def index(self, logs: Path, *, read_all: bool = False) -> IndexReport:
        """Brings the index up to a folder of logs, in one transaction: a crash leaves the index as it was.

        Args:
            logs: Folder of ``*.jsonl``, at any depth.
            read_all: Whether files are read whose modification time says that nothing has changed.

        Raises:
            InputError: There is no such folder, or another process is indexing.
            EnvironmentUnusable: The disk is full.
        """
        with self._told():
            return index_logs(self._connection, logs, read_all=read_all)

    def expression(self, query: str) -> str:
        """What FTS5 is asked for a query: its words joined by OR, each quoted; empty where no word is left.

        It is the yardstick's own (``lab.retrieval.systems.bm25``), so that the two differ in what they index alone.
        """
        return match_expression(query, self._dropped, Match.OR)

    def search(self, query: str, limit: int) -> tuple[Episode, ...]:
        """Messages with any word of a query but stopwords, best first, equal ones by point id.

        Args:
            query: Any text, also hostile: none of it is syntax.
            limit: Most messages wanted. Those that are as good as the last of them come as well, so that a caller can
                settle ties by what it knows.

        Raises:
            InputError: The index is damaged.
        """
        asked = self.expression(query)
        if not asked or limit < 1:
            return ()
        with self._told():
            return tuple(_episode(row) for row in self._connection.execute(_SEARCH, (asked, limit - 1)))

    def episode(self, point: str) -> Episode | None:
        """The message of a point; None where there is none. Its score is 0: nothing was asked."""
        query = f"SELECT 0.0, {_EPISODE} FROM lines WHERE point = ? AND current"  # noqa: S608
        with self._told():
            row = self._connection.execute(query, (point,)).fetchone()
        return _episode(row) if row else None

    def content_digest(self) -> str:
        """Hex SHA-256 of the logical content: logs by their digests, every line, everything skipped; no times or rows.

        Two indexes over the same logs have the same, however they came to be.
        """
        found = hashlib.sha256()
        with self._told():
            for query in _CONTENT:
                for row in self._connection.execute(query):
                    found.update(canonical_json(row) + b"\n")
        return found.hexdigest()

    def close(self) -> None:
        """Closes the file; may be called twice."""
        self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever SQLite finds wrong becomes one line."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # ours, not the file's: it was closed
        except sqlite3.Error as error:
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                what = f"the episodic index {self.path} is damaged: {error}"
                raise InputError(what, "delete it and index again: all that it holds is in the logs") from error
            if "no such module: fts5" in str(error):
                raise EnvironmentUnusable(
                    f"this Python's SQLite has no full-text search: {error}", "take a Python whose SQLite has FTS5"
                ) from error
            raise explained(error, self.path) from error


def evidence(episode: Episode, logs: Path) -> None:
    """Proves that a log still says what the index says, by the bytes at its offset.

    Args:
        episode: What the index says.
        logs: The folder of logs.

    Raises:
        InputError: The log is gone, or says something else there.
    """
    path = logs / episode.file
    try:
        with path.open("rb") as stream:
            stream.seek(episode.offset)
            raw = stream.read(episode.length)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "bring it back, or index again") from error
    if parse_line(raw, episode.offset, len(raw)).message != episode.message:
        what = f"{path} does not say at byte {episode.offset} what the index has of it"
        raise InputError(what, "index again")


def _episode(row: tuple[float, str, str, int, int, str, str, str, str, str, str]) -> Episode:
    score, point, file, offset, length, *said = row
    names = ("id", "session", "role", "author", "text", "time")
    return Episode(score, point, file, offset, length, Message(**dict(zip(names, said, strict=True))))


def _lay_out(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the tables of a new file, and refuses one that is not ours."""
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (mark, version) == (APPLICATION_ID, VERSION):
        return
    if tables:
        raise InputError(f"{path} is no episodic index of this version of the lab", "name another file")
    connection.executescript(_SCHEMA)
