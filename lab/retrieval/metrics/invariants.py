"""What must hold between the figures of a run, whoever states them; and their recomputation from the rows.

A check on figures alone cannot see a denominator that was forged throughout: see ``docs/metrics.md``. For that there
are the rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from lab.retrieval.metrics.ranks import CUTOFF, first_relevant_ranks
from lab.retrieval.metrics.scores import HIT5, ranks_of, scored
from lab.retrieval.results import OVERALL, Check, ClassScores, Mean
from lab.retrieval.rows import TopicRow
from lab.statistics.proportions import PLACES, Proportion

STEPS = math.lcm(*range(1, CUTOFF + 1))
"""A sum of reciprocal ranks up to 10 is a multiple of one in this many."""


@dataclass(frozen=True)
class Figures:
    """The figures of one class as somebody states them.

    Attributes:
        n: Topics.
        hit1: Hit@1, 0 to 1.
        hit5: Hit@5.
        hit10: Hit@10; None where it is not defined or not stated.
        mrr10: MRR@10; likewise.
        mrr_conditional: Mean reciprocal rank over topics with a hit; likewise.
        slack: How far a stated figure may be from the true one through rounding: 0 for figures known exactly.
    """

    n: int
    hit1: Fraction
    hit5: Fraction
    hit10: Fraction | None
    mrr10: Fraction | None
    mrr_conditional: Fraction | None = None
    slack: Fraction = Fraction()


def invariants(figures: Figures, label: str = "") -> tuple[Check, ...]:
    """Looks at the figures of one class.

    ``order``: Hit@1 ≤ Hit@5 ≤ Hit@10. ``loose bounds`` and ``tight bounds``: a topic that is a hit at 1, 5 or 10 adds
    at least and at most so much to the MRR. ``identity``: MRR@10 = mrr_conditional × Hit@10. ``granularity``: with n
    topics a Hit is a multiple of 1/n and an MRR one of 1/2520n (the GRIM test, N. J. L. Brown and J. A. J. Heathers
    (2017), Social Psychological and Personality Science 8:363-369). Each side may be off by the slack of the figures
    in it, no more.

    Args:
        figures: The figures.
        label: Put in brackets behind the name of each check.

    Returns:
        One check for each invariant that these figures allow to be looked at; none without a topic.
    """
    f = figures
    if not f.n:
        return ()
    found = [_order(f)]
    if f.hit10 is not None and f.mrr10 is not None:
        found.append(_between("loose bounds", f, f.hit1, f.mrr10, f.hit1 + (f.hit10 - f.hit1) / 2))
        low = f.hit1 + (f.hit5 - f.hit1) / 5 + (f.hit10 - f.hit5) / 10
        high = f.hit1 + (f.hit5 - f.hit1) / 2 + (f.hit10 - f.hit5) / 6
        found.append(_between("tight bounds", f, low, f.mrr10, high))
        if f.mrr_conditional is not None:
            found.append(_identity(f.mrr10, f.mrr_conditional, f.hit10, f.slack))
    found.append(_granularity(f))
    return tuple(c.model_copy(update={"name": f"{c.name} ({label})"}) for c in found) if label else tuple(found)


def check_published(
    n: int,
    hit1: float | str,
    hit5: float | str,
    hit10: float | str,
    mrr10: float | str,
    *,
    digits: int,
    mrr_conditional: float | str | None = None,
    qrels: int | None = None,
) -> tuple[Check, ...]:
    """Looks at figures that somebody published, of which no rows are there.

    Args:
        n: Topics that the figures are said to be over.
        hit1: Hit@1, 0 to 1, as printed.
        hit5: Hit@5.
        hit10: Hit@10.
        mrr10: MRR@10.
        digits: Decimals that were printed: each figure may be off by half a unit of the last one.
        mrr_conditional: Mean reciprocal rank over topics with a hit, where it is stated.
        qrels: Topics with a relevant fact in the judgements, where they are known.

    Raises:
        ValueError: A figure is no number.
    """
    conditional = None if mrr_conditional is None else _printed(mrr_conditional)
    hits = (_printed(hit1), _printed(hit5), _printed(hit10))
    slack = Fraction(1, 2 * 10**digits)
    found = invariants(Figures(n, *hits, _printed(mrr10), conditional, slack))
    return found if qrels is None else (_equal("declared n", {"topics": (n, qrels)}), *found)


def checks(
    rows: Sequence[TopicRow],
    scores: Sequence[ClassScores],
    *,
    declared_n: Mapping[str, int],
    left_out: Collection[str] = (),
) -> tuple[Check, ...]:
    """Looks at the scores of a run: what must hold between them, and whether the rows give the same.

    Args:
        rows: The rows that the scores are said to be of.
        scores: ``overall`` first, then the classes.
        declared_n: Topics with a relevant fact in the judgements, by class.
        left_out: Topics that were left out because another arm could not answer them.

    Returns:
        The checks; some of them may not hold.
    """
    answerable = [row for row in rows if row.answerable]
    gone = [row.topic_class for row in answerable if row.error or row.topic in left_out]
    expected = {OVERALL: sum(declared_n.values()) - len(gone)}
    expected |= {name: n - gone.count(name) for name, n in declared_n.items()}
    stated = {score.topic_class: score.n for score in scores}
    names = dict.fromkeys([*stated, *expected])
    found = [
        _equal("declared n", {name: (stated.get(name, 0), expected.get(name, 0)) for name in names}),
        _equal("denominators", {f"{s.topic_class} {p.name}": (p.denominator, s.n) for s in scores for p in _hits(s)}),
        _equal("classes add up", _sums(scores)),
        _recomputed(scored(rows, left_out), scores),
    ]
    for score in scores:
        found += invariants(figures_of(score), score.topic_class)
    return tuple(found)


def judged(rows: Sequence[TopicRow], qrels: Mapping[str, AbstractSet[str]]) -> Check:
    """Whether each row's rank, and whether it was answerable at all, is what its hits and the judgements give.

    Args:
        rows: Rows of a run.
        qrels: Ids of the relevant facts by topic.
    """
    relevant: list[AbstractSet[str]] = [qrels.get(row.topic, frozenset()) for row in rows]
    ranks = first_relevant_ranks([[hit.fact for hit in row.hits] for row in rows], relevant)
    stated = ranks_of(rows)
    wrong = [
        row.topic
        for row, ids, rank, says in zip(rows, relevant, ranks, stated, strict=True)
        if not row.error and (rank != says or row.answerable != bool(ids))
    ]
    text = f"{len(rows)} rows" if not wrong else f"{len(wrong)} of {len(rows)} rows differ: {', '.join(wrong[:3])}"
    return Check(name="ranks as judged", holds=not wrong, text=text)


def asked(rows: Sequence[TopicRow], topics: Mapping[str, int], stores: Mapping[str, int]) -> Check:
    """Whether every topic of a set has a row, those without an answer among them: only noise is computed from these.

    Args:
        rows: Rows of a run.
        topics: Topics of the set by class.
        stores: Topics of the set by store.
    """
    by_class, by_store = Counter(row.topic_class for row in rows), Counter(row.store for row in rows)
    sides = {name: (by_class[name], topics.get(name, 0)) for name in dict.fromkeys([*topics, *by_class])}
    sides |= {f"store {name}": (by_store[name], stores.get(name, 0)) for name in dict.fromkeys([*stores, *by_store])}
    return _equal("declared topics", sides)


def figures_of(score: ClassScores) -> Figures:
    """The exact figures behind a record of scores: a mean is stored as the float nearest to its exact value."""
    hits = score.hit10.numerator if score.hit10 else 0
    return Figures(
        n=score.n,
        hit1=_share(score.hit1) or Fraction(),
        hit5=_share(score.hit5) or Fraction(),
        hit10=_share(score.hit10) if score.hit10 else None,
        mrr10=_exact(score.mrr10, score.n) if score.mrr10 else None,
        mrr_conditional=_exact(score.mrr_conditional, hits),
    )


def _share(rate: Proportion) -> Fraction | None:
    """A share; the stated value where it is not that of its own numerator and denominator."""
    if rate.value is None:
        return None
    exact = Fraction(rate.numerator, rate.denominator)
    return exact if round(float(exact), PLACES) == rate.value else Fraction(rate.value)


def _exact(mean: Mean, n: int) -> Fraction | None:
    """The multiple of 1/2520n whose nearest float a mean is; the float itself where there is none."""
    if mean.value is None:
        return None
    stated = Fraction(mean.value)
    nearest = Fraction(round(stated * STEPS * n), STEPS * n) if n else stated
    return nearest if float(nearest) == mean.value else stated


def _printed(figure: float | str) -> Fraction:
    return Fraction(str(figure))


def _hits(score: ClassScores) -> list[Proportion]:
    return [rate for rate in (score.hit1, score.hit5, score.hit10) if rate is not None]


def _sums(scores: Sequence[ClassScores]) -> dict[str, tuple[int, int]]:
    """Each count over the classes, beside that of all topics."""
    counts = [{"n": score.n} | {rate.name: rate.numerator for rate in _hits(score)} for score in scores]
    overall, *classes = counts
    return {name: (sum(c.get(name, 0) for c in classes), total) for name, total in overall.items()}


def _number(value: Fraction) -> str:
    return f"{float(value):.{PLACES}f}"


def _order(f: Figures) -> Check:
    rising = [f.hit1, f.hit5] + ([f.hit10] if f.hit10 is not None else [])
    holds = all(a <= b + 2 * f.slack for a, b in pairwise(rising))
    within = all(-f.slack <= value <= 1 + f.slack for value in rising)
    return Check(name="order", holds=holds and within, text=" ≤ ".join(_number(value) for value in rising))


def _between(name: str, f: Figures, low: Fraction, value: Fraction, high: Fraction) -> Check:
    # The weights of the hits in either bound add up to 1: a bound is off by one slack at most, and the MRR by another.
    holds = low - 2 * f.slack <= value <= high + 2 * f.slack
    return Check(name=name, holds=holds, text=f"{_number(low)} ≤ {_number(value)} ≤ {_number(high)}")


def _identity(mrr: Fraction, conditional: Fraction, hit10: Fraction, slack: Fraction) -> Check:
    product = conditional * hit10
    holds = abs(mrr - product) <= slack + slack * (conditional + hit10) + slack**2
    text = f"{_number(mrr)} = {_number(conditional)} × {_number(hit10)} = {_number(product)}"
    return Check(name="identity", holds=holds, text=text)


def _granularity(f: Figures) -> Check:
    figures = {"Hit@1": (f.hit1, 1), "Hit@5": (f.hit5, 1), "Hit@10": (f.hit10, 1), "MRR@10": (f.mrr10, STEPS)}
    wrong = [
        f"{name} {_number(value)}"
        for name, (value, steps) in figures.items()
        if value is not None and abs(value - Fraction(round(value * f.n * steps), f.n * steps)) > f.slack
    ]
    text = f"{', '.join(wrong)} cannot be over {f.n} topics" if wrong else f"all can be over {f.n} topics"
    return Check(name="granularity", holds=not wrong, text=text)


def _equal(name: str, sides: Mapping[str, tuple[int, int]]) -> Check:
    wrong = [f"{what}: {stated} ≠ {true}" for what, (stated, true) in sides.items() if stated != true]
    text = "; ".join(wrong) or ", ".join(f"{what} {stated}" for what, (stated, _) in sides.items())
    return Check(name=name, holds=not wrong, text=text)


def _recomputed(rows: Sequence[TopicRow], scores: Sequence[ClassScores]) -> Check:
    """Counts again, topic by topic, in another way than the scores were made."""
    wrong = []
    for score in scores:
        ranks = [row.rank for row in rows if score.topic_class in (OVERALL, row.topic_class)]
        hits = [rank for rank in ranks if rank is not None and rank <= CUTOFF]
        total = sum((Fraction(1, rank) for rank in hits), Fraction())
        true = Figures(
            n=len(ranks),
            hit1=Fraction(sum(rank == 1 for rank in hits), len(ranks) or 1),
            hit5=Fraction(sum(rank <= HIT5 for rank in hits), len(ranks) or 1),
            hit10=Fraction(len(hits), len(ranks)) if score.hit10 and ranks else None,
            mrr10=total / len(ranks) if score.mrr10 and ranks else None,
            mrr_conditional=total / len(hits) if hits else None,
        )
        stated = figures_of(score)
        if score.hit10 is None and hits:  # the hits that the conditional mean is over are not in the scores then
            stated = replace(stated, mrr_conditional=_exact(score.mrr_conditional, len(hits)))
        if stated != true:
            wrong.append(f"{score.topic_class}: n {len(ranks)}, Hit@1 {_number(true.hit1)}")
    text = f"the rows give {'; '.join(wrong)}" if wrong else f"{len(rows)} rows give the same"
    return Check(name="recomputed from rows", holds=not wrong, text=text)
