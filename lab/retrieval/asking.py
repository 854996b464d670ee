"""Asks one system every topic of a set, on private copies of its frozen stores, and keeps what it answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

from lab.errors import InputError, SystemFailed
from lab.retrieval.database import read_labels
from lab.retrieval.metrics.ties import admit
from lab.retrieval.rows import HitRow, TopicRow
from lab.retrieval.systems.base import Hit, Ranking, System
from lab.retrieval.testset import TestSet, Topic
from lab.snapshots.store import Snapshot

SECOND_PASS = 25
"""Topics of each store that are asked again at the end: a memory that learns from being asked shows itself there."""

Labels = Mapping[int, tuple[str, ...]]
"""Names in the set of what a row holds."""


@dataclass
class Asked:
    """What a system answered on one set.

    Attributes:
        rows: One for each topic, in the order of the set.
        seconds: Wall times of every query by stage; ``total`` is the whole query as the bench saw it.
        again: Topics that were asked a second time.
        changed: Those whose ranking then was another.
        fresh: Whether every topic had a fresh copy of its store.
        settings: The system's settings while it was open.
    """

    rows: list[TopicRow] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    again: int = 0
    changed: int = 0
    fresh: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asker:
    """One system, one set.

    Args:
        system: The system under test; closed by whoever made it.
        testset: The set.
        snapshots: Frozen database of each store.
        k: Depth of the rankings.
        work: Empty directory for private copies.
        step: Called after each topic.
    """

    system: System
    testset: TestSet
    snapshots: Mapping[str, Snapshot]
    k: int
    work: Path
    step: Callable[[], None]

    def ask_all(self, fresh: bool = False) -> Asked:
        """Asks every topic; a system whose rankings change by being asked is asked again on fresh copies.

        Args:
            fresh: Give every topic a fresh copy from the start.

        Raises:
            InputError: The system returned a ranking that no metric may be taken of.
        """
        asked = self._pass(fresh)
        if asked.changed:
            told = (asked.again, asked.changed)
            asked = self._pass(fresh=True)
            asked.again, asked.changed = told
        return asked

    def _pass(self, fresh: bool) -> Asked:
        asked = Asked(fresh=fresh)
        rows: dict[str, TopicRow] = {}
        for store, snapshot in self.snapshots.items():
            topics = [topic for topic in self.testset.topics if topic.store == store]
            if not topics:
                continue
            labels = self._open(snapshot)
            for number, topic in enumerate(topics):
                if fresh and number:
                    self._open(snapshot)
                rows[topic.id] = self._ask(topic, labels, asked.seconds)
                self.step()
            if not fresh:
                self._ask_again(topics[:SECOND_PASS], labels, rows, asked)
        asked.settings = dict(self.system.settings())
        asked.rows = [rows[topic.id] for topic in self.testset.topics]
        return asked

    def _open(self, snapshot: Snapshot) -> Labels:
        """Opens the system on a new private copy; returns the names of the facts, which the system never sees."""
        self.system.close()
        copy = self.work / "memory_store.db"
        for leftover in self.work.iterdir():
            leftover.unlink()
        snapshot.copy_to(copy)
        self.system.open(copy)
        with closing(snapshot.connect()) as connection:
            return read_labels(connection)

    def _ask_again(self, topics: Sequence[Topic], labels: Labels, rows: Mapping[str, TopicRow], asked: Asked) -> None:
        for topic in topics:
            again = self._ask(topic, labels, {})
            before = rows[topic.id]
            # A channel that failed on one of the two passes says nothing about the memory.
            if again.channels == before.channels and not (again.error or before.error):
                asked.again += 1
                asked.changed += [hit.fact for hit in again.hits] != [hit.fact for hit in before.hits]

    def _ask(self, topic: Topic, labels: Labels, seconds: dict[str, list[float]]) -> TopicRow:
        relevant = self.testset.qrels.get(topic.id, frozenset())
        started = time.perf_counter()
        error = ""
        try:
            ranking = self.system.search(topic.text, self.k)
        except SystemFailed as failure:
            ranking, error = Ranking(()), failure.message
        else:
            seconds.setdefault("total", []).append(time.perf_counter() - started)
            for stage, spent in ranking.seconds.items():
                seconds.setdefault(stage, []).append(spent)
        admit(topic.id, ranking.hits, self.k)
        names = [self._name(hit, labels, relevant) for hit in ranking.hits]
        rank = next((place for place, name in enumerate(names, 1) if name in relevant), None)
        return TopicRow(
            topic=topic.id,
            topic_class=topic.topic_class,
            store=topic.store,
            answerable=bool(relevant),
            rank=rank,
            hits=tuple(
                HitRow(fact=name, score=hit.score, parts=dict(hit.parts))
                for name, hit in zip(names, ranking.hits, strict=True)
            ),
            channels=ranking.channels,
            coverage=ranking.coverage,
            confidence=ranking.confidence,
            fallback=ranking.fallback,
            error=error,
        )

    def _name(self, hit: Hit, labels: Labels, relevant: frozenset[str]) -> str:
        """The name that a hit is kept under: of facts that share a row, one that answers the topic counts first."""
        # 1.0 and True are equal to 1 and would pass for it; NumPy's whole numbers are ids.
        whole = isinstance(hit.fact_id, Integral) and not isinstance(hit.fact_id, bool)
        if not whole or hit.fact_id not in labels:
            raise InputError(
                f"{self.system.name} returned fact {hit.fact_id!r}, which the store does not have",
                "the run is refused: mend the system",
            )
        names = labels[hit.fact_id]
        return next((name for name in names if name in relevant), names[0])
