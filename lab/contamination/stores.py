"""The home before and after a trial as it was captured: manifests, kept files, diff, findings per store.

Files are kept under the digest of their content. Names that an agent gave to its files stand in the manifest as
data and never become names of files in the run folder.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from lab.contamination.observe.detect import excerpt, find, line_of
from lab.contamination.observe.readable import SQLITE_MAGIC, TooMuchToRead, readable_texts
from lab.errors import InputError
from lab.records import Evidence, Record, Store, StoreFinding, Value, digest

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
