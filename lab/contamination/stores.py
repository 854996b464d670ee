"""The home before and after a trial, read from bytes: manifests, kept files, diff, findings per store.

Files are kept under the digest of their content. Names that an agent gave to its files stand in the manifest as
data and never become names of files in the run folder.
"""

from __future__ import annotations

import difflib
import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.contamination.observe.detect import excerpt, find, line_of
from lab.records import Evidence, Record, Store, StoreFinding, Value, digest

KEEP_BYTES = 16 << 20
"""Largest file that is kept as evidence; of a larger one only size and digest are."""

KEPT_DIRECTORY = "files"
DIFF_BYTES = 200_000


class FileState(Record):
    """One file of the home.

    Attributes:
        store: Store it belongs to.
        size: Bytes.
        sha256: Digest of the content; of a link, of its target's name; empty for anything else.
        kind: ``file``, ``link`` or ``other``.
        kept: Whether its content is among the kept files.
    """

    store: Store
    size: int
    sha256: str
    kind: str = "file"
    kept: bool = False


class Manifest(Record):
    """All files of a home, by path relative to it; a path that is not UTF-8 is written with backslash escapes."""

    files: dict[str, FileState]

    def changed(self, after: Manifest) -> list[str]:
        """Paths that were added, changed or removed."""
        paths = sorted(set(self.files) | set(after.files))
        return [p for p in paths if self._content(p) != after._content(p)]

    def _content(self, path: str) -> tuple[str, str] | None:
        state = self.files.get(path)
        return (state.kind, state.sha256) if state else None


def capture(home: Path, store_of: Callable[[str], Store], folder: Path) -> Manifest:
    """Takes the manifest of a home and keeps its files' contents under ``folder/files``.

    Links are recorded, not followed: their targets may lie outside the home.

    Raises:
        OSError: A file cannot be read, or the evidence cannot be written.
    """
    kept = folder / KEPT_DIRECTORY
    kept.mkdir(exist_ok=True)
    files = {}
    for directory, _, names in os.walk(home, followlinks=False):
        for name in sorted(names):
            path = Path(directory) / name
            relative = os.fsencode(path.relative_to(home)).decode("utf-8", "backslashreplace")
            files[relative] = _file_state(path, store_of(relative), kept)
    return Manifest(files=dict(sorted(files.items())))


def _file_state(path: Path, store: Store, kept: Path) -> FileState:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return FileState(store=store, size=0, sha256=digest(os.fsencode(path.readlink())), kind="link")
    if not stat.S_ISREG(info.st_mode):
        return FileState(store=store, size=0, sha256="", kind="other")
    if info.st_size > KEEP_BYTES:
        return FileState(store=store, size=info.st_size, sha256=f"size:{info.st_size}:{info.st_mtime_ns}")
    data = path.read_bytes()
    sha256 = digest(data)
    copy = kept / sha256
    if not copy.exists():
        copy.write_bytes(data)
    return FileState(store=store, size=len(data), sha256=sha256, kept=True)


def drop_unchanged(before: Manifest, after: Manifest, folder: Path) -> None:
    """Removes kept files that no changed path refers to: a digest is evidence enough of what stayed the same."""
    wanted = set()
    for path in before.changed(after):
        for side in (before, after):
            if path in side.files:
                wanted.add(side.files[path].sha256)
    for copy in (folder / KEPT_DIRECTORY).iterdir():
        if copy.name not in wanted:
            copy.unlink()


def store_changed(before: Manifest, after: Manifest, store: Store) -> bool:
    """Whether any file of a store differs."""
    return any((after.files.get(p) or before.files[p]).store is store for p in before.changed(after))


def findings(canary: str, before: Manifest, after: Manifest, folder: Path) -> tuple[StoreFinding, ...]:
    """Looks for the canary in every store, in what changed.

    What did not change cannot hold it: a scenario whose world holds its canary is refused.
    """
    changed = before.changed(after)
    return tuple(
        _finding(store, canary, after, changed, store_changed(before, after, store), folder) for store in Store
    )


def _finding(
    store: Store, canary: str, after: Manifest, changed: list[str], differs: bool, folder: Path
) -> StoreFinding:
    evidence: list[Evidence] = []
    unread = False
    for path in changed:
        state = after.files.get(path)
        if state is None or state.store is not store or state.kind == "other":
            continue
        if state.kind == "link" or not state.kept:
            unread = True
            continue
        file = f"{KEPT_DIRECTORY}/{state.sha256}"
        for place, text in _texts(folder / file, path, after, folder):
            if match := find(canary, text):
                pointer = f"{path} {place or f'line {line_of(text, match)}'}"
                evidence.append(Evidence(file=file, pointer=pointer, excerpt=excerpt(text, match)))
    value = Value.YES if evidence else Value.UNDETERMINED if unread else Value.NO
    return StoreFinding(store=store, value=value, changed=differs, evidence=tuple(evidence))


def _texts(copy: Path, path: str, after: Manifest, folder: Path) -> list[tuple[str, str]]:
    """The searchable texts of a kept file: its own, or the rows of a database.

    A database's pages may still hold deleted rows, so its bytes alone would find what is no longer there.
    """
    data = copy.read_bytes()
    if not data.startswith(b"SQLite format 3\x00"):
        return [("", data.decode("utf-8", "replace"))]
    try:
        return _rows(data, path, after.files, folder)
    except sqlite3.Error:
        return [("(bytes of a database that cannot be opened)", data.decode("utf-8", "replace"))]


def _rows(data: bytes, path: str, files: Mapping[str, FileState], folder: Path) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="lab-db-") as scratch:
        database = Path(scratch) / "copy.db"
        database.write_bytes(data)
        wal = files.get(f"{path}-wal")
        if wal and wal.kept:
            (Path(scratch) / "copy.db-wal").write_bytes((folder / KEPT_DIRECTORY / wal.sha256).read_bytes())
        connection = sqlite3.connect(database)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            tables = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            texts = []
            for table in tables:
                quoted = table.replace('"', '""')
                for number, row in enumerate(connection.execute(f'SELECT * FROM "{quoted}"'), 1):  # noqa: S608
                    texts.append((f"table {table} row {number}", "\n".join(str(v) for v in row if v is not None)))
            return texts
        finally:
            connection.close()


def text_diff(before: Manifest, after: Manifest, folder: Path) -> str:
    """Unified diff of the stores' text files, cut to ``DIFF_BYTES`` characters; hostile."""
    parts: list[str] = []
    for path in before.changed(after):
        state = after.files.get(path) or before.files[path]
        if state.store is Store.OTHER:
            continue
        old, new = (_lines(side.files.get(path), folder) for side in (before, after))
        parts += difflib.unified_diff(old, new, f"before/{path}", f"after/{path}", lineterm="")
    text = "".join(f"{part}\n" for part in parts)
    return text if len(text) <= DIFF_BYTES else text[:DIFF_BYTES] + f"\n… {len(text) - DIFF_BYTES} characters omitted\n"


def _lines(state: FileState | None, folder: Path) -> list[str]:
    if state is None or not state.kept:
        return []
    return (folder / KEPT_DIRECTORY / state.sha256).read_bytes().decode("utf-8", "replace").splitlines()
