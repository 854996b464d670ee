"""What of a trial is judged: the text of every write call, and every entry that a store has and had not before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lab.agents.base import Agent
from lab.contamination.observe.judge import AFTER, BEFORE, COURSE, REQUESTS, Course, read_evidence, requests_digest
from lab.contamination.observe.readable import TooMuchToRead
from lab.contamination.stores import Manifest, texts_of
from lab.errors import InputError
from lab.gateway.exchange import Exchange, read_exchanges, response_message
from lab.records import Attempt, Record, Store, TrialResult

_ENTRIES = re.compile(r"\n(?:[ \t]*§)?[ \t]*\n|\n§\n")
"""Between the entries of a text store, and between the paragraphs of a skill."""


class Passage(Record):
    """One text to be judged.

    Attributes:
        what: ``attempt`` or ``entry``.
        origin: Who made the attempt; empty for an entry.
        store: The store that it was meant for, or stands in.
        pointer: Where it stands in the evidence; hostile.
        text: The whole text; None where it could not be read whole. Hostile.
    """

    what: str
    origin: str = ""
    store: Store
    pointer: str
    text: str | None


def passages(folder: Path, result: TrialResult, agent: Agent) -> list[Passage]:
    """All texts of a trial that are judged: its write calls, then its entries.

    Args:
        folder: The trial's folder with its evidence.
        result: Its result, whose attempts are read again in full.
        agent: Adapter that can read the calls.

    Raises:
        InputError: The evidence is missing or damaged.
    """
    course = read_evidence(Course, folder / COURSE)
    if requests_digest(folder) != course.requests_sha256:
        raise InputError(f"{folder / REQUESTS} was changed after the trial", "run the trial again: lab resume")
    exchanges = {e.seq: e for e in read_exchanges(folder / REQUESTS)}
    before, after = (read_evidence(Manifest, folder / name) for name in (BEFORE, AFTER))
    return [*_attempts(exchanges, result.attempts, agent), *_entries(before, after, folder, agent)]


def _attempts(exchanges: dict[int, Exchange], attempts: tuple[Attempt, ...], agent: Agent) -> Iterator[Passage]:
    """The attempts of a result keep the beginning of their arguments only: the text comes from the recording."""
    waiting: dict[int, list[str]] = {}
    for attempt in attempts:
        if attempt.exchange not in waiting:
            waiting[attempt.exchange] = _written(exchanges.get(attempt.exchange), agent)
        texts = waiting[attempt.exchange]
        if not texts:
            raise InputError(f"exchange {attempt.exchange} holds fewer writes than its result", "lab rescore RUN")
        pointer = f"line {attempt.exchange} /response, write {attempt.tool} {attempt.action}".strip()
        yield Passage(
            what="attempt", origin=attempt.origin, store=attempt.store, pointer=pointer[:200], text=texts.pop(0)
        )


def _written(exchange: Exchange | None, agent: Agent) -> list[str]:
    """Texts of the writes that an answer calls, in the order in which the result has them."""
    calls = (response_message(exchange).get("tool_calls") or []) if exchange else []
    functions = [call.get("function") or {} for call in calls]
    return [
        write.text
        for function in functions
        for write in agent.writes(str(function.get("name", "")), str(function.get("arguments", "")))
    ]


def _entries(before: Manifest, after: Manifest, folder: Path, agent: Agent) -> Iterator[Passage]:
    for path in before.changed(after):
        state = after.files.get(path)
        if state is None or state.kind == "other" or state.store is Store.OTHER or path.endswith(("-wal", "-shm")):
            continue
        try:
            if not state.kept:
                raise TooMuchToRead
            new = _blocks(after, path, folder, agent)
            was = before.files.get(path)
            old = {text for _, text in _blocks(before, path, folder, agent)} if was and was.kept else set()
        except TooMuchToRead:
            yield Passage(what="entry", store=state.store, pointer=path, text=None)
            continue
        for place, text in new:
            if text not in old:
                yield Passage(what="entry", store=state.store, pointer=f"{path} {place}", text=text)


def _blocks(side: Manifest, path: str, folder: Path, agent: Agent) -> list[tuple[str, str]]:
    """Places and texts of a file's entries: rows that a database remembers, strings of JSON, paragraphs of text."""
    found = texts_of(side, path, folder)
    if len(found) == 1 and not found[0][0]:
        blocks = [block.strip() for block in _ENTRIES.split(found[0][1])]
        return [(f"entry {number}", block) for number, block in enumerate(blocks, 1) if block]
    remembered = tuple(f"table {table} row " for table in agent.fact_tables)
    rows = [(place, text) for place, text in found if place.startswith(remembered)]
    return rows or [(place, text) for place, text in found if place and " " in text]
