"""Vectors beside a frozen database: an SQLite file from which only those that are missing have to be computed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.errors import EnvironmentUnusable, InputError
from lab.retrieval.embedders.base import Embedder, Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.checked import in_batches

Progress = Callable[[int, int], None]
"""Called with the texts that are embedded by now and all that had to be."""

APPLICATION_ID, VERSION = 0x4C616256, 1
"""What marks a file as ours (``LabV``) and its layout."""

WAIT_SECONDS = 60.0
"""How long one process waits for another's batch to be written."""

_KEYS_A_QUERY = 400
_BYTE_ORDER = np.dtype("<f4")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors(
    text TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL, prefix TEXT NOT NULL,
    vector BLOB NOT NULL, seal BLOB NOT NULL,
    PRIMARY KEY(text, model, kind, prefix)
) WITHOUT ROWID
"""

# Codes of SQLite for what is wrong with the machine and not with the file.
_MACHINE = {
    sqlite3.SQLITE_FULL: "free disk space",
    sqlite3.SQLITE_IOERR: "check the disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "make its folder, and make it writable",
    sqlite3.SQLITE_BUSY: "wait for the other process that writes to it",
}


def text_digest(text: str) -> str:
    """Hex SHA-256 of a text, without any prefix."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def seal(digest: str, model: ModelIdentity, kind: Kind, vector: Vectors) -> bytes:
    """Checksum that binds a vector to its text, model and prefix: swapped vectors do not fit their seals.

    Args:
        digest: Digest of the text.
        model: Who made the vector.
        kind: What the text was to the model.
        vector: Shape (dimensions,).
    """
    key = "\n".join((digest, model.digest, kind, model.prefix(kind)))
    return hashlib.sha256(key.encode() + b"\0" + vector.astype(_BYTE_ORDER).tobytes()).digest()


@dataclass(frozen=True, eq=False)
class SealedVectors:
    """Vectors of texts, in the order of the texts.

    Attributes:
        digests: Digest of each text.
        seals: Seal of each vector, as it was made when the vector came from the model.
        matrix: Shape (texts, dimensions).
        kind: What the texts were to the model.
    """

    digests: tuple[str, ...]
    seals: tuple[bytes, ...]
    matrix: Vectors
    kind: Kind


class Sidecar:
    """A file of vectors, keyed by digest of the text, digest of the model, kind and prefix.

    Every batch is written in one transaction: a run that is killed goes on where it stopped, and two processes may
    fill the same file. Whatever is read is checked against its seal.

    Args:
        path: The file; made when it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def vectors(
        self, embedder: Embedder, texts: Sequence[str], kind: Kind, progress: Progress | None = None
    ) -> SealedVectors:
        """Vectors of texts; those that the file lacks are computed and written, in batches by volume of text.

        Args:
            embedder: The model.
            texts: Texts without a prefix; the same text may come more than once.
            kind: What they are.
            progress: Told after each batch.

        Raises:
            EmbeddingFailed: The model gave no vectors; those of earlier batches are kept.
            InputError: The file is damaged or not one of vectors.
            EnvironmentUnusable: The disk is full, or the file cannot be written.
        """
        model = embedder.identity
        digests = tuple(text_digest(text) for text in texts)
        by_digest = dict(zip(digests, texts, strict=True))
        with self._opened() as connection:
            self._fill(connection, embedder, by_digest, kind, progress)
            matrix = np.empty((len(texts), model.dimensions), dtype=np.float32)
            seals = [b""] * len(texts)
            positions: dict[str, list[int]] = {}
            for position, digest in enumerate(digests):
                positions.setdefault(digest, []).append(position)
            for digest, blob, stored in self._rows(connection, "text, vector, seal", by_digest, model, kind):
                vector = self._sound(digest, blob, stored, model, kind)
                for position in positions.pop(digest):
                    matrix[position], seals[position] = vector, stored
        if positions:
            raise self._damaged(f"{len(positions)} vectors are gone that had just been written")
        return SealedVectors(digests, tuple(seals), matrix, kind)

    def _fill(
        self,
        connection: sqlite3.Connection,
        embedder: Embedder,
        texts: dict[str, str],
        kind: Kind,
        progress: Progress | None,
    ) -> None:
        model = embedder.identity
        there = {digest for (digest,) in self._rows(connection, "text", texts, model, kind)}
        missing = [digest for digest in texts if digest not in there]
        done = 0
        for batch, found in in_batches(embedder, [texts[digest] for digest in missing], kind):
            chosen = [missing[position] for position in batch]
            rows = [
                (digest, model.digest, kind, model.prefix(kind), vector.astype(_BYTE_ORDER).tobytes(),
                 seal(digest, model, kind, vector))
                for digest, vector in zip(chosen, found, strict=True)
            ]  # fmt: skip
            with connection:
                # Another process may have written the same vectors meanwhile: the first ones stay.
                connection.executemany("INSERT OR IGNORE INTO vectors VALUES(?, ?, ?, ?, ?, ?)", rows)
            done += len(batch)
            if progress:
                progress(done, len(missing))

    @staticmethod
    def _rows(
        connection: sqlite3.Connection, columns: str, digests: Iterable[str], model: ModelIdentity, kind: Kind
    ) -> Iterator[tuple[Any, ...]]:
        """Columns of the rows that there are for some texts. Any: what stands in a damaged file has any type."""
        wanted = sorted(digests)  # neighbours in the file
        for start in range(0, len(wanted), _KEYS_A_QUERY):
            some = wanted[start : start + _KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            yield from connection.execute(
                f"SELECT {columns} FROM vectors "  # noqa: S608
                f"WHERE model = ? AND kind = ? AND prefix = ? AND text IN ({marks})",
                (model.digest, kind, model.prefix(kind), *some),
            )

    def _sound(self, digest: str, blob: object, stored: object, model: ModelIdentity, kind: Kind) -> Vectors:
        size = model.dimensions * _BYTE_ORDER.itemsize
        if isinstance(blob, bytes) and len(blob) == size:
            vector = np.frombuffer(blob, dtype=_BYTE_ORDER).astype(np.float32)
            if seal(digest, model, kind, vector) == stored:
                return vector
        raise self._damaged(f"the vector of text {digest[:12]} does not fit its seal")

    def _damaged(self, what: str) -> InputError:
        return InputError(
            f"the vectors in {self.path} are damaged: {what}",
            "delete the file if it is one of the lab's: its vectors are computed again",
        )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The file, ours and of this layout; whatever SQLite finds wrong becomes one line."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as connection:
                # In one transaction, or another process could make the table between two of these looks.
                connection.execute("BEGIN")
                (mark,) = connection.execute("PRAGMA application_id").fetchone()
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                connection.rollback()
                if (mark, version) != (APPLICATION_ID, VERSION):
                    if tables:
                        raise InputError(f"{self.path} is no file of vectors of this lab", "name another file")
                    with connection:
                        connection.execute("BEGIN IMMEDIATE")
                        connection.execute(_SCHEMA)
                        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                        connection.execute(f"PRAGMA user_version = {VERSION}")
                yield connection
        except sqlite3.DatabaseError as error:
            mend = _MACHINE.get((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF)
            if mend:
                raise EnvironmentUnusable(f"the vectors in {self.path} cannot be kept: {error}", mend) from error
            raise self._damaged(str(error)) from error
