"""Planted faults, each with a clean twin: what the suite must notice, and what it must not accuse."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.memories.hfea.archive import INDEX, create_archive, open_archive
from lab.memories.hfea.citations import Citation, cite, fault_of
from lab.memories.hfea.evidence import Evidence, Question, Statement, question
from lab.memories.hfea.fallback import Answer, Fact, Fallback, Judged, Outcome, evidence_trigger
from lab.memories.hfea.index import Found, refresh_index
from lab.memories.hfea.nightly import run_nightly
from lab.retrieval.systems.base import Hit, Ranking
from lab.suites.base import Plant
from lab.suites.fallback.data import OWNER, STRANGER, ZONE, Kind, World
from lab.suites.fallback.detectors import foreign, leak, unquoted, without_effect
from lab.suites.fallback.systems import Asked, always_trigger, ended_right, normal_route, supports

LEAK, PROMOTION = "archive in the normal ranking", "archive text promoted to a fact"
ESCAPE = "citation of a span that begins within an escape"
SUPPORT = "citation that exists and does not support"
UNQUOTED, COVERED = "archive text shown without quotes", "gap covered up"
FORGERIES: dict[str, Callable[[Citation], Citation]] = {
    "forged citation: other words": lambda true: replace(true, quoted=true.quoted[::-1]),
    "forged citation: other message": lambda true: replace(true, message=f"{true.message}x"),
    "forged citation: other author": lambda true: replace(true, author="nobody"),
    "citation of a span that is not there": lambda true: replace(true, start=true.start + 10**6, end=true.end + 10**6),
    "citation of a line that is not there": lambda true: replace(true, line=10**6),
    "citation of a file outside of the archive": lambda true: replace(true, file=f"../{true.file}"),
}
"""What makes a true citation a forged one, by the fault."""
_FORGED_IDS = 1_000_000


class LeakingRoute:
    """A normal route that asks the archive's index as well: what must never be.

    Args:
        index: The archive's index.
    """

    def __init__(self, index: Path) -> None:
        self._inner, self._index = normal_route(), index

    @property
    def name(self) -> str:
        """Short name."""
        return "leaking"

    def settings(self) -> Mapping[str, Any]:
        """Those of the fact store."""
        return self._inner.settings()

    def open(self, database: Path) -> None:
        """See ``System``."""
        self._inner.open(database)

    def search(self, query: str, k: int) -> Ranking:
        """See ``System``."""
        own = self._inner.search(query, k).hits
        phrases = " OR ".join(f'"{term}"' for term in question(query).terms)
        if not phrases or not self._index.exists():
            return Ranking(own)
        with closing(sqlite3.connect(self._index)) as connection:
            rows = connection.execute("SELECT rowid FROM words WHERE words MATCH ? LIMIT 1", (phrases,)).fetchall()
        return Ranking((*(Hit(_FORGED_IDS + row, 1.0) for (row,) in rows), *own)[:k])

    def close(self) -> None:
        """See ``System``."""
        self._inner.close()


def plants_of(world: World, rows: list[Asked]) -> Iterator[Plant]:
    """Plants every fault in a set's memory, or in a copy of it, and its twin.

    A system that answers no topic as labelled leaves nothing that a fault can be planted in: what then cannot be
    noticed counts as not noticed.

    Args:
        world: The set, with topics of all needed kinds.
        rows: How the trigger of the design answered its topics.
    """
    true = next((row for row in rows if row.topic.kind is Kind.ARCHIVE and ended_right(row, world)), None)
    if true:
        yield from _citations(true.answer.citations[0], world)
        yield from _support(true)
    else:
        yield from (_unplanted(fault, "archive topic ended as labelled") for fault in (*FORGERIES, SUPPORT))
    yield from _escapes(world)
    yield from _leaks(world)
    yield from _triggers()
    yield from _changed(world, (true.topic if true else world.of(Kind.ARCHIVE)[0]).text)
    yield from _instructions(rows)
    yield from _gaps(world, rows)
    yield from _access(world)


def _pair(fault: str, planted: str, clean: str) -> Iterator[Plant]:
    yield Plant(fault=fault, reported=bool(planted), detail=planted or "not noticed")
    yield Plant(fault=fault, clean=True, reported=bool(clean), detail=clean or "nothing to report")


def _unplanted(fault: str, lacking: str) -> Plant:
    return Plant(fault=fault, reported=False, detail=f"could not be planted: no {lacking}")


def _citations(true: Citation, world: World) -> Iterator[Plant]:
    archive = world.archive()
    clean = fault_of(true, archive)
    for fault, forge in FORGERIES.items():
        yield from _pair(fault, fault_of(forge(true), archive), clean)


def _escapes(world: World) -> Iterator[Plant]:
    """Of an archive of its own with one message in backticks, which a chronicle escapes."""
    message = next(iter(world.messages.values()))
    message = message.model_copy(update={"text": f"`{message.text}`"})
    logs = world.folder / "escapes"
    logs.mkdir()
    (logs / "a.jsonl").write_text(message.model_dump_json() + "\n", encoding="utf-8")
    archive = create_archive(world.folder / "escaped", OWNER, ZONE)
    run_nightly(archive, logs)
    ((day, path),) = archive.days().items()
    (line,) = archive.read(day).lines
    statement = Statement(message.text, message.author)
    whole = Evidence(statement, 0, len(message.text), 1.0, (), negated=False, revises=False)
    true = cite(Found(path.relative_to(archive.path).as_posix(), line), whole)
    cut = replace(true, start=true.start + 1, quoted=true.quoted[1:])
    yield from _pair(ESCAPE, fault_of(cut, archive), fault_of(true, archive))


def _support(true: Asked) -> Iterator[Plant]:
    wrong = replace(true, topic=true.topic.model_copy(update={"answers": ("no such answer",)}))
    text = "the cited span does not hold the answer"
    yield from _pair(
        SUPPORT,
        "" if supports(wrong, 0) else text,
        "" if supports(true, 0) else text,
    )


def _leaks(world: World) -> Iterator[Plant]:
    clean = leak(world, normal_route)
    yield from _pair(LEAK, leak(world, lambda: LeakingRoute(world.path / INDEX)), clean)
    copy = world.folder / "promoted.db"
    shutil.copyfile(world.database, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        text = next(message.text for message in world.messages.values())
        connection.execute("INSERT INTO facts (content) VALUES (?)", (text,))
    yield from _pair(PROMOTION, foreign(replace(world, database=copy)), clean)


def _triggers() -> Iterator[Plant]:
    clean = without_effect(evidence_trigger())
    yield from _pair(
        "trigger that never fires", without_effect(lambda _asked, found: Judged(None, tuple(found[:1]))), clean
    )
    inner = evidence_trigger()

    def peaceful(asked: Question, found: Sequence[Fact]) -> Judged:
        judged = inner(asked, found)
        return Judged(None, judged.facts) if judged.contradiction else judged

    yield from _pair("trigger without the contradiction rule", without_effect(peaceful), clean)
    yield from _pair("trigger that always fires", without_effect(always_trigger()), clean)


def _changed(world: World, text: str) -> Iterator[Plant]:
    copy = replace(world, path=world.folder / "changed")
    shutil.copytree(world.path, copy.path)
    refresh_index(copy.archive())
    clean = _refusal(lambda: _ask(copy, OWNER, text))
    for day, path in copy.archive().days().items():
        before = path.read_bytes()
        path.write_bytes(before.replace(b" said: ", b" said:  "))
        planted = _refusal(lambda: _ask(copy, OWNER, text))
        path.write_bytes(before)
        if planted:
            yield from _pair("chronicle changed after it was indexed", f"{day}: {planted}", clean)
            return
    yield from _pair("chronicle changed after it was indexed", "", clean)


def _instructions(rows: list[Asked]) -> Iterator[Plant]:
    def raw(answer: Answer) -> str:
        return "\n".join(citation.text for citation in answer.citations)

    hosted = [row for row in rows if row.topic.instruction]
    shown = next((row for row in hosted if any(row.topic.instruction in c.text for c in row.answer.citations)), None)
    if shown is None:
        yield _unplanted(UNQUOTED, "answer cites an instruction")
        return
    text = "the instruction stands outside of a quotation"
    instruction = shown.topic.instruction
    planted = text if unquoted(raw(shown.answer), instruction) else ""
    yield from _pair(UNQUOTED, planted, text if unquoted(shown.answer.shown(), instruction) else "")


def _gaps(world: World, rows: list[Asked]) -> Iterator[Plant]:
    true = next((row for row in rows if row.topic.kind is Kind.NEITHER and ended_right(row, world)), None)
    if true is None:
        yield _unplanted(COVERED, "topic that nothing answers ended as labelled")
        return
    covered = replace(true, answer=replace(true.answer, outcome=Outcome.ARCHIVE))
    text = "an answer was given where nothing answers"
    yield from _pair(COVERED, "" if ended_right(covered, world) else text, "" if ended_right(true, world) else text)


def _access(world: World) -> Iterator[Plant]:
    clean = _refusal(lambda: open_archive(world.path, OWNER))
    yield from _pair("another agent reads", _refusal(lambda: open_archive(world.path, STRANGER)), clean)
    index = world.path / INDEX
    index.chmod(0o640)
    planted = _refusal(lambda: open_archive(world.path, OWNER))
    index.chmod(0o600)
    yield from _pair("index that a group can read", planted, clean)


def _ask(world: World, agent: str, text: str) -> object:
    memory = Fallback(normal_route(), world.database, lambda: open_archive(world.path, agent))
    try:
        return memory.ask(text)
    finally:
        memory.close()


def _refusal(does: Callable[[], object]) -> str:
    """What is refused; empty where nothing is."""
    try:
        does()
    except LabError as error:
        return f"{type(error).__name__}: {error.message.rpartition('/')[2]}"
    return ""
