"""Labelled data of the suite: duplicates with their foils, memories of an age, pairs that contradict or do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from lab.memories.consolidation.contradictions import Signal
from lab.memories.consolidation.kinds import MemoryType
from lab.retrieval.data.lines import BrokenData
from lab.retrieval.testset import Purpose
from lab.suites.base import DataInfo
from lab.suites.labelled import PARTS, Labelled, Words, digest_of, labelled_lines, require_apart

GUIDE = "docs/consolidation.md"
DUPLICATES, DECAY, CONTRADICTIONS = "duplicates.jsonl", "decay.jsonl", "contradictions.jsonl"


class Difference(StrEnum):
    """By what a memory differs from the one that it resembles."""

    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    TIME = "time"
    OPPOSITE = "opposite"


class Telling(Labelled):
    """A memory of a scene.

    Attributes:
        id: Unique in its file.
        scene: What it is about; tellings of a scene share words. The unit of which intervals are made.
        cluster: Tellings of one scene and cluster say the same.
        differs: Of a foil, by what it differs from the scene's first cluster; None for those of that cluster.
        language: ``en`` or ``pt-BR``.
        text: What it says.
    """

    scene: Words
    cluster: Words
    differs: Difference | None = None
    language: str
    text: Words


class Aged(Labelled):
    """A memory with its true type and an age.

    Attributes:
        id: Unique in its file.
        language: ``en`` or ``pt-BR``.
        kind: What it is to a reader.
        age_hours: Its age.
        text: What it says.
    """

    language: str
    kind: MemoryType
    age_hours: float = Field(gt=0, allow_inf_nan=False)
    text: Words


class Dispute(Labelled):
    """Two memories that contradict each other, or only look so.

    Attributes:
        id: Unique in its file.
        language: ``en`` or ``pt-BR``.
        first: The earlier one.
        second: The later one.
        days: Days between them.
        contradicts: Whether both cannot be true of the same thing at the same time.
        signals: What a reader sees between them, whether or not it makes a contradiction.
    """

    language: str
    first: Words
    second: Words
    days: float = Field(ge=0, allow_inf_nan=False)
    contradicts: bool
    signals: frozenset[Signal]


class TellingPair(NamedTuple):
    """Two tellings of one scene.

    Attributes:
        id: Both ids.
        one: The first.
        two: The other.
    """

    id: str
    one: Telling
    two: Telling

    @property
    def same(self) -> bool:
        """Whether they say the same."""
        return self.one.cluster == self.two.cluster


@dataclass(frozen=True)
class Part:
    """One data set.

    Attributes:
        info: Its name, digest and counts.
        tellings: Memories for the search for duplicates.
        aged: Memories for decay.
        disputes: Pairs for the contradiction scan.
    """

    info: DataInfo
    tellings: tuple[Telling, ...]
    aged: tuple[Aged, ...]
    disputes: tuple[Dispute, ...]

    @property
    def cases(self) -> int:
        """How many labelled cases it has."""
        return len(self.tellings) + len(self.aged) + len(self.disputes)

    def pairs(self) -> Iterator[TellingPair]:
        """All pairs of tellings of one scene."""
        for one, two in combinations(self.tellings, 2):
            if one.scene == two.scene:
                yield TellingPair(f"{one.id}+{two.id}", one, two)


def load(folder: Path) -> tuple[Part, ...]:
    """Reads the development part and the hold-out.

    Args:
        folder: ``scenarios/suites/consolidation``.

    Raises:
        BrokenData: A file is missing or broken, or a line cannot be, or stands in both parts.
    """
    parts = tuple(_part(folder / part, part, purpose) for part, purpose in PARTS.items())
    require_apart(folder, (DUPLICATES, DECAY, CONTRADICTIONS), "text", "first", "second")
    return parts


def _part(folder: Path, part: str, purpose: Purpose) -> Part:
    tellings = _tellings(folder / DUPLICATES)
    aged = tuple(case for _, case in labelled_lines(folder / DECAY, Aged, GUIDE))
    disputes = tuple(case for _, case in labelled_lines(folder / CONTRADICTIONS, Dispute, GUIDE))
    info = DataInfo(
        name=part,
        purpose=purpose,
        digest=digest_of(tellings, aged, disputes),
        counts={
            "scenes": len({telling.scene for telling in tellings}),
            "memories for duplicates": len(tellings),
            "memories of an age": len(aged),
            "pairs for contradictions": len(disputes),
        },
        source="invented; written and labelled by hand by the authors of the suite",
    )
    return Part(info, tellings, aged, disputes)


def _tellings(path: Path) -> tuple[Telling, ...]:
    found = list(labelled_lines(path, Telling, GUIDE))
    first: dict[str, str] = {}
    texts: set[str] = set()
    for line, telling in found:
        own = first.setdefault(telling.scene, telling.cluster)
        if (telling.cluster == own) != (telling.differs is None):
            fault = "a foil says by what it differs, and a telling of the scene's first cluster does not"
            raise BrokenData(path, line, fault, "mend cluster or differs")
        if telling.text in texts:
            raise BrokenData(path, line, "the same text is there already", "word it differently")
        texts.add(telling.text)
    return tuple(telling for _, telling in found)
