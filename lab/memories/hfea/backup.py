"""A protected backup of the archive: a consistent copy with a manifest of digests, verified before it is restored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from lab.errors import EnvironmentUnusable, InputError, LabError
from lab.memories.hfea.archive import (
    CHRONICLES,
    DAMAGED,
    FOLDER_MODE,
    HEAD_FILE,
    REMOVED,
    AccessRefused,
    Archive,
    check_private,
    open_archive,
    read_head,
    read_private,
    sync_folder,
    write_private,
)
from lab.memories.hfea.index import refresh_index
from lab.memories.hfea.retention import removed_days
from lab.records import Record, digest, file_digest, first_fault
from lab.text import printable

MANIFEST = "manifest.json"


class NewerData(InputError):
    """The archive holds something that the backup does not."""


class Manifest(Record):
    """What a backup holds.

    Attributes:
        made_at: When it was made, ISO 8601.
        owner: Whose archive it is of.
        files: SHA-256 by path relative to the backup; all files but the manifest.
    """

    made_at: datetime
    owner: str = Field(min_length=1)
    files: dict[str, str]


@dataclass(frozen=True)
class Restored:
    """What a restore has done.

    Attributes:
        archive: The restored archive, indexed.
        lost: What the archive before held and the backup does not, one line each; empty where there is nothing.
        kept: Where the archive before lies now; None where there was none.
    """

    archive: Archive
    lost: tuple[str, ...]
    kept: Path | None


def back_up(archive: Archive, target: Path, now: datetime) -> str:
    """Copies an archive while nobody can write to it. The index is left out: it is made from the chronicles.

    Args:
        archive: The archive.
        target: Folder of the backup, outside of the archive; nothing may be there.
        now: Time for the manifest.

    Returns:
        Digest of the manifest. Kept elsewhere, it shows that a backup was not forged as a whole.

    Raises:
        InputError: Something is there, or it lies within the archive.
        AccessRefused: The archive is open to others by now, or holds a link; nothing is left there then.
        EnvironmentUnusable: It cannot be written; nothing is left there then.
    """
    if target.exists() or target.is_symlink():
        raise InputError(f"{target} is there already", "name another folder")
    if archive.path.resolve() in target.resolve().parents:
        raise InputError(f"{target} lies within the archive", "put the backup elsewhere")
    part = target.with_name(f".{target.name}.part")
    with _in_the_making(part, f"{target} cannot be written"):
        with archive.writing():
            # What was private when the archive was opened need not be so now.
            check_private(archive.path)
            _copy(archive.path, part)
        files = _digests(part)
        manifest = Manifest(made_at=now, owner=archive.head.owner, files=files)
        data = manifest.model_dump_json(indent=1).encode() + b"\n"
        write_private(part / MANIFEST, data)
        part.rename(target)
        sync_folder(target.parent)
    return digest(data)


@contextmanager
def _in_the_making(part: Path, failed: str) -> Iterator[None]:
    """Leaves nothing of a folder that could not be finished, nor of an earlier one.

    Args:
        part: The unfinished folder.
        failed: What cannot be done, for the error of the system.
    """
    try:
        shutil.rmtree(part, ignore_errors=True)
        yield
    except LabError:
        shutil.rmtree(part, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise EnvironmentUnusable(f"{failed}: {error.strerror}", "make room") from error


def verify_backup(backup: Path) -> Manifest:
    """Holds a backup against its manifest, every byte of it.

    Raises:
        AccessRefused: It is open to others.
        InputError: A file is missing, was added or has changed, or there is no manifest.
    """
    try:
        manifest = Manifest.model_validate_json((backup / MANIFEST).read_bytes())
    except OSError as error:
        raise InputError(f"{backup} is no backup: {error.strerror}", "give a folder made by back_up") from error
    except ValidationError as error:
        raise InputError(f"{backup / MANIFEST} is damaged: {first_fault(error)}", "take another backup") from error
    check_private(backup)
    found = _digests(backup)
    for name in sorted(found.keys() | manifest.files.keys()):
        if found.get(name) != manifest.files.get(name):
            what = "is missing" if name not in found else "was added" if name not in manifest.files else "has changed"
            raise InputError(f"{printable(str(backup / name))} {what} since the backup", "take another backup")
    if read_head(backup).owner != manifest.owner:
        raise InputError(f"{backup} names two owners", "take another backup")
    return manifest


def restore(backup: Path, path: Path, agent: str, *, over_newer: bool = False) -> Restored:
    """Puts a backup in the place of an archive, after it was verified. The archive before is moved aside, not removed.

    Args:
        backup: The backup.
        path: Where the archive lies, or is to lie.
        agent: Id of the agent that asks.
        over_newer: Whether it may replace an archive that holds what the backup does not.

    Raises:
        AccessRefused: The agent is not the owner of both.
        NewerData: The archive holds what the backup does not, or retention has removed what the backup still holds.
        InputError: The backup is damaged; the archive is untouched.
        EnvironmentUnusable: It cannot be written; the archive is untouched.
    """
    manifest = verify_backup(backup)
    if agent != manifest.owner:
        raise AccessRefused(
            f"agent {printable(agent)} may not restore the archive of another agent", "ask as its owner"
        )
    now = open_archive(path, agent) if path.exists() else None
    part = path.with_name(f".{path.name}.part")
    with now.writing() if now else nullcontext():
        lost = _lost(now, backup, agent) if now else ()
        if lost and not over_newer:
            raise NewerData(
                f"the archive is newer than the backup: {'; '.join(lost[:3])}", "back it up first, or say so"
            )
        with _in_the_making(part, f"{path} cannot be restored"):
            _copy(backup, part)
            if _digests(part) != manifest.files:
                raise InputError(f"{backup} changed while it was read", "restore again")
            kept = _move_aside(path) if now else None
            part.rename(path)
            sync_folder(path.parent)
    archive = open_archive(path, agent)
    refresh_index(archive)
    return Restored(archive, lost, kept)


def _lost(now: Archive, backup: Path, agent: str) -> tuple[str, ...]:
    old = open_archive(backup, agent) if read_head(backup).owner == agent else None
    if old is None or old.head != now.head:
        return ("the archive is of another owner or time zone",)
    lost = []
    held = old.days()
    for day in now.days():
        mine = {line.message.mark for line in now.read(day).lines}
        missing = mine - ({line.message.mark for line in old.read(day).lines} if day in held else set())
        if missing:
            lost.append(f"{day}: {len(missing)} messages that the backup lacks")
    back = sorted(removed_days(now) & held.keys())
    lost += [f"{day}: removed by retention since, and would come back" for day in back]
    damaged = {path.name for path in (now.path / DAMAGED).iterdir()} - {p.name for p in (backup / DAMAGED).iterdir()}
    return (*lost, *(f"{name}: damaged bytes that the backup lacks" for name in sorted(damaged)))


def _move_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.replaced-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside


def _copy(source: Path, target: Path) -> None:
    """Copies all that an archive is made of, with private modes and the times of its files."""
    for folder in (target, target / CHRONICLES, target / DAMAGED):
        folder.mkdir(FOLDER_MODE)
    for name in (HEAD_FILE, REMOVED, *_inner(source, CHRONICLES), *_inner(source, DAMAGED)):
        if os.path.lexists(source / name):
            write_private(target / name, read_private(source / name))
            state = (source / name).lstat()
            os.utime(target / name, ns=(state.st_atime_ns, state.st_mtime_ns))


def _inner(source: Path, folder: str) -> list[str]:
    return [f"{folder}/{path.name}" for path in sorted((source / folder).iterdir()) if not path.name.startswith(".")]


def _digests(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    names = ((path.relative_to(folder).as_posix(), path) for path in paths)
    return {name: file_digest(path) for name, path in names if name != MANIFEST}
