"""Small stores of facts for tests of the fact store, opened as a system under test, with a planted channel."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.retrieval.build_database import build_database
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.systems.base import Ranking
from lab.retrieval.systems.factstore import FactstoreSystem, Index
from lab.retrieval.testset import Author, Fact


def fact(text: str, **fields: object) -> Fact:
    return Fact.model_validate({"id": hashlib.sha256(text.encode()).hexdigest()[:8], "text": text, **fields})


def opened(
    folder: Path, facts: Sequence[Fact | str], settings: FactstoreSettings | None = None, index: Index | None = None
) -> FactstoreSystem:
    """A system over these facts, whose row ids are their places, from 1."""
    path = folder / f"store-{len(list(folder.glob('store-*')))}.db"
    build_database([f if isinstance(f, Fact) else fact(f) for f in facts], path)
    system = FactstoreSystem(settings or FactstoreSettings(), index)
    system.open(path)
    return system


def ids(ranking: Ranking) -> list[int]:
    return [hit.fact_id for hit in ranking.hits]


@dataclass
class PlantedChannel:
    """Gives the cosines that it was told, and counts how often it was asked."""

    cosines: Mapping[int, float]
    asked: list[str] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[int, float]]:
        return sorted(self.cosines.items(), key=lambda pair: -pair[1])

    @property
    def seconds(self) -> dict[str, float]:
        return {"embed": 0.0}

    def nearest(self, query: str, limit: int) -> PlantedChannel:
        self.asked.append(query)
        return self


USER, AGENT, THIRD = Author.USER, Author.AGENT, Author.THIRD_PARTY
NOISE_DEVIATION = 1 / math.sqrt(2 * 1024)
"""Standard deviation of the similarity of two unrelated vectors of 1,024 angles."""
