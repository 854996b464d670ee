"""Somebody else's run in TREC's form, read and held to the same rules and invariants as a run of the lab."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lab.errors import InputError
from lab.retrieval.data.lines import BrokenData, numbered_lines
from lab.retrieval.rows import HitRow, TopicRow
from lab.retrieval.systems.base import SCORE_DIGITS
from lab.retrieval.testset import TestSet, Topic

COLUMNS, FORM = 6, "write: topic Q0 fact rank score tag"


@dataclass(frozen=True)
class ForeignRun:
    """A run as it was read.

    Attributes:
        rows: A row for every topic of the set.
        contradicted: Topics whose column of ranks has some pair of facts in another order than their scores: those are
            then perhaps distances, and the lower the better.
    """

    rows: tuple[TopicRow, ...]
    contradicted: tuple[str, ...]


@dataclass(frozen=True)
class _Line:
    fact: str
    rank: float
    score: float


def read_run(path: Path, testset: TestSet, k: int) -> ForeignRun:
    """Reads a run: ``topic Q0 fact rank score tag`` a line.

    The order is that of the scores, rounded to 6 decimals and then by fact id; the column of ranks is not believed. A
    topic without a line got nothing, which is a miss and no error.

    Args:
        path: The file.
        testset: What it is a run of.
        k: Depth; what is ranked deeper is cut off.

    Raises:
        InputError: A line has other columns, names a topic or fact that the set does not have, gives a rank or score
            that is no finite number, or a fact twice for a topic.
    """
    topics = {topic.id: topic for topic in testset.topics}
    stores = {fact.id: store for store, facts in testset.stores.items() for fact in facts}
    found: dict[str, list[_Line]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()
    for number, text in numbered_lines(path):
        cells = text.split()
        if len(cells) != COLUMNS:
            raise BrokenData(path, number, f"{len(cells)} columns instead of {COLUMNS}", FORM)
        topic, fact = cells[0], cells[2]
        if topic not in topics:
            raise BrokenData(path, number, f"{testset.name} has no topic {topic}", "run the set's own topics")
        if stores.get(fact) != topics[topic].store:
            raise BrokenData(path, number, f"the store of topic {topic} has no fact {fact}", "rank the set's own facts")
        if (topic, fact) in seen:
            raise BrokenData(path, number, f"fact {fact} is there twice for topic {topic}", "rank each fact once")
        seen.add((topic, fact))
        rank, score = (_number(path, number, name, cells[at]) for name, at in (("rank", 3), ("score", 4)))
        found[topic].append(_Line(fact, rank, score))
    if not found:
        raise InputError(f"{path} has no line", FORM)
    rows = tuple(
        _row(topic, testset.qrels.get(topic.id, frozenset()), found.get(topic.id, []), k) for topic in testset.topics
    )
    return ForeignRun(rows, tuple(name for name, lines in found.items() if _contradicts(lines)))


def _number(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BrokenData(path, line, f"the {name} {text!r} is no finite number", "write a number")
    return value


def _contradicts(lines: list[_Line]) -> bool:
    ranked = sorted(lines, key=lambda line: line.rank)
    return any(second.score > first.score for first, second in pairwise(ranked) if second.rank > first.rank)


def _row(topic: Topic, relevant: frozenset[str], lines: list[_Line], k: int) -> TopicRow:
    best = sorted(lines, key=lambda line: (-round(line.score, SCORE_DIGITS), line.fact))[:k]
    return TopicRow(
        topic=topic.id,
        topic_class=topic.topic_class,
        store=topic.store,
        answerable=bool(relevant),
        rank=next((rank for rank, line in enumerate(best, 1) if line.fact in relevant), None),
        hits=tuple(HitRow(fact=line.fact, score=line.score) for line in best),
    )
