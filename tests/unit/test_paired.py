"""Means and paired comparisons against brute force, published values and each other."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap

from lab.statistics.cluster import wilson
from lab.statistics.means import mean_interval
from lab.statistics.paired import holm, mcnemar_exact, paired_bootstrap


@pytest.mark.parametrize(("b", "c"), [(0, 5), (1, 6), (3, 3), (10, 2), (2, 10), (175, 120)])
def test_mcnemar_is_the_binomial_tail_counted_by_hand(b, c):
    n, least = b + c, min(b, c)
    tail = sum(math.comb(n, i) for i in range(least + 1)) / 2**n
    assert mcnemar_exact(b, c) == pytest.approx(min(1.0, 2 * tail), rel=1e-9)


def test_mcnemar_without_a_discordant_pair():
    assert mcnemar_exact(0, 0) == 1.0


def test_mcnemar_is_the_exact_sign_flip_test():
    signs = [1] * 7 + [-1] * 2
    observed = abs(sum(signs))
    flips = [abs(sum(f)) >= observed for f in product((1, -1), repeat=len(signs))]
    assert mcnemar_exact(7, 2) == pytest.approx(sum(flips) / len(flips))


def test_holm_on_a_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.4, 0.9]) == pytest.approx((0.8, 0.9))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p):
    adjusted = holm(p)
    alpha = 0.05
    order = sorted(range(len(p)), key=lambda i: p[i])
    rejected = set()
    for step, i in enumerate(order):
        if p[i] * (len(p) - step) > alpha:
            break
        rejected.add(i)
    assert {i for i, value in enumerate(adjusted) if value <= alpha} == rejected
    assert all(a >= b for a, b in zip(adjusted, p, strict=True))
    assert max(adjusted) <= 1


def test_bootstrap_agrees_with_scipy():
    draw = np.random.default_rng(5)
    ranks = 1 / np.arange(1, 11)
    first, second = draw.choice(ranks, 300), draw.choice(ranks[:4], 300)
    ours = paired_bootstrap(first, second)
    theirs = bootstrap(
        (first, second),
        lambda a, b, axis=-1: np.mean(a - b, axis=axis),
        paired=True,
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)
    assert ours == paired_bootstrap(first, second)


def test_clusters_are_drawn_whole():
    # Ten stores: in five the first system always wins, in five the second. Topics say little, stores even less.
    first = np.repeat([1.0, 0.0], 100)
    second = 1 - first
    stores = [f"s{i // 20}" for i in range(200)]
    flat, nested = paired_bootstrap(first, second), paired_bootstrap(first, second, clusters=stores)
    assert nested.high - nested.low > 3 * (flat.high - flat.low)
    draw = np.random.default_rng(9)
    means = [(first - second).reshape(10, 20)[draw.integers(0, 10, 10)].mean() for _ in range(4000)]
    assert (nested.low, nested.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.11)


def test_few_clusters_never_narrow_an_interval():
    # Three clusters nearly alike: over them alone there would be almost no spread.
    values = [float(i < ones) for ones in (29, 30, 31) for i in range(60)]
    flat, nested = mean_interval(values), mean_interval(values, clusters=[f"c{i // 60}" for i in range(180)])
    assert (nested.low, nested.high) == (flat.low, flat.high)
    assert flat.high - flat.low > 0.1


def test_no_spread_is_no_certainty():
    all_one = mean_interval([1.0] * 12)
    assert (all_one.low, all_one.high) == (round(wilson(12, 12)[0], 6), 1.0)
    alike = paired_bootstrap([0.5] * 40, [0.5] * 40)
    assert alike.low == -alike.high == -round(wilson(0, 40)[1], 6)
    shifted = paired_bootstrap([1.0] * 40, [0.5] * 40)
    assert 0 < shifted.low < 0.5 < shifted.high < 1


def test_the_interval_covers_the_truth_as_often_as_it_says():
    draw = np.random.default_rng(11)
    values, weights = np.array([0, 0.1, 0.2, 0.5, 1.0]), np.array([0.3, 0.1, 0.1, 0.2, 0.3])
    truth = float(values @ weights)
    covered = 0
    for seed in range(300):
        interval = mean_interval(draw.choice(values, 73, p=weights), seed=seed, resamples=500)
        covered += interval.low <= truth <= interval.high
    assert 0.91 <= covered / 300 <= 0.985


@pytest.mark.parametrize("values", [[], [1.2], [math.nan], [-0.1]])
def test_values_must_lie_on_the_scale(values):
    with pytest.raises(ValueError, match="values within"):
        mean_interval(values)


def test_both_sides_must_be_paired():
    with pytest.raises(ValueError, match="not paired"):
        paired_bootstrap([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="needs a cluster"):
        mean_interval([1.0, 0.0], clusters=["a"])
