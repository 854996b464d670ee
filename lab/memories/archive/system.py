"""The archive as a system under test: facts become a session log, which is indexed by words and by vectors."""

from __future__ import annotations

import dataclasses
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lab.errors import EmbeddingFailed, EnvironmentUnusable, InputError, SystemFailed
from lab.memories.archive.episodic import LANGUAGES, TOKENIZER
from lab.memories.archive.legs import Leg, Meaning, Scores, Words
from lab.memories.archive.points import NAMESPACE
from lab.memories.archive.vectors import lancedb_version
from lab.retrieval.database import open_database, read_facts
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.factstore.fusion import K, ranked, reciprocal_ranks
from lab.retrieval.systems.base import SCORE_DIGITS, Hit, Ranking

POOL = 50
"""Candidates that each leg gives to the fusion, or k where that is more."""

_PART = {"lexical": "bm25", "dense": "dense"}
"""What a leg's own score is called among the parts of a hit."""


class Archive:
    """Full-text search over session logs and exact cosine search in LanceDB, fused by reciprocal rank.

    Args:
        lexical: Whether words are searched.
        indexes: Makes the vectors; None for words only.
    """

    def __init__(self, *, lexical: bool, indexes: DenseIndexes | None) -> None:
        if not lexical and indexes is None:
            raise ValueError("an archive without words and without vectors finds nothing")
        self._lexical, self._indexes = lexical, indexes
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._legs: dict[str, Leg] = {}

    @property
    def name(self) -> str:
        """``archive``, ``archive-words`` or ``archive-vectors``."""
        if self._indexes is None:
            return "archive-words"
        return "archive" if self._lexical else "archive-vectors"

    def settings(self) -> Mapping[str, Any]:
        """Everything that decides its results beside the database."""
        told: dict[str, Any] = {"point_namespace": str(NAMESPACE)}
        if self._lexical:
            told |= {"tokenizer": TOKENIZER, "stopwords": list(LANGUAGES), "sqlite": sqlite3.sqlite_version}
        if self._indexes is not None:
            model = dataclasses.asdict(self._indexes.embedder.identity)
            told |= {
                "embedder": {**model, "prefixes": dict(model["prefixes"])},
                "timeout": self._indexes.timeout,
                "lancedb": lancedb_version(),
            }
        if self._lexical and self._indexes is not None:
            told |= {"fusion": "rrf", "rrf_k": K, "pool": POOL}
        return told

    def open(self, database: Path) -> None:
        """Writes the facts as a session log and indexes it; see ``System``.

        Raises:
            EmbeddingFailed: The facts could not be embedded.
        """
        self.close()
        with closing(open_database(database)) as source:
            facts = read_facts(source)
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="lab-archive-")
            place = Path(self._folder.name)
            if self._lexical:
                self._legs["lexical"] = Words(place, facts)
            if self._indexes is not None:
                self._legs["dense"] = Meaning(place, facts, self._indexes)
        except OSError as error:
            self.close()
            what = f"the archive cannot be written to the folder of temporary files: {error.strerror}"
            raise EnvironmentUnusable(what, "make room, or set TMPDIR to another folder") from error
        except BaseException:
            self.close()
            raise

    def search(self, query: str, k: int) -> Ranking:
        """Ranks facts; see ``System``.

        Where the query cannot be embedded, words alone answer and the cause is told; without words it is an error.
        """
        if not self._legs:
            raise SystemFailed("no database is open", "open one first")
        fused = len(self._legs) > 1
        limit = max(k, POOL) if fused else max(k, 0)
        seconds: dict[str, float] = {}
        found: dict[str, Scores] = {}
        fallback = ""
        for name, leg in self._legs.items():
            try:
                scores = leg.scores(query, limit, seconds)
            except EmbeddingFailed as error:
                if not fused:
                    raise SystemFailed(f"{error.cause}: {error.message}", error.mend) from error
                fallback = error.cause
                continue
            except (InputError, EnvironmentUnusable) as error:
                raise SystemFailed(error.message, error.mend) from error
            if scores is not None:
                found[name] = scores
        if fused:
            started = time.perf_counter()
            hits = _fused(found, limit)
            seconds["fuse"] = time.perf_counter() - started
        else:
            hits = _alone(found)
        confidence = max(found.get("dense", {}).values(), default=None)
        return Ranking(hits[: max(k, 0)], seconds, tuple(found), confidence=confidence, fallback=fallback)

    def close(self) -> None:
        """Removes the log and its indexes; may be called twice."""
        for leg in self._legs.values():
            leg.close()
        self._legs = {}
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _alone(found: Mapping[str, Scores]) -> tuple[Hit, ...]:
    """Hits of the only leg, by its own scores."""
    return tuple(
        Hit(fact_id, scores[fact_id], {_PART[name]: scores[fact_id]})
        for name, scores in found.items()
        for fact_id in ranked(scores)
    )


def _fused(found: Mapping[str, Scores], pool: int) -> tuple[Hit, ...]:
    """Hits by the sum of 1 / (60 + rank) over the legs that found them, each leg with its first hits alone."""
    worth = {name: reciprocal_ranks(ranked(scores)[:pool]) for name, scores in found.items()}
    totals: dict[int, float] = {}
    for ranks in worth.values():
        for fact_id, reciprocal in ranks.items():
            totals[fact_id] = totals.get(fact_id, 0.0) + reciprocal
    return tuple(
        Hit(
            fact_id,
            round(totals[fact_id], SCORE_DIGITS),
            {f"rrf_{name}": ranks[fact_id] for name, ranks in worth.items() if fact_id in ranks},
        )
        for fact_id in ranked(totals)
    )
