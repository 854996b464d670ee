"""Captures an agent's home from bytes: its manifest, and its files, without secrets, under their digests."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.agents.base import StoreMap
from lab.contamination.redacted_files import Unredactable, redacted_file
from lab.contamination.secrets import NOTHING, Redactor
from lab.contamination.stores import KEPT_DIRECTORY, FileState, Manifest
from lab.records import Store, digest

KEEP_BYTES = 16 << 20
"""Largest file that is kept as evidence; of a larger one only size and digest are."""

KEEP_TOTAL_BYTES = 256 << 20
"""All kept files of one capture together; what comes beyond is not kept, and leaves its store's verdict open."""


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
