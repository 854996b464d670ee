"""What freezing costs: a database of 1.3 GB that is written to meanwhile, against ``cp`` of it in the same run.

Each round copies the file with ``cp`` and freezes it, in alternating order, both until the bytes are on disk, with the
same writer at work. The bound is on the copy that a freeze makes (SQLite's backup); the checks and digests that make it
a snapshot are told beside it. Exit code 1 when the ratio misses its bound. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.records import file_digest
from lab.snapshots.freeze import copy_database, freeze
from lab.snapshots.identity import identify
from lab.snapshots.sqlite import open_frozen
from lab.snapshots.store import open_snapshot

BOUND = 1.5
SCHEMA = """
CREATE TABLE facts (fact_id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL UNIQUE, tags TEXT DEFAULT '',
    trust_score REAL DEFAULT 0.5, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, hrr_vector BLOB);
CREATE INDEX idx_facts_trust ON facts(trust_score DESC);
CREATE VIRTUAL TABLE facts_fts USING fts5(content, tags, content=facts, content_rowid=fact_id);
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags); END;
"""
WRITER = """
import os, sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
count, longest = 0, 0.0
while not os.path.exists(sys.argv[2]):
    started = time.monotonic()
    connection.execute("INSERT INTO facts (content) VALUES (?)", (f"written meanwhile {os.getpid()} {count}",))
    count, longest = count + 1, max(longest, time.monotonic() - started)
    time.sleep(0.01)
print(count, longest)
"""


@dataclass(frozen=True)
class Measured:
    """What was measured, in seconds; medians over the rounds.

    Attributes:
        bytes: Size of the database.
        facts: Rows of its main table.
        cp: ``cp`` and fsync.
        copy: The copy that a freeze makes: backup and fsync.
        whole: All of ``freeze``: copy, check, both digests, manifest.
        file_digest: Digest of the file alone.
        content_digest: Digest of the content alone.
        open: Opening the snapshot for a benchmark.
        copy_ratio: Median of copy over cp, round by round.
        whole_ratio: The same of the whole.
        bound: Bound of the first.
        writes: Transactions that the writer committed during the rounds.
        longest_write: The longest of them.
    """

    bytes: int
    facts: int
    cp: float
    copy: float
    whole: float
    file_digest: float
    content_digest: float
    open: float
    copy_ratio: float
    whole_ratio: float
    bound: float
    writes: int
    longest_write: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints a table or JSON, returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, default=1.3e9, help="size of the database")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count; one more fills the caches")
    parser.add_argument("--folder", type=Path, help="where to work, on the disk that is to be measured")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    scratch = Path(tempfile.mkdtemp(prefix="lab-benchmark-", dir=options.folder))
    try:
        measured = measure(scratch, int(options.bytes), options.rounds)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        print(json.dumps(asdict(measured), indent=1))
    else:
        show(measured)
    return 0 if measured.copy_ratio <= BOUND else 1


def show(m: Measured) -> None:
    """Prints the table."""
    verdict = "ok" if m.copy_ratio <= BOUND else "MISSED"
    print(
        f"{m.bytes / 1e9:.2f} GB, {m.facts:,} facts; {m.writes} writes meanwhile, the longest {m.longest_write:.3f} s"
    )
    print(f"copy of a freeze / cp   {m.copy_ratio:5.2f}  bound {BOUND:.2f}  {verdict}  {m.copy:.2f} s to {m.cp:.2f} s")
    print(f"whole freeze / cp       {m.whole_ratio:5.2f}  no bound           {m.whole:.2f} s to {m.cp:.2f} s")
    print(
        f"alone: digest of the file {m.file_digest:.2f} s, of the content {m.content_digest:.2f} s; open {m.open:.2f} s"
    )


def measure(scratch: Path, size: int, rounds: int) -> Measured:
    """Makes the database and takes all times."""
    source = scratch / "memory_store.db"
    facts = make_database(source, size)
    cps: list[float] = []
    copies: list[float] = []
    wholes: list[float] = []
    with writing(source, scratch / "stop") as said:
        for number in range(rounds + 1):
            steps = [
                (cps, lambda target: copied_by_cp(source, target)),
                (copies, lambda target: copied_by_backup(source, target)),
                (wholes, lambda target: frozen(source, target)),
            ]
            # The order changes, so that a slow drift of the machine favours none; the first round fills the caches.
            for place, (taken, step) in enumerate(steps if number % 2 else reversed(steps)):
                target = scratch / f"round-{number}-{place}"
                target.mkdir()
                os.sync()
                started = time.monotonic()
                step(target)
                seconds = time.monotonic() - started
                if number:
                    taken.append(seconds)
                shutil.rmtree(target)
    written, longest = said
    frozen(source, scratch)
    database = scratch / "snapshot" / "memory.db"
    return Measured(
        bytes=source.stat().st_size,
        facts=facts,
        cp=statistics.median(cps),
        copy=statistics.median(copies),
        whole=statistics.median(wholes),
        file_digest=timed(lambda: file_digest(database)),
        content_digest=timed(lambda: digested(database)),
        open=timed(lambda: open_snapshot(database.parent)),
        copy_ratio=statistics.median(b / a for a, b in zip(cps, copies, strict=True)),
        whole_ratio=statistics.median(b / a for a, b in zip(cps, wholes, strict=True)),
        bound=BOUND,
        writes=int(written),
        longest_write=float(longest),
    )


def make_database(path: Path, size: int) -> int:
    """Facts of upstream's shape, each with a vector of 8 kB, until the file has its size; returns how many."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(20_000)]
    count = 0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(SCHEMA)
        while path.stat().st_size < size:
            rows = (
                (f"fact {number} {' '.join(rng.choices(words, k=12))}", "a,b", rng.random(), rng.randbytes(8192))
                for number in range(count, count + 2000)
            )
            connection.executemany(
                "INSERT INTO facts (content, tags, trust_score, hrr_vector) VALUES (?, ?, ?, ?)", rows
            )
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            count += 2000
    return count


@contextmanager
def writing(source: Path, stop: Path) -> Iterator[list[str]]:
    """A process that commits up to a hundred times a second; what it says at its end is in the list afterwards."""
    command = [sys.executable, "-c", WRITER, str(source), str(stop)]
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield said
        finally:
            stop.touch()
            said += process.communicate()[0].split()


def shown(done: int, total: int) -> None:
    """Takes what a progress bar would, so that a copy is made in steps as it is for a user."""
    del done, total


def copied_by_cp(source: Path, target: Path) -> None:
    """``cp`` as one would, then the same fsync that a freeze does."""
    copy = target / "copy.db"
    subprocess.run(["cp", source, copy], check=True)
    descriptor = os.open(copy, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def copied_by_backup(source: Path, target: Path) -> None:
    """The copy that a freeze makes, with the progress that it shows."""
    copy_database(source, target / "copy.db", progress=shown)


def frozen(source: Path, target: Path) -> None:
    """A whole freeze."""
    freeze(source, target, name="snapshot", licence="synthetic", progress=shown)


def digested(database: Path) -> None:
    """The digest of the content alone."""
    with closing(open_frozen(database)) as connection:
        identify(connection)


def timed(step: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    started = time.monotonic()
    step()
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
