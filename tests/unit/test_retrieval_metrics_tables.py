"""Baselines against simulation and brute force; noise, the gate's table and comparisons on planted rows."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import permutations

import pytest

from lab.errors import InputError
from lab.retrieval.metrics.baselines import baselines, constant_list, expected_mrr, missed
from lab.retrieval.metrics.compare import compare_arms
from lab.retrieval.metrics.noise import gate_rows, noise
from lab.retrieval.metrics.ranks import RankCounts, first_relevant_ranks
from lab.retrieval.rows import HitRow, TopicRow
from lab.retrieval.testset import Fact, TestSet, Topic

# Baselines


def made_set(stores: dict[str, int], topics: dict[str, tuple[str, list[int]]]) -> TestSet:
    """Stores by number of facts; topics by store and numbers of the facts that answer them."""
    return TestSet(
        name="made",
        stores={s: tuple(Fact(id=f"{s}{i}", text="x") for i in range(n)) for s, n in stores.items()},
        topics=tuple(Topic(id=t, text="?", store=s) for t, (s, _) in topics.items()),
        qrels={t: frozenset(f"{s}{i}" for i in ids) for t, (s, ids) in topics.items()},
    )


def test_a_random_order_by_hand():
    assert missed(1, 20)[10] == Fraction(1, 2)
    assert missed(3, 5)[1:4] == (Fraction(2, 5), Fraction(1, 10), 0)
    assert expected_mrr(1, 4) == (1 + Fraction(1, 2) + Fraction(1, 3) + Fraction(1, 4)) / 4
    assert expected_mrr(1, 100) == sum(Fraction(1, r) for r in range(1, 11)) / 100
    assert expected_mrr(4, 4) == 1
    assert len(missed(1, 3)) == 11


@pytest.mark.parametrize(("relevant", "pool"), [(1, 3), (2, 5), (3, 6)])
def test_a_random_order_is_the_mean_over_all_orders(relevant, pool):
    orders = list(permutations(range(pool)))
    counts = RankCounts.of(first_relevant_ranks(orders, [set(range(relevant))] * len(orders)))
    assert expected_mrr(relevant, pool) == counts.mrr
    assert [1 - p for p in missed(relevant, pool)][1:] == [Fraction(counts.hits(k), counts.n) for k in range(1, 11)]


def test_the_random_ranker_agrees_with_a_simulation():
    testset = made_set(
        {"a": 40, "b": 7},
        {"t0": ("a", [5]), "t1": ("a", [3]), "t2": ("a", [1, 2, 9]), "t3": ("b", [0]), "none": ("b", [])},
    )
    found = baselines(testset)[0]
    draw = random.Random(4)
    topics = [t for t in testset.topics if testset.answerable(t)]
    rankings, relevant = [], []
    for _ in range(6000):
        for topic in topics:
            facts = [fact.id for fact in testset.stores[topic.store]]
            rankings.append(draw.sample(facts, min(10, len(facts))))
            relevant.append(testset.qrels[topic.id])
    counts = RankCounts.of(first_relevant_ranks(rankings, relevant))
    simulated = [counts.hits(k) / counts.n for k in (1, 5, 10)] + [float(counts.mrr)]
    assert [found.hit1, found.hit5, found.hit10, found.mrr10] == pytest.approx(simulated, abs=0.01)
    assert found.name == "random ranker"


def test_the_constant_answer_serves_each_store_with_its_best_list():
    testset = made_set(
        {"a": 30, "b": 30},
        {
            **{f"x{i}": ("a", [7]) for i in range(6)},
            **{f"y{i}": ("a", [8]) for i in range(3)},
            "z": ("b", [1]),
            "none": ("b", []),
        },
    )
    constant = baselines(testset)[1]
    assert constant.name == "constant answer"
    assert (constant.hit1, constant.hit5, constant.hit10) == (0.7, 1.0, 1.0)
    assert constant.mrr10 == 0.85


def test_a_set_without_answers_has_no_baseline():
    assert baselines(made_set({"a": 3}, {"t": ("a", [])})) == ()


def measure(order, relevant) -> tuple[int, int, Fraction]:
    counts = RankCounts.of(first_relevant_ranks([order] * len(relevant), relevant))
    return counts.hits(1), counts.hits(2), counts.reciprocal_sum


@pytest.mark.parametrize("seed", range(12))
def test_the_constant_list_is_the_best_where_each_topic_has_one_answer(seed):
    draw = random.Random(seed)
    relevant = [frozenset(draw.choice("aabcde")) for _ in range(9)]
    best = [max(values) for values in zip(*(measure(order, relevant) for order in permutations("abcde")), strict=True)]
    assert list(measure(constant_list(relevant), relevant)) == best


@pytest.mark.parametrize("seed", range(12))
def test_with_several_answers_the_constant_list_is_near_the_best(seed):
    draw = random.Random(seed)
    relevant = [frozenset(draw.sample("abcde", draw.randint(1, 3))) for _ in range(9)]
    best = [max(values) for values in zip(*(measure(order, relevant) for order in permutations("abcde")), strict=True)]
    found = measure(constant_list(relevant), relevant)
    assert found[0] == best[0]
    assert found[1] >= (1 - 1 / math.e) * best[1]


def test_the_greedy_list_can_be_beaten_as_the_docstring_says():
    relevant = [frozenset(ids) for ids in ("ab", "ab", "ac", "ac", "b", "c")]
    assert measure(constant_list(relevant), relevant)[1] < measure("bc", relevant)[1] == 6


# Noise and gate


def row(topic: str, *, rank: int | None = None, hits: int = 5, answerable: bool = True, **more) -> TopicRow:
    found = tuple(HitRow(fact=f"f{i}", score=1.0) for i in range(hits))
    values = {"topic_class": "exact", "store": "main"} | more
    return TopicRow(topic=topic, answerable=answerable, rank=rank, hits=found, **values)


NOISE_ROWS = [
    row("a1", rank=1, confidence=0.9),
    row("a2", rank=3, confidence=0.8),
    row("a3", rank=7, hits=10, confidence=0.7),
    row("a4", rank=None, hits=0, confidence=0.6),
    row("n1", answerable=False, hits=10, confidence=0.7),
    row("n2", answerable=False, hits=3, confidence=0.5),
    row("n3", answerable=False, hits=0, confidence=0.5),
    row("n4", answerable=False, hits=5, error="timeout"),
]


def test_noise_is_counted_over_topics_without_an_answer():
    found = noise(NOISE_ROWS, 5)
    assert (found.injected.numerator, found.injected.denominator) == (2, 3)
    assert found.mean_injected == round(8 / 3, 6)
    assert found.depth == 5


def test_auroc_counts_ties_half():
    # 12 pairs: n2 and n3 are below all four; n1 is below a1 and a2, equal to a3, above a4.
    assert noise(NOISE_ROWS, 5).auroc == round((4 + 4 + 2.5) / 12, 6)


def test_the_curve_falls_with_the_threshold():
    curve = noise(NOISE_ROWS, 5).curve
    assert [p.threshold for p in curve] == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert [p.noise for p in curve] == [round(2 / 3, 6), round(1 / 3, 6), round(1 / 3, 6), 0, 0]
    assert [p.kept for p in curve] == [0.75, 0.75, 0.75, 0.5, 0.25]
    assert [p.hit5 for p in curve] == [0.5, 0.5, 0.5, 0.5, 0.25]


def test_what_was_never_compared_cannot_be_held_back():
    rows = [*NOISE_ROWS, row("n5", answerable=False), row("a5", rank=1)]
    last = noise(rows, 5).curve[-1]
    assert (last.noise, last.kept, last.hit5) == (0.25, 0.4, 0.4)
    assert noise(rows, 5).auroc == noise(NOISE_ROWS, 5).auroc


def test_without_an_embedding_there_is_no_curve():
    found = noise([row("a", rank=1), row("n", answerable=False)], 5)
    assert (found.auroc, found.curve) == (None, ())
    assert found.injected.numerator == 1


def test_a_set_without_such_topics_has_no_table():
    assert noise([row("a", rank=1)], 5) is None


def test_the_curve_stays_short_and_keeps_its_ends():
    draw = random.Random(1)
    rows = [row(f"t{i}", answerable=i % 3 > 0, rank=None, confidence=draw.random()) for i in range(400)]
    curve = noise(rows, 5).curve
    seen = sorted(round(r.confidence, 6) for r in rows)
    assert len(curve) == 50
    assert (curve[0].threshold, curve[-1].threshold) == (seen[0], seen[-1])
    assert {p.threshold for p in curve} <= set(seen)
    assert curve == noise(list(reversed(rows)), 5).curve


def test_the_gate_by_class():
    rows = [
        row("n1", answerable=False, topic_class="chit-chat", coverage=0.0, channels=("lexical", "dense")),
        row("e1", coverage=1.0, channels=("lexical",)),
        row("e2", coverage=0.5, channels=("lexical", "dense")),
        row("p1", topic_class="paraphrase", coverage=0.2, channels=("lexical",), fallback="timeout"),
        row("p2", topic_class="paraphrase", coverage=0.2, error="crashed"),
    ]
    found = [(g.topic_class, g.n, g.mean_coverage, g.opened) for g in gate_rows(rows)]
    assert found == [("exact", 2, 0.75, 1), ("paraphrase", 1, 0.2, 1), ("no-answer", 1, 0.0, 1)]
    assert gate_rows([row("e1", channels=("dense",))]) == ()


# Comparison


def arm(ranks: list[int | None], **changes) -> list[TopicRow]:
    return [row(f"t{i:03}", rank=rank, **changes) for i, rank in enumerate(ranks)]


GOOD, BAD = [1] * 60 + [2] * 40, [1] * 30 + [2] * 30 + [1] * 4 + [None] * 36


def test_a_clear_difference_has_a_verdict_both_ways():
    arms = {"good": arm(GOOD), "bad": arm(BAD)}
    better, worse = compare_arms(arms, [("good", "bad"), ("bad", "good")])
    assert (better.n, better.only_first, better.only_second, better.verdict) == (100, 30, 4, "first")
    assert (worse.only_first, worse.only_second, worse.verdict) == (4, 30, "second")
    assert better.mrr_difference.value == pytest.approx((0.8 * 100 - 49) / 100)
    assert better.mrr_difference.low > 0 > worse.mrr_difference.high
    assert better.p_hit1_holm == pytest.approx(2 * better.p_hit1)


def test_equal_arms_cannot_be_told_apart():
    (same,) = compare_arms({"a": arm(GOOD), "b": arm(GOOD)}, [("a", "b")])
    assert (same.p_hit1, same.verdict) == (1.0, "cannot tell")
    assert same.mrr_difference.low < 0 < same.mrr_difference.high


def test_one_measure_alone_is_no_verdict():
    # The MRR differs surely, Hit@1 not at all.
    (row_,) = compare_arms({"a": arm([1] * 50 + [2] * 50), "b": arm([1] * 50 + [9] * 50)}, [("a", "b")])
    assert row_.mrr_difference.low > 0
    assert row_.verdict == "cannot tell"
    # Here both point the same way, but five topics are too few for the test.
    few = compare_arms({"a": arm([1] * 5 + [2] * 50), "b": arm([2] * 5 + [9] * 50)}, [("a", "b"), ("b", "a")])
    assert few[0].only_first == 5
    assert few[0].mrr_difference.low > 0
    assert [r.verdict for r in few] == ["cannot tell"] * 2


def test_holm_is_over_the_declared_pairs():
    arms = {"a": arm([1] * 8 + [2] * 12), "b": arm([2] * 20), "c": arm([2] * 20), "d": arm([2] * 20)}
    (alone,) = compare_arms(arms, [("a", "b")])
    many = compare_arms(arms, [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")])
    assert alone.p_hit1 == alone.p_hit1_holm == 2 / 2**8
    assert many[0].p_hit1_holm == pytest.approx(6 * alone.p_hit1)
    assert [r.verdict for r in many] == ["first", "first", "first", *["cannot tell"] * 3]


def test_errors_on_either_side_leave_the_pair_out():
    a, b = arm(GOOD), arm(BAD)
    a[0] = a[0].model_copy(update={"error": "timeout"})
    b[1] = b[1].model_copy(update={"error": "timeout"})
    a.append(row("n1", answerable=False, rank=None))
    b.append(row("n1", answerable=False, rank=None))
    (found,) = compare_arms({"a": a, "b": list(reversed(b))}, [("a", "b")])
    assert found.n == found.mrr_difference.n == 98


def test_without_a_common_topic_nothing_can_be_told():
    broken = arm([None], error="timeout")
    (found,) = compare_arms({"a": broken, "b": arm([1])}, [("a", "b")])
    assert (found.n, found.mrr_difference.value, found.verdict) == (0, None, "cannot tell")


def test_stores_are_drawn_whole():
    ranks = [1] * 80 + [2] * 120
    first = [row(f"t{i}", rank=r, store=f"s{i // 40}") for i, r in enumerate(ranks)]
    second = [row(f"t{i}", rank=2, store=f"s{i // 40}") for i in range(200)]
    (found,) = compare_arms({"a": first, "b": second}, [("a", "b")])
    # Two stores of five differ: surely different over topics, not so over stores.
    assert found.p_hit1 < 1e-9
    assert "5 clusters" in found.mrr_difference.method
    assert found.verdict == "cannot tell"


def test_arms_must_be_there_and_have_the_same_topics():
    with pytest.raises(InputError, match="no arm c to compare"):
        compare_arms({"a": arm(GOOD)}, [("a", "c")])
    with pytest.raises(InputError, match="topic t099 has no row"):
        compare_arms({"a": arm(GOOD), "b": arm(GOOD[:-1])}, [("a", "b")])
