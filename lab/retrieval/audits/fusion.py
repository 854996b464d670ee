"""Fusion audit: whether fusing relevance with the author's ranking injects other facts, and whether better ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from lab.errors import InputError
from lab.records import Record
from lab.statistics.paired import holm, mcnemar_exact

DEPTH = 5
"""Facts that are injected."""

ALPHA = 0.05
NO_DIFFERENCE = "no difference found"

Rankings = Mapping[str, Sequence[str]]
"""Fact names by topic, best first."""


class PairedHits(Record):
    """Hits of two rankings, paired by topic.

    Attributes:
        depth: 1 or 5: a hit is a relevant fact among that many.
        both: Topics that both hit.
        only_first: Topics that only the first hits.
        only_second: Topics that only the second hits.
        neither: Topics that neither hits.
        p: Exact McNemar: binomial, two-sided, over the discordant topics; 1 where there are none.
        p_holm: The same after Holm over all tests of the audit.
    """

    depth: int
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float
    p_holm: float


class FusionPair(Record):
    """Two ways to order the same facts.

    Attributes:
        first: Name of the one.
        second: Name of the other.
        n: Topics that both ranked.
        answerable: Those with an answer; the tests are over them.
        lists_differ: Topics of ``n`` that get other facts, whatever their order.
        order_differs: Topics of ``n`` that get other facts or the same in another order.
        hits: At depth 1 and 5.
        verdict: Which hits more, and where; ``no difference found`` where neither test finds one, which is not to find
            that there is none.
    """

    first: str
    second: str
    n: int
    answerable: int
    lists_differ: int
    order_differs: int
    hits: tuple[PairedHits, ...]
    verdict: str


class FusionAudit(Record):
    """All pairs.

    Attributes:
        depth: Facts that are injected.
        alpha: Level at which a difference is said to be found, after Holm.
        pairs: Every pair of the rankings.
        left_out: Topics that not all rankings have; they are compared nowhere.
    """

    depth: int = DEPTH
    alpha: float = ALPHA
    pairs: tuple[FusionPair, ...]
    left_out: tuple[str, ...] = ()


def author_first(relevance: Rankings, ranks: Mapping[str, int]) -> dict[str, list[str]]:
    """The facts of a relevance ranking by author, and by relevance only among those of the same author.

    Args:
        relevance: Best first; deep enough that what the first authors said is in it.
        ranks: Rank of each fact's author, the most trusted first.
    """
    return {topic: sorted(facts, key=ranks.__getitem__) for topic, facts in relevance.items()}


def audit_fusion(rankings: Mapping[str, Rankings], relevant: Mapping[str, AbstractSet[str]]) -> FusionAudit:
    """Compares the facts that would be injected, pair by pair.

    Args:
        rankings: By name (``rrf``, ``relevance only``, ``author first``), two or more, of the same topics.
        relevant: Facts that answer a topic; topics without an entry have no answer.

    Raises:
        InputError: There is nothing to compare.
    """
    if len(rankings) < 2:
        raise InputError("a fusion is compared with something else, and only one ranking is there")
    shared = set.intersection(*(set(one) for one in rankings.values()))
    if not shared:
        raise InputError("the rankings have no topic in common", "rank the same set")
    topics = sorted(shared)
    answerable = [topic for topic in topics if relevant.get(topic)]
    tests = [(first, second, depth) for first, second in combinations(rankings, 2) for depth in (1, DEPTH)]
    counts = {(a, b, depth): _paired(rankings[a], rankings[b], relevant, answerable, depth) for a, b, depth in tests}
    p_values = [mcnemar_exact(counts[test][1], counts[test][2]) for test in tests]
    hits = {
        test: PairedHits(
            depth=test[2],
            both=counts[test][0],
            only_first=counts[test][1],
            only_second=counts[test][2],
            neither=counts[test][3],
            p=p,
            p_holm=p_holm,
        )
        for test, p, p_holm in zip(tests, p_values, holm(p_values), strict=True)
    }
    pairs = []
    for first, second in combinations(rankings, 2):
        tops = [tuple(list(rankings[name][topic][:DEPTH]) for name in (first, second)) for topic in topics]
        found = (hits[first, second, 1], hits[first, second, DEPTH])
        pairs.append(
            FusionPair(
                first=first,
                second=second,
                n=len(topics),
                answerable=len(answerable),
                lists_differ=sum(set(one) != set(other) for one, other in tops),
                order_differs=sum(one != other for one, other in tops),
                hits=found,
                verdict=_verdict(first, second, found),
            )
        )
    everywhere = set.union(*(set(one) for one in rankings.values()))
    return FusionAudit(pairs=tuple(pairs), left_out=tuple(sorted(everywhere - shared)))


def _verdict(first: str, second: str, hits: Sequence[PairedHits]) -> str:
    found = [
        f"{first if one.only_first > one.only_second else second} is better at Hit@{one.depth}"
        for one in hits
        if one.p_holm < ALPHA
    ]
    return "; ".join(found) or NO_DIFFERENCE


def _paired(
    first: Rankings, second: Rankings, relevant: Mapping[str, AbstractSet[str]], topics: Sequence[str], depth: int
) -> tuple[int, int, int, int]:
    """Topics that both hit, the first alone, the second alone, neither."""
    cells = [
        (bool(relevant[topic] & set(first[topic][:depth])), bool(relevant[topic] & set(second[topic][:depth])))
        for topic in topics
    ]
    return (
        cells.count((True, True)),
        cells.count((True, False)),
        cells.count((False, True)),
        cells.count((False, False)),
    )
