"""The archive's folder: one owner, checked modes, a lock for its writers, and a count of how often it was opened.

ARCHIVE/
  archive.json              owner, time zone
  chronicles/2026-03-04.md  one a day
  damaged/<digest>.raw      bytes that could not be read as a message, or a chronicle that was changed by hand
  removed.jsonl             what retention has removed
  index.db                  the full-text index; it can be made again from the chronicles at any time
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.hfea.chronicle import Read, read_chronicle
from lab.records import Record, digest, first_fault
from lab.text import printable

HEAD_FILE, INDEX, REMOVED, LOCK = "archive.json", "index.db", "removed.jsonl", ".lock"
CHRONICLES, DAMAGED = "chronicles", "damaged"
UNFINISHED = ".*.part"
"""Names of files that are being written; while the archive is held against other writers, of writers cut off."""
FOLDER_MODE, FILE_MODE = 0o700, 0o600
FORMAT = "lab-hfea/1"

_opened: Counter[Path] = Counter()
_counting = threading.Lock()


class AccessRefused(InputError):
    """Somebody other than the owner asked, or the folder is open to others."""


class ArchiveHead(Record):
    """What an archive says of itself.

    Attributes:
        format: ``lab-hfea/1``.
        owner: Id of the agent that may read and write it.
        zone: IANA name of the time zone whose days its chronicles are of.
    """

    format: str = Field(default=FORMAT, pattern=f"^{FORMAT}$")
    owner: str = Field(min_length=1)
    zone: str


class Archive:
    """An open archive; made by ``create_archive`` and ``open_archive`` only.

    Args:
        path: Its folder.
        head: What it says of itself.
    """

    def __init__(self, path: Path, head: ArchiveHead) -> None:
        self.path, self.head = path, head
        with _counting:
            _opened[path.resolve()] += 1

    @property
    def index(self) -> Path:
        """The index's file."""
        return self.path / INDEX

    def chronicle(self, day: date) -> Path:
        """The file of a day, whether it is there or not."""
        return self.path / CHRONICLES / f"{day.isoformat()}.md"

    def days(self) -> dict[date, Path]:
        """The days of which there is a chronicle, ascending; a file of another name is none."""
        found = {}
        for path in sorted((self.path / CHRONICLES).glob("????-??-??.md")):
            with suppress(ValueError):
                found[date.fromisoformat(path.stem)] = path
        return found

    def bytes_of(self, day: date) -> bytes:
        """A day's chronicle; empty where there is none.

        Raises:
            AccessRefused: It is a link.
            EnvironmentUnusable: It cannot be read.
        """
        path = self.chronicle(day)
        try:
            return read_private(path)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise EnvironmentUnusable(f"{path} cannot be read: {error.strerror}", "look at the disk") from error

    def read(self, day: date) -> Read:
        """Reads a day's chronicle; see ``bytes_of``."""
        return read_chronicle(self.bytes_of(day), day, self.head.zone)

    def keep_damaged(self, raw: bytes) -> None:
        """Keeps bytes that could not be read, under their digest."""
        path = self.path / DAMAGED / f"{digest(raw)}.raw"
        if raw and not path.exists():
            write_private(path, raw)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the archive against other writers, of this process and of others; waits for them.

        Raises:
            EnvironmentUnusable: Nothing can be written there.
        """
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
        except OSError as error:
            raise EnvironmentUnusable(f"{self.path} cannot be locked: {error.strerror}", "look at the disk") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def times_opened(path: Path) -> int:
    """How often this process has opened the archive of a folder."""
    return _opened[path.resolve()]


def create_archive(path: Path, owner: str, zone: str = "UTC") -> Archive:
    """Makes an empty archive.

    Args:
        path: Its folder; nothing may be there.
        owner: Id of the agent whose it is.
        zone: IANA name of the time zone whose days the chronicles are of.

    Raises:
        InputError: Something is there, or there is no such zone.
        EnvironmentUnusable: It cannot be written.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"{printable(zone)} is no time zone", "give an IANA name such as America/Sao_Paulo") from error
    head = ArchiveHead(owner=owner, zone=zone)
    try:
        path.mkdir(FOLDER_MODE)
        for inner in (CHRONICLES, DAMAGED):
            (path / inner).mkdir(FOLDER_MODE)
    except FileExistsError as error:
        raise InputError(f"{path} is there already", "open it, or name another folder") from error
    except OSError as error:
        raise EnvironmentUnusable(f"{path} cannot be made: {error.strerror}", "choose another folder") from error
    write_private(path / HEAD_FILE, head.model_dump_json(indent=1).encode() + b"\n")
    return Archive(path, head)


def open_archive(path: Path, agent: str) -> Archive:
    """Opens an archive for an agent.

    Args:
        path: Its folder.
        agent: Id of the agent that asks.

    Raises:
        AccessRefused: The agent is not its owner, or others than this user could read or change it.
        InputError: It is no archive.
    """
    head = read_head(path)
    check_private(path)
    if agent != head.owner:
        raise AccessRefused(
            f"agent {printable(agent)} may not read the archive of another agent", "ask as the archive's owner"
        )
    return Archive(path, head)


def read_head(path: Path) -> ArchiveHead:
    """What a folder says of itself.

    Raises:
        InputError: It is no archive.
    """
    try:
        return ArchiveHead.model_validate_json((path / HEAD_FILE).read_bytes())
    except OSError as error:
        raise InputError(f"no archive at {path}: {error.strerror}", "make one with create_archive") from error
    except ValidationError as error:
        raise InputError(f"{path / HEAD_FILE} is damaged: {first_fault(error)}", "restore it from a backup") from error


def check_private(path: Path) -> None:
    """Refuses a folder that others than this user can read or change.

    Raises:
        AccessRefused: The folder or something in it has another owner, a wider mode, or is a link.
    """
    for place in (path, *sorted(path.rglob("*"))):
        try:
            state = place.lstat()
        except FileNotFoundError:  # a writer's temporary file, gone since the folder was listed
            continue
        wanted = FOLDER_MODE if stat.S_ISDIR(state.st_mode) else FILE_MODE
        if not (stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode)):
            raise AccessRefused(f"{printable(str(place))} is neither a folder nor a file", "take it out of the archive")
        if state.st_uid != os.geteuid():
            raise AccessRefused(f"{printable(str(place))} belongs to another user", "give it to the agent's user")
        if stat.S_IMODE(state.st_mode) != wanted:
            mode = f"{stat.S_IMODE(state.st_mode):04o}"
            raise AccessRefused(f"{printable(str(place))} has mode {mode}", f"chmod {wanted:04o} it")


def read_private(path: Path) -> bytes:
    """Reads a file of an archive, which may have changed since the archive was opened.

    Raises:
        AccessRefused: It is a link now.
        OSError: It cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise AccessRefused(f"{printable(str(path))} is a link", "take it out of the archive") from error
        raise
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def write_private(path: Path, data: bytes) -> None:
    """Writes a file in one step that only this user can read, at no moment wider.

    Raises:
        EnvironmentUnusable: It cannot be written; the old content is still there.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise EnvironmentUnusable(
            f"{path} cannot be written: {error.strerror}", "make room, then give the same command again"
        ) from error


def sync_folder(path: Path) -> None:
    """Makes the names in a folder survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
