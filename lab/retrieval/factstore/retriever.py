"""The retrieval: candidates by words, the gate, the embedding channel, and the two fusions.

query ─ terms ─ full text + overlap + HRR, times trust ─ lexical ranking ─┐
          └──── coverage ─ gate ─ channel ─ dense ranking ────────────────┴─ relevance ─┬─ final ranking
                                                          authors of the candidates ────┘
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .channel import Channel, ChannelFailed, Neighbours
from .fusion import DIGITS, author_rank, ranked, reciprocal, reciprocal_ranks, to_unit
from .gate import coverage, is_open
from .lexical import Candidate, LexicalIndex
from .settings import BadSetting, FactstoreSettings
from .tokens import share_found, terms, vocabulary, words

Parts = dict[str, float]


@dataclass(frozen=True)
class Found:
    """A fact of the ranking.

    Attributes:
        fact_id: Row id.
        content: Text.
        author: Who said it.
        trust: 0 to 1.
        score: What the ranking goes by, rounded.
        parts: The terms of the score as they went into it. The lexical score is ``(fts + overlap + hrr) * trust``,
            each with its weight; ``dense`` is the raw cosine. Relevance is the lexical score, or, where the channel
            ran, the sum of ``<fusion>_lexical`` and ``<fusion>_dense``. The score is the relevance, or, where authors
            count, the sum of ``<author_fusion>_relevance`` and ``author``.
    """

    fact_id: int
    content: str
    author: str
    trust: float
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Answer:
    """What a query found.

    Attributes:
        found: The ranking, best first.
        seconds: Wall time by stage.
        channels: Channels that ran.
        coverage: What the gate saw.
        confidence: Best raw cosine; None where no embedding was compared.
        fallback: Why the channel did not answer although the gate was open; empty otherwise.
    """

    found: tuple[Found, ...]
    seconds: Mapping[str, float]
    channels: tuple[str, ...]
    coverage: float
    confidence: float | None
    fallback: str


class Retriever:
    """Searches an open store. It writes nothing, so the same query gives the same ranking again.

    Args:
        connection: The store.
        settings: What decides the ranking.
        channel: The embedding channel; None for a search by words alone.

    Raises:
        BadSetting: HRR is on and there is no numpy.
    """

    def __init__(
        self, connection: sqlite3.Connection, settings: FactstoreSettings, channel: Channel | None = None
    ) -> None:
        self._settings = settings
        self._channel = channel
        self._hrr_scores = _hrr_scores() if settings.hrr != "off" else None
        self._index = LexicalIndex(connection, keywords=settings.keywords)

    def search(self, query: str, limit: int) -> Answer:
        """Ranks facts for a query, which may be any text; one without a word of any kind finds nothing."""
        timer = _Timer()
        depth = max(self._settings.candidates, limit)
        wanted = terms(query)
        with timer("lexical"):
            self._index.refresh()
            candidates = self._index.search(wanted, depth, self._settings.min_trust)
            parts = self._lexical_parts(query, wanted, candidates)
            lexical = {fact_id: _lexical_score(each) for fact_id, each in parts.items()}
        facts = {candidate.fact_id: candidate for candidate in candidates}
        order = ranked(lexical)
        seen = coverage(wanted, [facts[fact_id] for fact_id in order])
        neighbours, fallback = self._ask_channel(query, depth, seen, timer)
        with timer("fuse"):
            dense: dict[int, float] = {}
            if neighbours is not None:
                near = self._index.facts([fact_id for fact_id, _ in neighbours.pairs], self._settings.min_trust)
                facts = near | facts
                dense = {fact_id: cosine for fact_id, cosine in neighbours.pairs if fact_id in facts}
            relevance = lexical if neighbours is None else self._fuse_relevance(lexical, dense, parts)
            final = self._fuse_authors(relevance, facts, parts)
            found = tuple(_found(facts[i], final[i], parts[i]) for i in ranked(final)[:limit])
        return Answer(
            found=found,
            seconds=timer.seconds,
            channels=("lexical",) if neighbours is None else ("lexical", "dense"),
            coverage=seen,
            confidence=max(dense.values(), default=None),
            fallback=fallback,
        )

    def _lexical_parts(self, query: str, wanted: tuple[str, ...], candidates: Sequence[Candidate]) -> dict[int, Parts]:
        total = sum(self._settings.weights)
        fts, overlap, hrr = (weight / total for weight in self._settings.weights)
        full_text = to_unit({candidate.fact_id: candidate.bm25 for candidate in candidates})
        parts = {}
        for candidate in candidates:
            document = vocabulary(candidate.content) | vocabulary(candidate.tags)
            parts[candidate.fact_id] = {
                "fts": fts * full_text[candidate.fact_id],
                "overlap": overlap * share_found(wanted, document),
                "trust": candidate.trust,
            }
        if self._hrr_scores:
            scores = self._hrr_scores(self._settings.hrr, query, candidates)
            for candidate, score in zip(candidates, scores, strict=True):
                parts[candidate.fact_id]["hrr"] = hrr * score
        return parts

    def _ask_channel(self, query: str, depth: int, seen: float, timer: _Timer) -> tuple[Neighbours | None, str]:
        if self._channel is None or not is_open(seen, self._settings.gate) or not words(query):
            return None, ""
        try:
            neighbours = self._channel.nearest(query, depth)
        except ChannelFailed as failure:
            return None, failure.cause
        timer.seconds.update(neighbours.seconds)
        return neighbours, ""

    def _fuse_relevance(
        self, lexical: Mapping[int, float], dense: Mapping[int, float], parts: dict[int, Parts]
    ) -> dict[int, float]:
        """One relevance score for each fact of either ranking; a ranking that lacks a fact gives it nothing."""
        legs = {"lexical": dict(lexical), "dense": dict(dense)}
        if self._settings.fusion == "rrf":
            terms_of = {f"rrf_{name}": reciprocal_ranks(ranked(scores)) for name, scores in legs.items()}
        else:
            share = self._settings.dense_weight
            # Cosines live in a narrow band far from 0, so the dense scale starts at the last candidate.
            floor = min(dense.values(), default=0.0)
            scaled = {"lexical": (1 - share, to_unit(lexical)), "dense": (share, to_unit(dense, floor))}
            terms_of = {f"weighted_{name}": {i: w * s for i, s in leg.items()} for name, (w, leg) in scaled.items()}
        for fact_id, cosine in dense.items():
            parts.setdefault(fact_id, {})["dense"] = cosine
        for name, leg in terms_of.items():
            for fact_id, value in leg.items():
                parts[fact_id][name] = value
        return {i: sum(leg.get(i, 0.0) for leg in terms_of.values()) for i in parts}

    def _fuse_authors(
        self, relevance: Mapping[int, float], facts: Mapping[int, Candidate], parts: dict[int, Parts]
    ) -> dict[int, float]:
        how = self._settings.author_fusion
        if how == "off":
            return dict(relevance)
        priority = self._settings.author_priority
        ranks = {fact_id: author_rank(facts[fact_id].author, priority) for fact_id in relevance}
        if how == "rrf":
            base = ("rrf_relevance", reciprocal_ranks(ranked(relevance)))
            authors = {fact_id: reciprocal(rank) for fact_id, rank in ranks.items()}
        else:
            share = self._settings.author_weight
            base = ("weighted_relevance", {i: (1 - share) * s for i, s in to_unit(relevance).items()})
            authors = {fact_id: share * (1 - (rank - 1) / len(priority)) for fact_id, rank in ranks.items()}
        for fact_id in relevance:
            parts[fact_id] |= {base[0]: base[1][fact_id], "author": authors[fact_id]}
        return {fact_id: base[1][fact_id] + authors[fact_id] for fact_id in relevance}


class _Timer:
    """Wall time by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


def _hrr_scores() -> Callable[[str, str, Sequence[Candidate]], list[float]]:
    try:
        # By name: the agent's loader leaves a module that could not be loaded in place, empty.
        from .hrr_scores import hrr_scores  # noqa: PLC0415 - numpy, which an agent's environment may not have
    except ImportError as error:
        raise BadSetting("hrr other than off needs numpy, which is not installed here") from error
    return hrr_scores


def _lexical_score(parts: Parts) -> float:
    return (parts["fts"] + parts["overlap"] + parts.get("hrr", 0.0)) * parts["trust"]


def _found(fact: Candidate, score: float, parts: Parts) -> Found:
    return Found(fact.fact_id, fact.content, fact.author, fact.trust, round(score, DIGITS), dict(parts))
