"""The home before and after a trial, read from bytes: manifests, kept files, diff, findings per store.

Files are kept under the digest of their content. Names that an agent gave to its files stand in the manifest as
data and never become names of files in the run folder.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from lab.agents.base import StoreMap
from lab.contamination.observe.detect import excerpt, find, line_of
from lab.contamination.observe.readable import SQLITE_MAGIC, TooMuchToRead, readable_texts
from lab.contamination.redacted_files import Unredactable, redacted_file
from lab.contamination.secrets import NOTHING, Redactor
from lab.errors import InputError
from lab.records import Evidence, Record, Store, StoreFinding, Value, digest

KEEP_BYTES = 16 << 20
"""Largest file that is kept as evidence; of a larger one only size and digest are."""

KEEP_TOTAL_BYTES = 256 << 20
"""All kept files of one capture together; what comes beyond is not kept, and leaves its store's verdict open."""

KEPT_DIRECTORY = "files"
DIFF_BYTES = 200_000

Sha256 = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]


class FileState(Record):
    """One file of the home.

    Attributes:
        store: Store it belongs to.
        size: Bytes.
        sha256: Digest of the content; of a link, of its target's name; empty where it was not read.
        kind: ``file``, ``link``, ``other`` or ``unread`` (a directory that could not be entered).
        kept: Whether its content is among the kept files.
        kept_sha256: Digest of what is kept, where secrets were taken out of it; empty otherwise.
    """

    store: Store
    size: int
    sha256: Sha256
    kind: str = "file"
    kept: bool = False
    kept_sha256: Sha256 = ""

    @property
    def kept_as(self) -> str:
        """Name of the kept file: the digest of its bytes."""
        return self.kept_sha256 or self.sha256


class Manifest(Record):
    """All files of a home, by path relative to it.

    Attributes:
        files: By path; a backslash and bytes that are not UTF-8 are written as escapes, so that two files never share a
            name here.
        hidden: Stores that may lie behind a link or in a directory that could not be entered.
    """

    files: dict[str, FileState]
    hidden: tuple[Store, ...] = ()

    def changed(self, after: Manifest) -> list[str]:
        """Paths that were added, changed or removed."""
        paths = sorted(set(self.files) | set(after.files))
        return [p for p in paths if self._content(p) != after._content(p)]

    def _content(self, path: str) -> tuple[str, str] | None:
        state = self.files.get(path)
        return (state.kind, state.sha256) if state else None


def capture(home: Path, stores: StoreMap, folder: Path, redactor: Redactor = NOTHING) -> Manifest:
    """Takes the manifest of a home and keeps its files' contents under ``folder/files``, without secrets.

    A file that holds a secret has the digest of its content as it was, and beside it that of what is kept.

    Links are recorded, not followed: their targets may lie outside the home. A store that may lie behind a link, or in
    a directory that cannot be entered, is named as hidden: absence cannot be shown there.

    Raises:
        OSError: The evidence cannot be written.
    """
    kept = folder / KEPT_DIRECTORY
    kept.mkdir(exist_ok=True)
    files: dict[str, FileState] = {}
    hidden: set[Store] = set()
    room = KEEP_TOTAL_BYTES
    for path, readable in _walk(home):
        relative = _escaped(path.relative_to(home))
        state = _file_state(path, stores.store_of(relative), kept, room, redactor) if readable else None
        if state is None or state.kind == "link":
            hidden |= stores.stores_below(relative)
        room -= state.size if state and state.kept else 0
        files[redactor.text(relative)] = state or FileState(
            store=stores.store_of(relative), size=0, sha256="", kind="unread"
        )
    return Manifest(files=dict(sorted(files.items())), hidden=tuple(sorted(hidden)))


def _walk(root: Path) -> Iterator[tuple[Path, bool]]:
    """Everything below a directory that is not itself a directory, and directories that cannot be entered (False)."""
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                found = sorted(entries, key=lambda e: e.name)
        except OSError:  # no permission, or a path longer than the kernel takes
            yield directory, False
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            else:
                yield Path(entry.path), True


def _escaped(path: Path) -> str:
    return os.fsencode(path).replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")


def _file_state(path: Path, store: Store, kept: Path, room: int, redactor: Redactor) -> FileState | None:
    """State of one file; None where it cannot be read."""
    try:
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            return FileState(store=store, size=0, sha256=digest(os.fsencode(path.readlink())), kind="link")
        if not stat.S_ISREG(info.st_mode):
            return FileState(store=store, size=0, sha256="", kind="other")
        if info.st_size > min(KEEP_BYTES, room):
            # Not read, so only size and time can tell whether it changed.
            return FileState(store=store, size=info.st_size, sha256=digest([info.st_size, info.st_mtime_ns]))
        data = path.read_bytes()
        clean = redacted_file(path, data, redactor)
    except OSError:
        return None
    except Unredactable:
        return FileState(store=store, size=len(data), sha256=digest(data))
    other = digest(clean) if clean != data else ""
    state = FileState(store=store, size=len(data), sha256=digest(data), kept=True, kept_sha256=other)
    copy = kept / state.kept_as
    if not copy.exists():
        copy.write_bytes(clean)
    return state


def drop_unchanged(before: Manifest, later: Iterable[Manifest], folder: Path) -> None:
    """Removes kept files that no changed path refers to: a digest is evidence enough of what stayed the same."""
    wanted = set()
    for after in later:
        for path in before.changed(after):
            wanted |= {side.files[path].kept_as for side in (before, after) if path in side.files}
    for copy in (folder / KEPT_DIRECTORY).iterdir():
        if copy.name not in wanted:
            copy.unlink()


def store_changed(before: Manifest, after: Manifest, store: Store) -> bool:
    """Whether any file of a store differs; a store that has gone out of sight counts as changed."""
    changed = any((after.files.get(p) or before.files[p]).store is store for p in before.changed(after))
    return changed or (store in after.hidden) != (store in before.hidden)


def findings(
    canary: str, before: Manifest, after: Manifest, folder: Path, tables: Collection[str] = ()
) -> tuple[StoreFinding, ...]:
    """Looks for the canary in every store, in what changed.

    What did not change cannot hold it: a scenario whose world holds its canary is refused.

    Args:
        canary: The token.
        before: The home before.
        after: The home after.
        folder: The trial's folder with the kept files.
        tables: Of a database, the tables whose rows are what it remembers. Rows of others (indexes, counters) do not
            make its store a changed one; without any, every changed byte does.

    Raises:
        InputError: A kept file is missing or was changed.
    """
    changed = before.changed(after)
    return tuple(_finding(store, canary, (before, after), changed, folder, tables) for store in Store)


def _finding(
    store: Store,
    canary: str,
    sides: tuple[Manifest, Manifest],
    changed: list[str],
    folder: Path,
    tables: Collection[str],
) -> StoreFinding:
    before, after = sides
    evidence: list[Evidence] = []
    unread = store in after.hidden
    for path in changed:
        state = after.files.get(path)
        if state is None or state.store is not store or state.kind == "other":
            continue
        if not state.kept:
            unread = True
            continue
        try:
            for place, text in texts_of(after, path, folder):
                if match := find(canary, text):
                    pointer = f"{path} {place or f'line {line_of(text, match)}'}"
                    file = f"{KEPT_DIRECTORY}/{state.kept_as}"
                    evidence.append(Evidence(file=file, pointer=pointer, excerpt=excerpt(text, match)))
        except TooMuchToRead:
            unread = True
    value = Value.YES if evidence else Value.UNDETERMINED if unread else Value.NO
    differs = store_changed(before, after, store) and not (tables and _same_rows(store, sides, changed, folder, tables))
    return StoreFinding(store=store, value=value, changed=differs, evidence=tuple(evidence))


def texts_of(side: Manifest, path: str, folder: Path) -> list[tuple[str, str]]:
    """Places and texts of a kept file, with what its write-ahead log adds; of a file that is not there, none.

    Raises:
        InputError: A kept file is missing or was changed.
        TooMuchToRead: It cannot be read whole.
    """
    state, wal = side.files.get(path), side.files.get(f"{path}-wal")
    if state is None:
        return []
    return readable_texts(kept_bytes(state, folder), kept_bytes(wal, folder) if wal and wal.kept else b"")


def _same_rows(
    store: Store, sides: tuple[Manifest, Manifest], changed: list[str], folder: Path, tables: Collection[str]
) -> bool:
    """Whether a store is nothing but a database whose remembered rows are the same on both sides."""
    if any(store in side.hidden for side in sides):
        return False
    mains = {p.removesuffix("-wal").removesuffix("-shm").removesuffix("-journal") for p in changed}
    mine = {p for p in mains if any((s := side.files.get(p)) and s.store is store for side in sides)}
    prefixes = tuple(f"table {table} row " for table in tables)
    try:
        for path in mine:
            states = [state for side in sides if (state := side.files.get(path))]
            if not all(s.kept and kept_bytes(s, folder).startswith(SQLITE_MAGIC) for s in states):
                return False
            old, new = (
                [text for place, text in texts_of(side, path, folder) if place.startswith(prefixes)] for side in sides
            )
            if old != new:
                return False
    except TooMuchToRead:
        return False
    return bool(mine)


def kept_bytes(state: FileState, folder: Path) -> bytes:
    """Content of a kept file, checked against its digest.

    Raises:
        InputError: It is missing or was changed.
    """
    path = folder / KEPT_DIRECTORY / state.kept_as
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing", "run the trial again: delete its folder, then lab resume") from error
    if digest(data) != state.kept_as:
        raise InputError(
            f"{path} was changed: digest mismatch", "run the trial again: delete its folder, then lab resume"
        )
    return data


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
    return kept_bytes(state, folder).decode("utf-8", "replace").splitlines()
