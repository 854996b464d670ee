"""Rankings without any retrieval: what a random order and one constant list reach on a set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from lab.retrieval.metrics.ranks import CUTOFF, RankCounts, first_relevant_ranks
from lab.retrieval.results import Baseline
from lab.retrieval.testset import TestSet, Topic
from lab.statistics.proportions import PLACES

RANDOM, CONSTANT = "random ranker", "constant answer"


def baselines(testset: TestSet) -> tuple[Baseline, ...]:
    """Both baselines over the answerable topics; none for a set without such topics."""
    topics = [topic for topic in testset.topics if testset.answerable(topic)]
    return (_random(testset, topics), _constant(testset, topics)) if topics else ()


@cache
def missed(relevant: int, pool: int) -> tuple[Fraction, ...]:
    """Probability that the first r facts of a random order hold no relevant one, for r from 0 to 10.

    The number of relevant facts among the first r is hypergeometric, so this is C(N − R, r) / C(N, r).

    Args:
        relevant: R, facts that answer the topic.
        pool: N, facts in the store.
    """
    depth = min(CUTOFF, pool)
    at = [Fraction(math.comb(pool - relevant, r), math.comb(pool, r)) for r in range(depth + 1)]
    return (*at, *[at[-1]] * (CUTOFF - depth))


def expected_mrr(relevant: int, pool: int) -> Fraction:
    """Expectation of MRR@10 for a random order: Σ 1/r · (P(none in the first r−1) − P(none in the first r))."""
    none = missed(relevant, pool)
    return sum(((none[r - 1] - none[r]) / r for r in range(1, CUTOFF + 1)), Fraction())


def _random(testset: TestSet, topics: Sequence[Topic]) -> Baseline:
    alike = Counter((len(testset.qrels[topic.id]), len(testset.stores[topic.store])) for topic in topics)

    def mean(values: Sequence[Fraction]) -> float:
        return round(math.fsum(float(v) * n for v, n in zip(values, alike.values(), strict=True)) / len(topics), PLACES)

    return Baseline(
        name=RANDOM,
        hit1=mean([1 - missed(*pair)[1] for pair in alike]),
        hit5=mean([1 - missed(*pair)[5] for pair in alike]),
        hit10=mean([1 - missed(*pair)[CUTOFF] for pair in alike]),
        mrr10=mean([expected_mrr(*pair) for pair in alike]),
    )


def constant_list(relevant: Sequence[frozenset[str]]) -> tuple[str, ...]:
    """At most ten facts as the answer to every topic of a store: each answers most of the topics yet unanswered.

    Where each topic has one relevant fact, that is the best list for every measure. With more, the best list for
    Hit@k is a maximum coverage and that for MRR a minimum sum set cover, both NP-hard; this greedy one reaches at
    least 1 − 1/e of the best Hit@k (G. L. Nemhauser, L. A. Wolsey and M. L. Fisher (1978), Mathematical Programming
    14:265-294), and Hit@1 exactly. So it is a lower bound of what a constant answer can reach.

    Args:
        relevant: Relevant facts of each topic of the store.
    """
    chosen: list[str] = []
    left = list(relevant)
    while left and len(chosen) < CUTOFF:
        answers = Counter(fact for facts in left for fact in facts)
        best = min(answers, key=lambda fact: (-answers[fact], fact))
        chosen.append(best)
        left = [facts for facts in left if best not in facts]
    return tuple(chosen)


def _constant(testset: TestSet, topics: Sequence[Topic]) -> Baseline:
    ranks = []
    for store in testset.stores:
        relevant = [testset.qrels[topic.id] for topic in topics if topic.store == store]
        ranks.append(first_relevant_ranks([constant_list(relevant)] * len(relevant), relevant))
    counts = RankCounts.of(np.concatenate(ranks))
    hit1, hit5, hit10 = (round(counts.hits(k) / counts.n, PLACES) for k in (1, 5, CUTOFF))
    return Baseline(
        name=CONSTANT,
        hit1=hit1,
        hit5=hit5,
        hit10=hit10,
        mrr10=round(float(counts.reciprocal_sum / counts.n), PLACES),
    )
