"""Logs and data files with bytes that are no UTF-8, with byte-order marks, and cut off in the middle of a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.memories.archive.episodic import EpisodicIndex
from lab.memories.hfea.archive import create_archive
from lab.memories.hfea.index import ArchiveSearch
from lab.memories.hfea.nightly import run_nightly
from lab.retrieval.data.lines import json_objects
from lab.suites.integrity.cases import Case, Finding, Held, judge, looked, size
from lab.suites.integrity.living import fresh
from lab.suites.integrity.stores import AGENT, WORD

FAULT = "bytes that are not clean UTF-8"
_BOM = b"\xef\xbb\xbf"
_SAID = (
    f"{WORD} 1: O café da manhã é às sete.",
    f"{WORD} 2: The naïve façade was repainted.",
    f"{WORD} 3: A reunião é na quinta.",
    f"{WORD} 4: The ferry leaves at seven.",
)
_ALL = 100


def _line(number: int) -> bytes:
    row = {"id": f"m{number}", "session": "s", "role": "user", "author": AGENT, "text": _SAID[number],
           "time": "2026-03-04T12:00:00+00:00"}  # fmt: skip
    return json.dumps(row, ensure_ascii=False).encode()


def _lines() -> list[bytes]:
    return [_line(number) for number in range(len(_SAID))]


def _with(number: int, changed: Callable[[bytes], bytes]) -> bytes:
    lines = _lines()
    lines[number] = changed(lines[number])
    return b"\n".join(lines) + b"\n"


FILES: dict[str, bytes] = {
    "byte-order mark at the start": _BOM + b"\n".join(_lines()) + b"\n",
    "byte-order mark before a later line": _with(2, lambda line: _BOM + line),
    "Windows line ends": b"\r\n".join(_lines()) + b"\r\n",
    "a line in Latin-1": _with(0, lambda line: line.decode().encode("latin-1")),
    "a byte of a letter missing": _with(1, lambda line: line.replace("ï".encode(), "ï".encode()[:1])),
    "the whole file in UTF-16": b"\n".join(_lines()).decode().encode("utf-16"),
    "half a surrogate pair, escaped": _with(3, lambda line: line.replace(b"seven", b"\\ud83d")),
    "a NUL byte in a line": _with(3, lambda line: line.replace(b"seven", b"se\x00ven")),
    "cut off in the last line": (b"\n".join(_lines()))[:-20],
}
"""Files by what is wrong with them."""


def inputs(work: Path) -> Iterator[Case]:
    """Gives each file to every reader of the lab, and to the reader that is usually written."""
    readers: dict[str, tuple[Callable[[Path], Finding], bool]] = {
        "episodic index": (_episodes, False),
        "HFEA chronicles": (_chronicles, False),
        "test sets": (_test_set, False),
        "lenient reader": (_lenient, True),
    }
    for way, data in FILES.items():
        for store, (read, baseline) in readers.items():
            folder = fresh(work, "input", way, store)
            (folder / "logs").mkdir()
            log = folder / "logs" / "s.jsonl"
            log.write_bytes(data)
            finding = looked(lambda read=read, folder=folder: read(folder))  # type: ignore[misc]
            yield Case(
                store=store,
                fault=FAULT,
                way=way,
                baseline=baseline,
                before=Held(rows=len(_SAID), bytes=len(b"\n".join(_lines())) + 1),
                after=Held(rows=None if finding.found is None else len(finding.found), bytes=size(log)),
                verdict=judge({*_SAID}, finding),
                told=finding.told,
            )


def _episodes(folder: Path) -> Finding:
    with EpisodicIndex(folder / "episodes.db") as index:
        report = index.index(folder / "logs")
        found = frozenset(episode.message.text for episode in index.search(WORD, _ALL))
    return Finding(found=found, told="; ".join(f"byte {one.offset}: {one.reason}" for one in report.skipped))


def _chronicles(folder: Path) -> Finding:
    archive = create_archive(folder / "archive", AGENT)
    night = run_nightly(archive, folder / "logs")
    found = frozenset(one.line.message.text for one in ArchiveSearch(archive).search([WORD], _ALL))
    return Finding(found=found, told="; ".join(map(str, night.damages)))


def _test_set(folder: Path) -> Finding:
    return Finding(found=frozenset(str(row["text"]) for _, row in json_objects(folder / "logs" / "s.jsonl")))


def _lenient(folder: Path) -> Finding:
    """Reads what can be read and passes over the rest."""
    found = set()
    for line in (folder / "logs" / "s.jsonl").read_text(encoding="utf-8", errors="ignore").splitlines():
        try:
            found.add(str(json.loads(line)["text"]))
        except ValueError:
            continue
    return Finding(found=frozenset(found))
