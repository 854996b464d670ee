"""Arms against each other, paired by topic, with a verdict that may be "cannot tell"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.errors import InputError
from lab.retrieval.metrics.ranks import RankCounts, reciprocal
from lab.retrieval.metrics.scores import ranks_of
from lab.retrieval.results import ComparisonRow, Mean
from lab.retrieval.rows import TopicRow
from lab.statistics.paired import holm, mcnemar_exact, paired_bootstrap

ALPHA = 0.05
CANNOT_TELL = "cannot tell"


def compare_arms(arms: Mapping[str, Sequence[TopicRow]], pairs: Sequence[tuple[str, str]]) -> tuple[ComparisonRow, ...]:
    """Compares declared pairs of arms over the answerable topics that both answered without an error.

    The rule of the verdict, fixed before any result: an arm is better when Hit@1 (exact McNemar, Holm over all declared
    pairs, below .05) *and* the 95 % interval of the difference in MRR@10 say so, in the same direction. As the first
    alone keeps the family-wise error rate, both together do; what only one of them shows is "cannot tell". The
    interval is taken over stores where there are several; McNemar's test takes topics as independent, so the
    interval has to agree.

    Args:
        arms: Rows of each arm; all over the same topics. Their depths should be equal: a system that returns five
            hits misses by construction what another finds at rank 6.
        pairs: Pairs declared beforehand: Holm's correction is over these.

    Returns:
        One row a pair, in the order given.

    Raises:
        InputError: A pair names an arm that there is not, or two arms were not asked the same topics.
    """
    asked = [_Pair(first, second, arms) for first, second in pairs]
    adjusted = holm([pair.p_hit1 for pair in asked])
    return tuple(pair.row(p) for pair, p in zip(asked, adjusted, strict=True))


class _Pair:
    """Two arms over their common topics: what can be said before Holm, and the row that follows from it."""

    def __init__(self, first: str, second: str, arms: Mapping[str, Sequence[TopicRow]]) -> None:
        self.first, self.second = first, second
        one, other = (_by_topic(name, arms) for name in (first, second))
        if one.keys() != other.keys():
            odd = sorted(one.keys() ^ other.keys())[0]
            raise InputError(f"topic {odd} has no row in one of the arms {first} and {second}", "run both on one set")
        both = [(one[topic], other[topic]) for topic in one if not (one[topic].error or other[topic].error)]
        self.ranks = [ranks_of([pair[side] for pair in both]) for side in (0, 1)]
        stores = [pair[0].store for pair in both]
        self.stores = stores if len(set(stores)) > 1 else None
        top = [ranks == 1 for ranks in self.ranks]
        self.only_first, self.only_second = int((top[0] & ~top[1]).sum()), int((top[1] & ~top[0]).sum())
        self.p_hit1 = mcnemar_exact(self.only_first, self.only_second)

    def row(self, p_hit1_holm: float) -> ComparisonRow:
        difference = self._difference()
        return ComparisonRow(
            first=self.first,
            second=self.second,
            n=difference.n,
            only_first=self.only_first,
            only_second=self.only_second,
            p_hit1=_significant(self.p_hit1),
            p_hit1_holm=_significant(p_hit1_holm),
            mrr_difference=difference,
            verdict=_verdict(self.only_first - self.only_second, p_hit1_holm, difference),
        )

    def _difference(self) -> Mean:
        first, second = (RankCounts.of(ranks).reciprocal_sum for ranks in self.ranks)
        n = len(self.ranks[0])
        if not n:
            return Mean(n=0, value=None)
        interval = paired_bootstrap(*map(reciprocal, self.ranks), clusters=self.stores)
        value = float((first - second) / n)
        return Mean(n=n, value=value, low=interval.low, high=interval.high, method=f"paired {interval.method}")


def _by_topic(name: str, arms: Mapping[str, Sequence[TopicRow]]) -> dict[str, TopicRow]:
    if name not in arms:
        raise InputError(f"no arm {name} to compare", f"there are {', '.join(sorted(arms))}")
    return {row.topic: row for row in arms[name] if row.answerable}


def _significant(p: float) -> float:
    """A p-value without its last bits, which differ from platform to platform."""
    return float(f"{p:.9g}")


def _verdict(hit1: int, p_hit1_holm: float, difference: Mean) -> str:
    if p_hit1_holm < ALPHA and difference.low is not None and difference.high is not None:
        if hit1 > 0 and difference.low > 0:
            return "first"
        if hit1 < 0 and difference.high < 0:
            return "second"
    return CANNOT_TELL
