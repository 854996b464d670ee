"""Difference of paired rates against brute force: interval, design effect, pairs needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from lab.statistics.cluster import wilson
from lab.statistics.paired import mcnemar_exact
from lab.statistics.paired_rates import design_effect, pairs_needed, score_interval


def score(gained: int, lost: int, n: int, difference: float) -> float:
    """Tango's statistic with the restricted likelihood maximised by search instead of by his formula."""

    def unlikely(only_first: float) -> float:
        cells = (
            (lost, only_first),
            (gained, only_first + difference),
            (n - gained - lost, 1 - 2 * only_first - difference),
        )
        return -sum(count * math.log(max(p, 1e-300)) for count, p in cells if count)

    ends = max(0.0, -difference), (1 - difference) / 2
    only_first = minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-13}).x
    spread = n * (2 * only_first + difference * (1 - difference))
    return float((gained - lost - n * difference) / math.sqrt(spread))


@pytest.mark.parametrize(("gained", "lost", "n"), [(12, 2, 50), (3, 9, 40), (5, 5, 60), (1, 2, 200), (7, 3, 10)])
def test_the_bounds_are_where_the_score_is_at_its_limit(gained, lost, n):
    low, high = score_interval(gained, lost, n)
    z = norm.isf(0.025)
    assert score(gained, lost, n, low) == pytest.approx(z, rel=1e-4)
    assert score(gained, lost, n, high) == pytest.approx(-z, rel=1e-4)
    assert score_interval(lost, gained, n) == pytest.approx((-high, -low))


def test_no_pair_that_differs_is_no_certainty():
    assert score_interval(0, 0, 100) == pytest.approx((-wilson(0, 100)[1], wilson(0, 100)[1]), abs=1e-6)
    assert score_interval(20, 0, 20)[1] == 1.0
    assert 0.6 < score_interval(20, 0, 20)[0] < 1.0


@given(st.integers(1, 60), st.data())
def test_the_interval_holds_its_value_and_stays_on_the_scale(n, data):
    gained = data.draw(st.integers(0, n))
    lost = data.draw(st.integers(0, n - gained))
    low, high = score_interval(gained, lost, n)
    assert -1 <= low <= (gained - lost) / n <= high <= 1
    assert low < high


def test_the_interval_covers_the_truth_as_often_as_it_says():
    draw = np.random.default_rng(3)
    for gain, loss, n in ((0.10, 0.05, 40), (0.02, 0.02, 80), (0.4, 0.1, 30)):
        counts = draw.multinomial(n, [gain, loss, 1 - gain - loss], size=1500)
        kept = [low <= gain - loss <= high for low, high in (score_interval(g, k, n) for g, k, _ in counts)]
        assert 0.93 <= np.mean(kept) <= 1


@pytest.mark.parametrize("counts", [(0, 0, 0), (3, 3, 5), (-1, 0, 5)])
def test_counts_that_cannot_be(counts):
    with pytest.raises(ValueError, match="pairs differ"):
        score_interval(*counts)


def test_repeats_that_all_say_the_same_are_one():
    changes = [1, 1, 1, 0, 0, 0, -1, -1, -1, 0, 0, 0]
    assert design_effect(changes, list("aaabbbcccddd")) == 3
    assert design_effect(changes, [str(i) for i in range(12)]) == 1
    assert design_effect([0] * 12, list("aaabbbcccddd")) == 3, "nothing can be estimated: the worst is taken"
    assert design_effect([1, 0, -1], list("aaa")) == 3


def test_independent_repeats_lose_nothing():
    draw = np.random.default_rng(4)
    effects = [
        design_effect(draw.choice([-1, 0, 1], p=[0.1, 0.8, 0.1], size=400), [f"u{i // 4}" for i in range(400)])
        for _ in range(40)
    ]
    assert 1 <= np.mean(effects) < 1.15


@pytest.mark.parametrize(("gain", "loss"), [(0.25, 0.10), (0.15, 0.0), (0.4, 0.2)])
def test_the_pairs_needed_show_a_difference_four_times_in_five(gain, loss):
    n = pairs_needed(round(20 * gain), round(20 * loss), 20, margin=0.02, alpha=0.05)
    draw = np.random.default_rng(5)
    counts = draw.multinomial(n, [gain, loss, 1 - gain - loss], size=1200)
    shown = [mcnemar_exact(k, g) < 0.05 for g, k, _ in counts]
    assert 0.68 <= np.mean(shown) <= 0.9  # the exact test is a little less powerful than the formula


@pytest.mark.parametrize("discordant", [0.02, 0.1])
def test_the_pairs_needed_show_that_there_is_none_four_times_in_five(discordant):
    n = pairs_needed(50 * discordant, 50 * discordant, 100, margin=0.05, alpha=0.05)
    draw = np.random.default_rng(6)
    counts = draw.multinomial(n, [discordant / 2, discordant / 2, 1 - discordant], size=800)
    intervals = [score_interval(g, k, n) for g, k, _ in counts]
    assert 0.7 <= np.mean([low > -0.05 and high < 0.05 for low, high in intervals]) <= 0.95


def test_more_is_needed_than_there_was():
    assert pairs_needed(0, 0, 10, margin=0.05, alpha=0.05) == 73
    n = 73
    assert score_interval(0, 0, n)[1] < 0.05 < score_interval(0, 0, n - 1)[1]
    assert pairs_needed(3, 0, 3, margin=0.05, alpha=0.05) == 6, "five of five are no exact proof, six of six are"
    assert mcnemar_exact(0, 6) < 0.05 < mcnemar_exact(0, 5)
    assert pairs_needed(0, 0, 500, margin=0.05, alpha=0.05) == 501
