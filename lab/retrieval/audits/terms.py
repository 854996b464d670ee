"""Term audit: what each term of a score contributes to the rankings, and what happens when it is taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lab.errors import InputError
from lab.records import Record
from lab.retrieval.results import TIE_RULE
from lab.retrieval.systems.base import SCORE_DIGITS, Hit

_TOP = 5
_DIGITS = 9
_SAME = 10.0**-SCORE_DIGITS


class Candidate(Record):
    """A fact that a system considered for a topic.

    Attributes:
        fact: Row id.
        terms: Raw value of every scoring term, by name.
        factor: What the weighted sum of the terms is multiplied by (trust).
    """

    fact: int
    terms: Mapping[str, float]
    factor: float = 1.0


class TermTable(Record):
    """What a system's scores are made of: score = factor × Σ weight × value.

    Attributes:
        system: Name of the system.
        weights: Weight of every term; its keys are the terms.
        topics: Candidates by topic; a topic without candidates stands with none.
    """

    system: str
    weights: Mapping[str, float]
    topics: Mapping[str, tuple[Candidate, ...]]


class Changes(Record):
    """Topics whose ranking is another one after something was changed.

    Attributes:
        top1: Another first fact.
        top5: Other first five facts, whatever their order.
        top5_order: Other first five, or the same in another order.
    """

    top1: int
    top5: int
    top5_order: int


class TermRow(Record):
    """One term over all topics.

    Attributes:
        term: Name.
        weight: Its weight.
        low: Smallest raw value of any candidate.
        high: Largest.
        median_range: Median over topics (of two candidates or more) of the largest minus the smallest raw value.
        low_contribution: Smallest weight × value, before the factor.
        high_contribution: Largest.
        mean_contribution: Mean over all candidates.
        variance_share: Share of the variance of the score within topics; the shares of all terms and of the factor
            add up to 1. None where scores do not vary. See ``audit_terms``.
        taken_out: What changes without the term.
        levelled: What changes when every candidate of a topic has the topic's mean of it: what the term itself decides.
            The two differ where the factor differs between candidates, for then a constant is no constant any more.
    """

    term: str
    weight: float
    low: float
    high: float
    median_range: float
    low_contribution: float
    high_contribution: float
    mean_contribution: float
    variance_share: float | None
    taken_out: Changes
    levelled: Changes


class TermAudit(Record):
    """All terms of a system.

    Attributes:
        system: Name of the system.
        topics: Topics with candidates; the denominator of the changes.
        without_candidates: Topics for which the system considered nothing.
        candidates: Candidates of all topics together.
        rows: A row for every term, in the order of the weights.
        factor: What changes when the factor is taken as 1.
        factor_share: Its share of the variance.
        tie_rule: How equal scores were ordered.
    """

    system: str
    topics: int
    without_candidates: int
    candidates: int
    rows: tuple[TermRow, ...]
    factor: Changes
    factor_share: float | None
    tie_rule: str = TIE_RULE


class ExplainsItsTerms(Protocol):
    """A system that tells the raw terms of every candidate, as the real plugin's ``terms`` does."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def weights(self) -> Mapping[str, float]:
        """Weight of every term."""
        ...

    def terms(self, query: str, k: int) -> list[dict[str, object]]:
        """Candidates of a query: ``fact_id``, ``terms`` by name, ``trust``."""
        ...


def explained_terms(system: ExplainsItsTerms, queries: Mapping[str, str], k: int) -> TermTable:
    """Asks a system for the terms of all candidates, also of those beyond the first k.

    Args:
        system: It has a database open.
        queries: Text by topic.
        k: Depth of the ranking, which decides how many candidates there are.

    Raises:
        SystemFailed: It could not tell.
    """
    topics = {
        topic: tuple(
            Candidate.model_validate({"fact": one["fact_id"], "terms": one["terms"], "factor": one["trust"]})
            for one in system.terms(text, k)
        )
        for topic, text in queries.items()
    }
    return TermTable(system=system.name, weights=dict(system.weights), topics=topics)


FUSED, LEXICAL = ("rrf_relevance", "author"), ("fts", "overlap", "hrr")
SUMS: tuple[tuple[tuple[str, ...], str], ...] = (
    (FUSED, ""),
    (("weighted_relevance", "author"), ""),
    (("rrf_lexical", "rrf_dense"), ""),
    (("weighted_lexical", "weighted_dense"), ""),
    (LEXICAL, "trust"),
)
"""What a score of the fact store may be the sum of, and the factor of that sum: the last step of its ranking."""


def table_of_hits(system: str, hits: Mapping[str, Sequence[Hit]]) -> TermTable:
    """The terms of the fact store's scores as they stand in its hits, already weighted.

    They are those of its last step: where rankings were fused, that is how much of the order each of them decides. What
    went into a ranking before it was fused by ranks is no term of the sum. Only the hits can be ranked anew: a fact
    that a term kept out of them is not seen to come in, so the changes in the top five are lower bounds.

    Args:
        system: Name of the system.
        hits: Its hits by topic, with their parts.

    Raises:
        InputError: No known sum of parts gives the scores of all hits: the parts do not explain them.
    """
    for terms, factor in SUMS:
        topics = {
            topic: tuple(
                Candidate(
                    fact=hit.fact_id,
                    terms={term: hit.parts.get(term, 0.0) for term in terms},
                    factor=hit.parts.get(factor, 1.0),
                )
                for hit in found
            )
            for topic, found in hits.items()
        }
        told = [(hit.score, one) for topic in hits for hit, one in zip(hits[topic], topics[topic], strict=True)]
        if all(abs(score - one.factor * sum(one.terms.values())) <= _SAME for score, one in told):
            return TermTable(system=system, weights=dict.fromkeys(terms, 1.0), topics=topics)
    raise InputError(
        f"the parts of {system}'s hits do not add up to its scores",
        "audit an arm whose last step is the same for all topics",
    )


def audit_terms(table: TermTable) -> TermAudit:
    """Measures every term.

    The share of the variance is that of covariances. What a term adds to a score is split in two: weight × (value −
    mean value in the topic) × factor is the term's own, and weight × mean value × factor is the factor's, for without
    the factor it would rank nothing. With such a part c and the score s, both centred within each topic, the share is
    Σ c·s / Σ s·s over all candidates of all topics. Since s is the sum of all parts, the shares add up to 1; a part
    that works against the others has a negative one. Differences between topics do not enter.

    Raises:
        InputError: No topic has a candidate, or one lacks a term.
    """
    terms = tuple(table.weights)
    full = {topic: found for topic, found in table.topics.items() if found}
    if not full:
        raise InputError(f"no topic has a candidate of {table.system}", "audit it on a set that it finds something in")
    for topic, found in full.items():
        if lacking := [term for term in terms if any(term not in one.terms for one in found)]:
            raise InputError(f"a candidate of topic {topic} has no term {', '.join(lacking)}")
    weights = np.array([table.weights[term] for term in terms])
    scored = [_Scored(found, terms, weights) for found in full.values()]
    values = np.concatenate([one.values for one in scored])
    own = np.concatenate([_centred(one.own) for one in scored])
    total = np.concatenate([_centred(one.scores) for one in scored])
    variance = float(total @ total)
    # Rounded as scores are: what is left of equal scores after summing in floating point is no variance.
    flat = variance <= len(total) * _SAME**2
    shares = own.T @ total / (1.0 if flat else variance)
    ranges = np.array([np.ptp(one.values, axis=0) for one in scored if len(one.values) > 1] or [np.zeros(len(terms))])
    rows = [
        TermRow(
            term=term,
            weight=weights[i],
            low=values[:, i].min(),
            high=values[:, i].max(),
            median_range=np.median(ranges[:, i]),
            low_contribution=(weights[i] * values[:, i]).min(),
            high_contribution=(weights[i] * values[:, i]).max(),
            mean_contribution=(weights[i] * values[:, i]).mean(),
            variance_share=None if flat else shares[i],
            taken_out=_changes([(one, one.scores - one.contributions[:, i]) for one in scored]),
            levelled=_changes([(one, one.scores - one.own[:, i]) for one in scored]),
        )
        for i, term in enumerate(terms)
    ]
    return TermAudit(
        system=table.system,
        topics=len(full),
        without_candidates=len(table.topics) - len(full),
        candidates=len(values),
        rows=tuple(rows),
        factor=_changes([(one, one.values @ weights) for one in scored]),
        factor_share=None if flat else round(1.0 - float(shares.sum()), _DIGITS),
    )


class _Scored:
    """The candidates of one topic as arrays: rows are candidates, columns terms."""

    def __init__(self, found: Sequence[Candidate], terms: tuple[str, ...], weights: npt.NDArray[np.float64]) -> None:
        self._facts = np.array([one.fact for one in found])
        self.values = np.array([[one.terms[term] for term in terms] for one in found])
        factors = np.array([[one.factor] for one in found])
        self.contributions = self.values * weights * factors
        self.own = _centred(self.values) * weights * factors
        self.scores = self.contributions.sum(axis=1)

    def top(self, scores: npt.NDArray[np.float64]) -> list[int]:
        """The first five facts by some scores."""
        order = np.lexsort((self._facts, -np.round(scores, SCORE_DIGITS)))
        return [int(fact) for fact in self._facts[order[:_TOP]]]


def _changes(other: Sequence[tuple[_Scored, npt.NDArray[np.float64]]]) -> Changes:
    """What changes when the topics have other scores."""
    pairs = [(topic.top(topic.scores), topic.top(scores)) for topic, scores in other]
    return Changes(
        top1=sum(old[0] != new[0] for old, new in pairs),
        top5=sum(set(old) != set(new) for old, new in pairs),
        top5_order=sum(old != new for old, new in pairs),
    )


def _centred(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    centred: npt.NDArray[np.float64] = values - values.mean(axis=0)
    return centred
