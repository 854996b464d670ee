"""What became of a store in one case: what it held before and after, and whether a loss was told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Set
from enum import StrEnum
from pathlib import Path

from lab.errors import LabError
from lab.records import Record
from lab.retrieval.factstore.schema import StoreUnreadable
from lab.retrieval.factstore.store import FactRefused
from lab.text import printable

TOLD = (LabError, StoreUnreadable, FactRefused, sqlite3.Error, UnicodeError, OSError)
"""By which a store tells that something is wrong. Anything else is a fault of the lab's and ends the suite."""


class Verdict(StrEnum):
    """What a case ended in."""

    NOTHING_LOST = "nothing lost"
    LOSS_TOLD = "loss told"
    SILENT = "lost silently"


class Held(Record):
    """How much a store holds.

    Attributes:
        rows: What must not be lost, in pieces: rows, messages, vectors, properties; None where nothing can be read.
        bytes: Bytes of its files.
    """

    rows: int | None
    bytes: int


class Case(Record):
    """One fault done to one store in one way.

    Attributes:
        store: Whose.
        fault: What was done.
        way: By which means it was done, or read afterwards.
        baseline: Whether the way is one that the lab does not go: a plain copy, a lenient reader.
        before: What it held.
        after: What is left.
        verdict: What it ended in.
        told: What was told, one line; empty where nothing was.
    """

    store: str
    fault: str
    way: str
    baseline: bool = False
    before: Held
    after: Held
    verdict: Verdict
    told: str = ""

    @property
    def id(self) -> str:
        """Unique over all cases."""
        return f"{self.fault} · {self.way} · {self.store}"

    @property
    def detail(self) -> str:
        """One line for a reader."""
        after = "unreadable" if self.after.rows is None else f"{self.after.rows} rows"
        told = f": {self.told}" if self.told else ""
        return (
            f"{self.before.rows} rows, {self.before.bytes} bytes before; {after}, {self.after.bytes} bytes after; "
            f"{self.verdict}{told}"
        )


class Finding(Record):
    """What could be read.

    Attributes:
        found: What was found; None where nothing could be read.
        told: What was told of a fault; empty where nothing was.
    """

    found: frozenset[str] | None
    told: str = ""


def looked(read: Callable[[], Set[str] | Finding]) -> Finding:
    """Reads, and takes a refusal for what it is."""
    try:
        seen = read()
    except TOLD as error:
        # A refusal of the lab's is one line with a mend; any other is told by its type, as a traceback would.
        name = "" if isinstance(error, LabError) else f"{type(error).__name__}: "
        return Finding(found=None, told=name + printable(str(error)))
    return seen if isinstance(seen, Finding) else Finding(found=frozenset(seen))


def told_by(act: Callable[[], object]) -> str:
    """What is told by a refusal, or by an act that returns words."""

    def acted() -> Finding:
        said = act()
        return Finding(found=frozenset(), told=said if isinstance(said, str) else "")

    return looked(acted).told


def judge(expected: Set[str], finding: Finding, allowed: Set[str] = frozenset()) -> Verdict:
    """Judges what is left.

    Args:
        expected: What must be there.
        finding: What was read.
        allowed: What may be there beside it: a write that had not been acknowledged. Anything else was never written,
            so that a row which is there in its place, or changed, is a loss.
    """
    if finding.found is not None and expected <= finding.found <= expected | allowed:
        return Verdict.NOTHING_LOST
    return Verdict.LOSS_TOLD if finding.told else Verdict.SILENT


def size(*paths: Path) -> int:
    """Bytes of files and of all files in folders; what is not there has none."""
    files = (file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]))
    return sum(file.stat().st_size for file in files if file.is_file())
