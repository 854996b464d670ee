"""What one arm did with one topic: the rows from which every number of a benchmark run is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from lab.errors import InputError
from lab.records import Record, first_fault

ROWS = "rows"
"""Folder of the rows in a bench's run folder: ``rows/<set>/<arm>.jsonl``, and beside each file the two that follow."""
PASSES, TIMES = ".passes.json", ".timing.json"


class Passes(Record):
    """How an arm was asked on a set.

    Attributes:
        settings: The system's settings once it was open: versions and what it found in the database are known then.
        again: Topics that were asked a second time on the same copy.
        changed: Those of them whose ranking was another the second time.
        fresh: Whether every topic had a fresh copy of its store.
    """

    settings: Mapping[str, Any]
    again: int
    changed: int
    fresh: bool


class HitRow(Record):
    """A hit as it is kept: the fact's name in the set, its score and the terms of the score."""

    fact: str
    score: float = Field(allow_inf_nan=False)
    parts: Mapping[str, float] = {}


class TopicRow(Record):
    """What one arm did with one topic.

    Attributes:
        topic: Id.
        topic_class: Class.
        store: Store that was asked; the unit over which intervals are clustered where there are several.
        answerable: Whether there was something to find.
        rank: Rank of the first relevant hit, from 1; None when there is none among the hits.
        hits: The ranking.
        channels: Channels that ran.
        coverage: Lexical coverage that the gate saw.
        confidence: Best raw cosine before fusion.
        fallback: Why a channel did not run although it should have; empty where nothing went wrong.
        error: Cause, where the system could not answer; the topic then counts in no metric of this arm.
    """

    topic: str
    topic_class: str
    store: str
    answerable: bool
    rank: int | None = Field(ge=1)
    hits: tuple[HitRow, ...]
    channels: tuple[str, ...] = ()
    coverage: float | None = None
    confidence: float | None = None
    fallback: str = ""
    error: str = ""


def rows_file(run: Path, testset: str, arm: str) -> Path:
    """Where the rows of an arm on a set are kept."""
    return run / ROWS / testset / f"{arm}.jsonl"


def is_bench(run: Path) -> bool:
    """Whether a run folder is that of a benchmark."""
    return (run / ROWS).is_dir()


def rows_text(rows: tuple[TopicRow, ...]) -> bytes:
    """Rows in the form of a rows file: one JSON object a line."""
    return "".join(row.model_dump_json() + "\n" for row in rows).encode()


_MEND = "run the benchmark again: lab bench"


def read_rows(path: Path) -> tuple[TopicRow, ...]:
    """Reads a rows file.

    Raises:
        InputError: It is missing or damaged, or a row cannot be one: a topic or a fact is there twice, or the rank is
            not among the hits.
    """
    rows = tuple(_rows(path))
    seen: set[str] = set()
    for number, row in enumerate(rows, 1):
        facts = [hit.fact for hit in row.hits]
        fault = ""
        if row.topic in seen:
            fault = f"topic {row.topic} is there twice"
        elif len(set(facts)) < len(facts):
            fault = f"topic {row.topic} has a fact twice"
        elif row.rank is not None and (row.rank > len(facts) or not row.answerable or row.error):
            fault = f"topic {row.topic} has the rank {row.rank}, which its hits cannot give"
        if fault:
            raise InputError(f"{path}:{number}: {fault}", _MEND)
        seen.add(row.topic)
    return rows


def read_passes(path: Path) -> Passes:
    """Reads how an arm was asked.

    Raises:
        InputError: It is missing or damaged.
    """
    try:
        return Passes.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", _MEND) from error
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {first_fault(error)}", _MEND) from error


def _rows(path: Path) -> Iterator[TopicRow]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", _MEND) from error
    for number, line in enumerate(lines, 1):
        try:
            yield TopicRow.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{path}:{number} is no row of a topic: {first_fault(error)}", _MEND) from error
