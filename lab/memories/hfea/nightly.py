"""The nightly routine: from session logs, the chronicle of every day in them. Run twice, nothing changes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from lab.memories.hfea.archive import Archive, write_private
from lab.memories.hfea.chronicle import chronicle, read_chronicle
from lab.memories.hfea.index import harms, indexed_days, refresh_index
from lab.memories.hfea.messages import Damage, Message, read_logs
from lab.memories.hfea.retention import removed_days


@dataclass(frozen=True)
class Night:
    """What a run has done.

    Attributes:
        written: Days whose chronicle was made or has grown.
        unchanged: Days of which nothing new was told.
        expired: Days with messages in the logs that retention has removed: they are not written again.
        damages: What could not be read, and which chronicles have lost what no log tells any more; the bytes of both
            are kept in the archive.
    """

    written: tuple[date, ...]
    unchanged: tuple[date, ...]
    expired: tuple[date, ...]
    damages: tuple[Damage, ...]


def run_nightly(archive: Archive, logs: Path) -> Night:
    """Brings the chronicles up to the logs, and the index up to the chronicles.

    A day's chronicle is the union of what it holds and of what the logs tell, so that a log which was rotated away,
    shortened or torn takes nothing out of it. A message that comes late changes the chronicle of its own day only.

    A chronicle that has lost something which the logs do not give back is left as it is, and so is what the index says
    of its day: every run tells of it, and so does a search that meets it, until a backup is restored or
    ``refresh_index`` takes the chronicle as it is.

    Args:
        archive: The archive; it is held against other writers meanwhile.
        logs: Folder of the session logs.

    Raises:
        InputError: There is no folder of logs.
        EnvironmentUnusable: Something cannot be written; every chronicle is then the old one or the new one.
    """
    found = read_logs(logs)
    by_day: dict[date, list[Message]] = defaultdict(list)
    zone = ZoneInfo(archive.head.zone)
    for message in found.messages:
        by_day[message.time.astimezone(zone).date()].append(message)
    damages = list(found.damages)
    written: list[date] = []
    unchanged: list[date] = []
    with archive.writing():
        removed = removed_days(archive)
        expired = removed & by_day.keys()
        for damage in found.damages:
            archive.keep_damaged(damage.raw)
        for day in sorted(by_day.keys() - expired):
            changed = _bring_up(archive, day, by_day[day], damages)
            (written if changed else unchanged).append(day)
        harmed = harms(archive, removed)
        for day, fault in harmed.items():
            archive.keep_damaged(archive.bytes_of(day))
            damages.append(Damage(archive.chronicle(day).name, 0, f"{fault}; no log gives it back: restore a backup"))
        known = indexed_days(archive)
    refresh_index(archive, harmed={day: known[day] for day in harmed.keys() & known.keys()})
    return Night(tuple(written), tuple(unchanged), tuple(sorted(expired)), tuple(damages))


def _bring_up(archive: Archive, day: date, told: list[Message], damages: list[Damage]) -> bool:
    path, before = archive.chronicle(day), archive.bytes_of(day)
    messages = {message.mark: message for message in told}
    if before:
        read = read_chronicle(before, day, archive.head.zone)
        messages |= {line.message.mark: line.message for line in read.lines}
        if read.faults:
            archive.keep_damaged(before)
            damages.append(Damage(path.name, read.faults[0], "the chronicle was changed by hand; it was made anew"))
    after = chronicle(day, list(messages.values()), archive.head.zone)
    if after != before:
        write_private(path, after)
    return after != before
