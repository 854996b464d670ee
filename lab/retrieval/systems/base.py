"""The protocol of a system under test: it is opened on a frozen database, asked, and closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

SCORE_DIGITS = 6
"""Scores are rounded to this many decimals before they are compared; equal ones are ordered by fact id.

Matrix products in another order differ around the seventh decimal, which would otherwise decide rankings.
"""


@dataclass(frozen=True)
class Hit:
    """One fact of a ranking.

    Attributes:
        fact_id: Row id in the database (``facts.fact_id``); the bench maps it to the fact's name in the set.
        score: What the system ranks by, the higher the better.
        parts: The terms that the score was made of, by name, as they went into it.
    """

    fact_id: int
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ranking:
    """Answer of a system to one query.

    Attributes:
        hits: Best first, at most k, no fact twice.
        seconds: Wall time by stage (``lexical``, ``embed``, ``dense``, ``fuse``, …); ``total`` is the bench's own.
        channels: The channels that ran for this query, by name: what was configured is not always what ran.
        coverage: Lexical coverage that the gate saw, 0 to 1; None for a system without a gate.
        confidence: Best raw cosine before any fusion; None where no embedding was compared.
        fallback: Why a configured channel did not run although the gate was open: ``timeout``, ``server_gone``,
            ``model_missing``, ``bad_answer``; empty where nothing went wrong.
    """

    hits: tuple[Hit, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    channels: tuple[str, ...] = ()
    coverage: float | None = None
    confidence: float | None = None
    fallback: str = ""


class System(Protocol):
    """A system under test. It never receives topics' classes, judgements or names of facts."""

    @property
    def name(self) -> str:
        """Short name, the same in every run."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """Everything that decides its results beside the database: weights, versions, digests. Goes into the lock.

        ``depth`` among them is the most hits that it returns whatever is asked for, where there is such a bound.
        """
        ...

    def open(self, database: Path) -> None:
        """Opens a database that is this system's own for now: a private copy of a frozen one.

        Raises:
            InputError: The database is not one that this system reads.
            EnvironmentUnusable: The system lacks something on this machine.
        """
        ...

    def search(self, query: str, k: int) -> Ranking:
        """Ranks facts for a query.

        Args:
            query: Any text, also empty or hostile.
            k: Most hits wanted.

        Raises:
            SystemFailed: The system could not answer; the topic is then an error, and no result.
        """
        ...

    def close(self) -> None:
        """Lets go of everything; may be called twice."""
        ...
