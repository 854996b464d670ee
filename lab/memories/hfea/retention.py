"""Retention: what is older than so many days is removed, after what is removed was written down."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.hfea.archive import CHRONICLES, DAMAGED, REMOVED, UNFINISHED, Archive, sync_folder, write_private
from lab.memories.hfea.index import harms, indexed_days, refresh_index
from lab.records import Record, file_digest, first_fault


class Removal(Record):
    """A line of ``removed.jsonl``.

    Attributes:
        file: The file, relative to the archive.
        day: The chronicle's day; of damaged bytes, the day on which they were put there.
        on: The day on which it was removed.
        keep_days: The retention by which it was.
        sha256: Digest of the file.
    """

    file: str = Field(pattern=rf"^({CHRONICLES}/\d{{4}}-\d\d-\d\d\.md|{DAMAGED}/[0-9a-f]+\.raw)$")
    day: date
    on: date
    keep_days: int = Field(ge=1)
    sha256: str


def removals(archive: Archive) -> tuple[Removal, ...]:
    """What retention has removed so far.

    Raises:
        InputError: The log is damaged: without it, days that were removed would come back.
    """
    path = archive.path / REMOVED
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return tuple(Removal.model_validate_json(line) for line in text.splitlines())
    except (ValidationError, UnicodeDecodeError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else "not UTF-8"
        raise InputError(f"{path} is damaged: {fault}", "restore it from a backup") from error


def removed_days(archive: Archive) -> frozenset[date]:
    """The days whose chronicle retention has removed; they never come back from old logs."""
    return frozenset(removal.day for removal in removals(archive) if removal.file.startswith(CHRONICLES))


def apply_retention(archive: Archive, keep_days: int, today: date) -> tuple[Removal, ...]:
    """Removes chronicles and damaged bytes that are older than ``keep_days`` days, and the index with their text.

    The log is written first. A run that is cut off leaves files that stand in the log and are still there; the next
    run removes them. The index is made anew. What a writer that was cut off has left goes whatever its age.

    Args:
        archive: The archive.
        keep_days: Days that are kept, ``today`` not counted; at least 1.
        today: The day of the removal, in the archive's zone.

    Returns:
        What was removed.

    Raises:
        InputError: ``keep_days`` is below 1, or the log is damaged.
        EnvironmentUnusable: Something cannot be written.
    """
    if keep_days < 1:
        raise InputError(f"a retention of {keep_days} days would remove the present", "keep at least 1 day")
    oldest = today - timedelta(days=keep_days)
    with archive.writing():
        logged = removals(archive)
        known = {removal.file: removal for removal in logged}
        gone = []
        for day, path in _dated(archive):
            file = path.relative_to(archive.path).as_posix()
            # Damaged bytes can come back, from a log that is damaged still: only their age counts.
            if day < oldest or (file in known and file.startswith(CHRONICLES)):
                fresh = Removal(file=file, day=day, on=today, keep_days=keep_days, sha256=file_digest(path))
                gone.append(known.get(file, fresh))
        added = [removal for removal in gone if removal.file not in known]
        if added:
            lines = "".join(removal.model_dump_json() + "\n" for removal in (*logged, *added))
            write_private(archive.path / REMOVED, lines.encode())
        # What the index alone knows of days that have lost something outlives it, up to the same age.
        indexed = indexed_days(archive)
        lost = {day: indexed[day] for day in harms(archive, removed_days(archive)) if day in indexed and day >= oldest}
        anew = bool(gone) or any(day < oldest for day in indexed)
        _remove(archive, gone)
        if anew:
            _remove_index(archive)
    if anew:
        refresh_index(archive, harmed=lost)
    return tuple(gone)


def _dated(archive: Archive) -> Iterator[tuple[date, Path]]:
    yield from archive.days().items()
    for path in sorted((archive.path / DAMAGED).glob("*.raw")):
        yield datetime.fromtimestamp(path.stat().st_mtime, ZoneInfo(archive.head.zone)).date(), path


def _remove(archive: Archive, gone: list[Removal]) -> None:
    try:
        for removal in gone:
            (archive.path / removal.file).unlink(missing_ok=True)
        for folder in (CHRONICLES, DAMAGED):
            for part in (archive.path / folder).glob(UNFINISHED):
                part.unlink(missing_ok=True)
            sync_folder(archive.path / folder)
    except OSError as error:
        raise EnvironmentUnusable(
            f"{archive.path}: {error.strerror}", "look at the folder, then remove again"
        ) from error


def _remove_index(archive: Archive) -> None:
    # A row that is deleted can live on in the pages of its database.
    try:
        archive.index.unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentUnusable(f"{archive.index}: {error.strerror}", "look at the folder") from error
