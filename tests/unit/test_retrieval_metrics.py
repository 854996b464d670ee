"""Ranks, ties, admission and scores: exact, with each class over its own denominator."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError, SystemFailed
from lab.retrieval.metrics.baselines import expected_mrr
from lab.retrieval.metrics.ranks import RankCounts, first_relevant_ranks, reciprocal
from lab.retrieval.metrics.scores import score_rows
from lab.retrieval.metrics.ties import admit, ranked
from lab.retrieval.rows import HitRow, TopicRow
from lab.retrieval.systems.base import Hit

# Ranks


def test_ranks_of_ragged_rankings():
    rankings = [["a", "b", "c"], [], ["x"], ["a"], [], ["p", "q"]]
    relevant = [{"c", "b"}, {"a"}, {"a"}, {"a"}, set(), {"q"}]
    assert first_relevant_ranks(rankings, relevant).tolist() == [2, 0, 0, 1, 0, 2]


def test_no_ranking_at_all():
    assert first_relevant_ranks([], []).tolist() == []
    assert first_relevant_ranks([[], []], [{1}, {2}]).tolist() == [0, 0]


@given(st.lists(st.tuples(st.lists(st.integers(0, 8), max_size=15), st.frozensets(st.integers(0, 8)))))
def test_ranks_are_those_of_a_plain_loop(topics):
    expected = [next((i for i, fact in enumerate(hits, 1) if fact in ids), 0) for hits, ids in topics]
    assert first_relevant_ranks([hits for hits, _ in topics], [ids for _, ids in topics]).tolist() == expected


def test_topics_on_both_sides_must_be_the_same():
    with pytest.raises(ValueError, match="2 rankings, but judgements for 1"):
        first_relevant_ranks([["a"], ["b"]], [{"a"}])


def test_a_rank_beyond_ten_is_a_miss_and_stays_in_the_denominator():
    counts = RankCounts.of(np.array([15, 1, 0, 10]))
    assert (counts.hits(10), counts.n) == (2, 4)
    assert counts.mrr == Fraction(11, 40)
    assert counts.mrr_conditional == Fraction(11, 20)
    assert reciprocal(np.array([15, 1, 0, 10])).tolist() == [0, 1, 0, 0.1]


@given(st.lists(st.integers(0, 20), min_size=1))
def test_mrr_is_exactly_the_conditional_one_times_the_hit_rate(ranks):
    counts = RankCounts.of(np.array(ranks))
    assert counts.mrr == (counts.mrr_conditional or 0) * Fraction(counts.hits(10), counts.n)


def test_nothing_to_divide_by():
    assert RankCounts.of(np.array([], dtype=np.int64)).mrr is None
    assert RankCounts.of(np.array([0])).mrr == 0
    assert RankCounts.of(np.array([0])).mrr_conditional is None


# Ties


def test_ties_are_ordered_by_id():
    assert ranked([7, 3, 5], [0.5, 0.5, 0.9], 3).tolist() == [2, 1, 0]


def test_what_differs_beyond_six_decimals_is_a_tie():
    assert ranked([2, 1], [0.5000001, 0.5], 2).tolist() == [1, 0]
    assert ranked([2, 1], [0.500002, 0.5], 2).tolist() == [0, 1]


@given(st.lists(st.sampled_from([0.0, 0.1, 0.1 + 1e-9, 0.2, -0.3, 1e6]), max_size=40), st.integers(1, 12), st.randoms())
def test_the_order_of_arrival_changes_nothing_and_the_cut_is_that_of_the_full_order(scores, k, shuffle):
    ids = list(range(100, 100 + len(scores)))
    first = [ids[i] for i in ranked(ids, scores, k)]
    pairs = list(zip(ids, scores, strict=True))
    assert first == [i for i, s in sorted(pairs, key=lambda p: (-round(p[1], 6), p[0]))[:k]]
    shuffle.shuffle(pairs)
    again = ranked([i for i, _ in pairs], [s for _, s in pairs], k)
    assert [pairs[position][0] for position in again] == first


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_cannot_be_ranked(bad):
    with pytest.raises(SystemFailed, match="fact 8"):
        ranked([7, 8], [0.5, bad], 2)


def test_a_constant_scorer_scores_as_chance():
    pool, topics = 60, 4000
    draw = random.Random(3)
    ids = list(range(pool))
    order = ranked(ids, np.full(pool, 0.5), 10)
    relevant = [{draw.randrange(pool)} for _ in range(topics)]
    mrr = RankCounts.of(first_relevant_ranks([order.tolist()] * topics, relevant)).mrr
    assert float(mrr) == pytest.approx(float(expected_mrr(1, pool)), abs=0.01)


# Admission


def hits(*scored: tuple[int, float]) -> list[Hit]:
    return [Hit(fact, score) for fact, score in scored]


@pytest.mark.parametrize(
    "ranking",
    [hits(), hits((4, 0.9)), hits((4, 0.9), (9, 0.9), (1, 0.2)), hits((9, 0.90000049), (4, 0.8999991))],
)
def test_a_ranking_in_order_is_admitted(ranking):
    admit("t1", ranking, 3)


@pytest.mark.parametrize(
    ("ranking", "fault"),
    [
        (hits((1, 0.9), (2, 0.8), (3, 0.7), (4, 0.6)), "4 hits where 3 were asked for"),
        (hits((1, 0.9), (1, 0.8)), "fact 1 is there twice"),
        (hits((1, 0.9), (2, math.nan)), "fact 2 at rank 2 has the score nan"),
        (
            hits(
                (1, math.inf),
            ),
            "fact 1 at rank 1 has the score inf",
        ),
        (hits((1, 0.8), (2, 0.9)), "fact 1 at rank 1 is not in the order"),
        (hits((2, 0.9), (1, 0.9)), "fact 2 at rank 1 is not in the order"),
        (hits((2, 0.9000001), (1, 0.9)), "fact 2 at rank 1 is not in the order"),
    ],
)
def test_a_broken_ranking_is_refused_with_topic_and_fault(ranking, fault):
    with pytest.raises(InputError, match=f"topic t1: {fault}") as refused:
        admit("t1", ranking, 3)
    assert "\n" not in str(refused.value)


# Scores


def row(topic: str, rank: int | None, topic_class: str = "exact", *, store: str = "main", **more) -> TopicRow:
    found = tuple(HitRow(fact=f"f{i}", score=1 / i) for i in range(1, (rank or 3) + 1))
    return TopicRow(
        **{"answerable": True, "hits": found} | more, topic=topic, topic_class=topic_class, store=store, rank=rank
    )


ROWS = [
    row("e1", 1),
    row("e2", 4),
    row("e3", None),
    row("p1", 2, "paraphrase"),
    row("p2", 7, "paraphrase"),
    row("broken", None, error="timeout", hits=()),
    row("n1", None, "no-answer", answerable=False),
]


def test_each_class_has_its_own_denominator_and_misses_count():
    overall, exact, paraphrase = score_rows(ROWS, ["exact", "paraphrase"], depth=10, clusters=False)
    assert [s.topic_class for s in (overall, exact, paraphrase)] == ["overall", "exact", "paraphrase"]
    assert [(s.n, s.hit1.numerator, s.hit5.numerator, s.hit10.numerator) for s in (overall, exact, paraphrase)] == [
        (5, 1, 3, 4),
        (3, 1, 2, 2),
        (2, 0, 1, 2),
    ]
    assert overall.mrr10.value == float((1 + Fraction(1, 4) + Fraction(1, 2) + Fraction(1, 7)) / 5)
    assert exact.mrr10.value == float(Fraction(5, 12))
    assert (exact.mrr_conditional.n, exact.mrr_conditional.value) == (2, 0.625)
    assert exact.hit1.text().startswith("1/3 of answerable topics of class exact")


def test_topics_that_another_arm_could_not_answer_can_be_left_out():
    overall, _ = score_rows(ROWS, ["exact"], depth=10, clusters=False, left_out={"e3"})
    assert (overall.n, overall.hit10.numerator) == (4, 4)


def test_a_system_that_returns_five_has_no_hit10():
    shallow = [r for r in ROWS if r.topic != "p2"]
    (overall,) = score_rows(shallow, [], depth=5, clusters=False)
    assert (overall.hit10, overall.mrr10) == (None, None)
    assert overall.hit5.numerator == overall.mrr_conditional.n == 3
    with pytest.raises(ValueError, match="p2: a rank beyond the depth of 5"):
        score_rows(ROWS, [], depth=5, clusters=False)
    with pytest.raises(ValueError, match="no Hit@5"):
        score_rows(shallow, [], depth=3, clusters=False)


def test_a_topic_counts_once():
    with pytest.raises(ValueError, match="counted twice"):
        score_rows([row("e1", 1), row("e1", 1)], [], depth=10, clusters=False)


def test_an_empty_class_has_no_number():
    _, empty = score_rows(ROWS, ["third-party"], depth=10, clusters=False)
    assert (empty.n, empty.hit1.value, empty.mrr10.value, empty.mrr_conditional.value) == (0, None, None, None)


def test_all_perfect_keeps_an_interval():
    (overall,) = score_rows([row(f"t{i}", 1) for i in range(6)], [], depth=10, clusters=False)
    assert overall.mrr10.value == 1.0
    assert overall.mrr10.low == overall.hit1.low < 0.65
    assert overall.mrr10.high == 1.0


def test_intervals_over_stores_are_wider_where_stores_differ():
    rows = [row(f"{s}-{i}", 1 if s < 4 else 8, store=f"s{s}") for s in range(8) for i in range(20)]
    (nested,) = score_rows(rows, [], depth=10, clusters=True)
    (flat,) = score_rows(rows, [], depth=10, clusters=False)
    assert nested.mrr10.value == flat.mrr10.value
    assert nested.mrr10.high - nested.mrr10.low > 2 * (flat.mrr10.high - flat.mrr10.low)
    assert "8 clusters" in nested.mrr10.method
    assert nested == score_rows(list(reversed(rows)), [], depth=10, clusters=True)[0]
