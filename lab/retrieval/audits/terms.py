"""Term audit: what each term of a score contributes to the rankings, and what happens when it is taken out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lab.errors import InputError
from lab.records import Record
from lab.retrieval.results import TIE_RULE
from lab.retrieval.systems.base import SCORE_DIGITS, Hit

_TOP = 5


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
        variance_share: Share of the variance of the score within topics; the shares of all terms add up to 1. None
            where scores do not vary. See ``audit_terms``.
        top1_changed: Topics whose first fact is another when the term is taken out.
        top5_changed: Topics whose first five facts are other ones, whatever their order.
        top5_reordered: Topics whose first five are other ones or stand in another order.
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
    top1_changed: int
    top5_changed: int
    top5_reordered: int


class TermAudit(Record):
    """All terms of a system.

    Attributes:
        system: Name of the system.
        topics: Topics with candidates; the denominator of the changes.
        without_candidates: Topics for which the system considered nothing.
        candidates: Candidates of all topics together.
        rows: A row for every term, in the order of the weights.
        factor: The same changes when the factor is taken as 1: top-1, top-5, top-5 in order.
        tie_rule: How equal scores were ordered.
    """

    system: str
    topics: int
    without_candidates: int
    candidates: int
    rows: tuple[TermRow, ...]
    factor: tuple[int, int, int]
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


def table_of_hits(system: str, weights: Mapping[str, float], hits: Mapping[str, Iterable[Hit]]) -> TermTable:
    """The terms as they stand in a system's own hits.

    Only the hits themselves can be ranked anew: a fact that a term kept out of them is not seen to come in, so the
    changes in the top five are lower bounds.

    Args:
        system: Name of the system.
        weights: Weight by term; 1 where the parts of a hit are already weighted. A term that a hit lacks counts 0.
        hits: By topic, with ``parts``; a part ``trust`` that has no weight is taken as the factor.
    """
    factor = "trust" if "trust" not in weights else None
    topics = {
        topic: tuple(
            Candidate(
                fact=hit.fact_id,
                terms={term: hit.parts.get(term, 0.0) for term in weights},
                factor=hit.parts.get(factor, 1.0) if factor else 1.0,
            )
            for hit in found
        )
        for topic, found in hits.items()
    }
    return TermTable(system=system, weights=dict(weights), topics=topics)


def audit_terms(table: TermTable) -> TermAudit:
    """Measures every term.

    The share of the variance is that of covariances: with the contribution c of a term (weight × value × factor) and
    the score s = Σ c, both centred within each topic, it is Σ c·s / Σ s·s over all candidates of all topics. Since
    var(s) = Σ cov(c, s), the shares add up to 1; a term that works against the others has a negative one. Differences
    between topics do not enter, for they rank nothing.

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
    centred = np.concatenate([one.contributions - one.contributions.mean(axis=0) for one in scored])
    total = centred.sum(axis=1)
    variance = float(total @ total)
    # Rounded as scores are: what is left of equal scores after summing in floating point is no variance.
    flat = variance <= len(total) * 10.0 ** (-2 * SCORE_DIGITS)
    ranges = np.array([np.ptp(one.values, axis=0) for one in scored if len(one.values) > 1] or [np.zeros(len(terms))])
    rows = []
    for i, term in enumerate(terms):
        changes = [one.changes(one.contributions.sum(axis=1) - one.contributions[:, i]) for one in scored]
        rows.append(
            TermRow(
                term=term,
                weight=table.weights[term],
                low=values[:, i].min(),
                high=values[:, i].max(),
                median_range=np.median(ranges[:, i]),
                low_contribution=(weights[i] * values[:, i]).min(),
                high_contribution=(weights[i] * values[:, i]).max(),
                mean_contribution=(weights[i] * values[:, i]).mean(),
                variance_share=None if flat else float(centred[:, i] @ total) / variance,
                top1_changed=sum(first for first, _, _ in changes),
                top5_changed=sum(top for _, top, _ in changes),
                top5_reordered=sum(order for _, _, order in changes),
            )
        )
    unweighted = np.array([one.changes(one.values @ weights) for one in scored]).sum(axis=0)
    return TermAudit(
        system=table.system,
        topics=len(full),
        without_candidates=len(table.topics) - len(full),
        candidates=len(values),
        rows=tuple(rows),
        factor=tuple(unweighted.tolist()),
    )


class _Scored:
    """The candidates of one topic as arrays: rows are candidates, columns terms."""

    def __init__(self, found: Sequence[Candidate], terms: tuple[str, ...], weights: npt.NDArray[np.float64]) -> None:
        self._facts = np.array([one.fact for one in found])
        self.values = np.array([[one.terms[term] for term in terms] for one in found])
        factors = np.array([one.factor for one in found])
        self.contributions = self.values * weights * factors[:, None]
        self._top = self._ranked(self.contributions.sum(axis=1))

    def changes(self, scores: npt.NDArray[np.float64]) -> tuple[bool, bool, bool]:
        """Whether other scores give another first fact, other first five, or another order of them."""
        top = self._ranked(scores)
        return top[0] != self._top[0], set(top) != set(self._top), top != self._top

    def _ranked(self, scores: npt.NDArray[np.float64]) -> list[int]:
        order = np.lexsort((self._facts, -np.round(scores, SCORE_DIGITS)))
        return [int(fact) for fact in self._facts[order[:_TOP]]]
