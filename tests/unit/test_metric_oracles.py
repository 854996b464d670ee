"""Our measures against pytrec_eval and ranx, fed with score = −rank so that no tie exists; their traps as our tests."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lab.errors import SystemFailed
from lab.retrieval.metrics.ranks import RankCounts, first_relevant_ranks
from lab.retrieval.metrics.ties import ranked

Run = tuple[list[list[str]], list[frozenset[str]]]


def figures(rankings, relevant) -> tuple[float, ...]:
    counts = RankCounts.of(first_relevant_ranks(rankings, relevant))
    return (*(counts.hits(k) / counts.n for k in (1, 5, 10)), float(counts.mrr))


def random_run(seed: int, topics: int = 60) -> Run:
    """Rankings of different length, some empty, with one to four relevant facts that may be anywhere or nowhere."""
    draw = random.Random(seed)
    facts = [f"d{i}" for i in range(draw.randint(12, 80))]
    rankings = [draw.sample(facts, draw.choice([0, 1, 5, 10, 10, 12])) for _ in range(topics)]
    return rankings, [frozenset(draw.sample(facts, draw.randint(1, 4))) for _ in range(topics)]


def as_dictionaries(rankings, relevant):
    qrels = {f"q{i}": dict.fromkeys(sorted(ids), 1) for i, ids in enumerate(relevant)}
    run = {f"q{i}": {fact: -float(r) for r, fact in enumerate(hits)} for i, hits in enumerate(rankings)}
    return qrels, run


def by_pytrec(qrels, run) -> dict[str, dict[str, float]]:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed (extra: test)")
    return pytrec_eval.RelevanceEvaluator(qrels, {"success.1,5,10", "recip_rank"}).evaluate(run)


@pytest.mark.parametrize("seed", range(40))
def test_equal_to_pytrec_eval(seed):
    rankings, relevant = random_run(seed)
    # It has no cutoff for the reciprocal rank, so it gets only ten hits.
    topics = by_pytrec(*as_dictionaries([hits[:10] for hits in rankings], relevant))
    theirs = [
        sum(t[name] for t in topics.values()) / len(relevant) for name in ("success_1", "success_5", "success_10")
    ]
    theirs.append(sum(t["recip_rank"] for t in topics.values()) / len(relevant))
    assert figures(rankings, relevant) == pytest.approx(theirs, abs=1e-12)


def test_equal_to_ranx():
    # All runs in one call: its compilation takes most of a minute of processor time on a new machine.
    ranx = pytest.importorskip("ranx", reason="ranx is not installed (extra: test)")
    runs = [random_run(seed) for seed in range(100, 140)]
    rankings = [hits for run in runs for hits in run[0]]
    relevant = [ids for run in runs for ids in run[1]]
    qrels, run = as_dictionaries(rankings, relevant)
    names = ["hit_rate@1", "hit_rate@5", "hit_rate@10", "mrr@10"]
    found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), names)
    assert figures(rankings, relevant) == pytest.approx([found[name] for name in names], abs=1e-12)


# Their traps. The oracle's own answer is asserted beside ours where it is what we must not do.


def test_ties_do_not_depend_on_anybodys_sorting():
    ids = list(range(50))
    for relevant_fact, rank in ((0, 1), (10, 11), (49, 50)):
        for arrival in (ids, ids[::-1], ids[25:] + ids[:25]):
            order = [arrival[i] for i in ranked(arrival, np.full(50, 0.5), 50)]
            assert first_relevant_ranks([order], [{relevant_fact}]).tolist() == [rank]
    # pytrec_eval puts the id that sorts last first.
    assert by_pytrec({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}})["q"]["success_1"] == 0


def test_a_topic_missing_from_the_run_counts_zero():
    relevant = [frozenset({"a"}), frozenset({"b"})]
    assert figures([["a"], []], relevant) == (0.5, 0.5, 0.5, 0.5)
    # pytrec_eval drops it: the mean over what it returns would be 1.
    assert list(by_pytrec({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0}})) == ["q1"]


def test_an_empty_ranking_counts_zero():
    assert figures([[], ["x", "a"]], [frozenset("a"), frozenset("a")]) == (0, 0.5, 0.5, 0.25)


def test_scores_a_billionth_apart_are_a_tie_by_rule_and_not_by_accident():
    # In float32, as pytrec_eval keeps them, they are equal as well, but then its order of ties decides.
    near = [0.0163934426, 0.0163934431]
    assert ranked([4, 9], near, 2).tolist() == ranked([4, 9], near[::-1], 2).tolist() == [0, 1]
    assert ranked([4, 9], [0.016393, 0.016395], 2).tolist() == [1, 0]


def test_float32_scores_give_the_same_order_as_float64():
    scores = np.random.default_rng(1).normal(size=400).round(5)
    ids = np.arange(400)
    assert ranked(ids, scores.astype(np.float32), 20).tolist() == ranked(ids, scores, 20).tolist()


def test_nan_on_the_relevant_fact_is_refused():
    with pytest.raises(SystemFailed):
        ranked([1, 2], [0.9, float("nan")], 2)


def test_first_relevant_at_rank_15_gives_no_reciprocal_rank():
    hits = [f"d{i}" for i in range(1, 21)]
    assert figures([hits], [frozenset({"d15"})]) == (0, 0, 0, 0)
    topics = by_pytrec(*as_dictionaries([hits], [frozenset({"d15"})]))
    assert topics["q0"]["recip_rank"] == pytest.approx(1 / 15)
