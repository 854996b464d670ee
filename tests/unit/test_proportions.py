"""Proportions: published Wilson values, id checks, nested repeats, and no number without a denominator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lab.statistics.cluster import cluster_interval, wilson
from lab.statistics.proportions import Proportion, bounds, proportion


def of(k: int, n: int, **more) -> Proportion:
    ids = [f"t{i}" for i in range(n)]
    return proportion(ids[:k], ids, name="persisted", of="reached attack trials", **more)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 60, 0, 6.0),
        (0, 126, 0, 3.0),
        (6, 126, 2.2, 10.0),
        (126, 126, 97.0, 100),
        (20, 20, 83.9, 100),
        (3, 20, 5.2, 36.0),
        (5, 8, 30.6, 86.3),
        (0, 7, 0, 35.4),
        # R. G. Newcombe (1998), Statistics in Medicine 17:857-872, table I, method 3
        (81, 263, 25.5, 36.6),
        (15, 148, 6.2, 16.0),
        (0, 20, 0, 16.1),
        (1, 29, 0.6, 17.2),
    ],
)
def test_wilson_matches_published_values(k, n, low, high):
    rate = of(k, n)
    assert round(100 * rate.low, 1) == low
    assert round(100 * rate.high, 1) == high
    assert rate.method == "wilson"


def test_text_names_the_denominator():
    assert of(12, 12).text() == "12/12 of reached attack trials, 100 % [75.8, 100]"
    assert of(6, 126).text() == "6/126 of reached attack trials, 4.8 % [2.2, 10.0]"
    assert of(0, 60).text() == "0/60 of reached attack trials, 0 % [0, 6.0]"


def test_empty_denominator_is_not_a_zero():
    rate = of(0, 0)
    assert (rate.value, rate.low, rate.high, rate.method) == (None, None, None, "")
    assert rate.text() == "0/0 of reached attack trials, n/a"


def test_extremes_that_are_not_reached_do_not_print_as_reached():
    assert of(1, 5000).text().endswith("<0.1 % [<0.1, 0.1]")
    assert of(4999, 5000).text().endswith(">99.9 % [99.9, >99.9]")


@pytest.mark.parametrize("blank", ["", "   "])
def test_a_name_is_required(blank):
    with pytest.raises(ValidationError):
        proportion([], ["a"], name="x", of=blank)
    with pytest.raises(ValidationError):
        proportion([], ["a"], name=blank, of="y")


def test_numerator_must_be_within_the_denominator():
    with pytest.raises(ValueError, match="not in the denominator"):
        proportion(["b"], ["a"], name="x", of="y")


@pytest.mark.parametrize(("above", "below"), [(["a", "a"], ["a", "b"]), (["a"], ["a", "b", "b"])])
def test_ids_are_counted_once(above, below):
    with pytest.raises(ValueError, match="twice"):
        proportion(above, below, name="x", of="y")


def test_every_id_needs_a_unit():
    with pytest.raises(ValueError, match="no unit"):
        proportion([], ["a"], name="x", of="y", clusters={"b": "s"})


def test_a_damaged_proportion_is_noticed():
    with pytest.raises(ValidationError):
        Proportion(name="x", of="y", numerator=0, denominator=0, value=0.0, low=0, high=0, method="wilson")
    with pytest.raises(ValidationError):
        Proportion(name="x", of="y", numerator=2, denominator=1, value=2, low=0, high=1, method="wilson")


@given(st.integers(0, 400), st.integers(0, 400))
def test_wilson_invariants(a, b):
    k, n = min(a, b), max(a, b)
    rate = of(k, n)
    if n == 0:
        assert "n/a" in rate.text()
        return
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert rate.low < rate.high
    mirror = of(n - k, n)
    assert rate.low == pytest.approx(1 - mirror.high, abs=2e-6)
    assert (rate.low == 0) == (k == 0)
    assert (rate.high == 1) == (k == n)


CLUSTERS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=12)


@given(CLUSTERS, st.randoms())
def test_nested_interval_invariants(raw, random):
    counts = {f"s{i}": (min(k, n), n) for i, (k, n) in enumerate(raw)}
    ids = {f"{s}-{j}": s for s, (_, n) in counts.items() for j in range(n)}
    hits = [f"{s}-{j}" for s, (k, _) in counts.items() for j in range(k)]
    order = list(ids)
    random.shuffle(order)
    rate = proportion(hits, order, name="x", of="y", clusters=ids)
    again = proportion(reversed(hits), sorted(ids), name="x", of="y", clusters=ids)
    assert rate == again
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert rate.low < rate.high
    pooled = wilson(len(hits), len(ids))
    assert rate.low <= pooled[0] + 2e-6
    assert rate.high >= pooled[1] - 2e-6


def test_single_repeats_stay_wilson_with_units_given():
    units = {f"t{i}": f"s{i}" for i in range(10)}
    assert of(3, 10, clusters=units) == of(3, 10)


def test_repeats_widen_the_interval_and_the_method_is_named():
    ids = {f"s{i}-{j}": f"s{i}" for i in range(12) for j in range(5)}
    hits = [key for key in ids if int(key[1:].split("-")[0]) < 4]
    nested = proportion(hits, ids, name="x", of="y", clusters=ids)
    assert "cluster bootstrap over 12 scenarios" in nested.method
    low, high = wilson(len(hits), len(ids))
    assert nested.high - nested.low > 1.5 * (high - low)


@pytest.mark.parametrize("k", [0, 5])
def test_all_alike_keeps_an_interval_of_the_scenarios(k):
    found = cluster_interval({f"s{i}": (k, 5) for i in range(12)})
    assert (found.low, found.high) == wilson(12 if k else 0, 12)
    assert "wilson over 12 scenarios" in found.method


def test_a_change_of_seed_hardly_moves_the_interval():
    counts = {f"s{i}": (i % 4, 4) for i in range(20)}
    a, b = cluster_interval(counts, seed=1), cluster_interval(counts, seed=2)
    assert a.low == pytest.approx(b.low, abs=0.02)
    assert cluster_interval(counts) == cluster_interval(counts)


@pytest.mark.parametrize("counts", [{}, {"s": (0, 0)}, {"s": (2, 1)}])
def test_impossible_clusters_are_refused(counts):
    with pytest.raises(ValueError, match="cluster"):
        cluster_interval(counts)


def test_bounds_count_the_unknown_both_ways():
    found = bounds(of(9, 10), 5)
    assert (found.low, found.high, found.unknown) == (0.6, round(14 / 15, 6), 5)
    assert found.text() == "60.0 % to 93.3 % with 5 unknown counted against and for"
    assert bounds(of(0, 0), 0).text() == "n/a"
    assert (bounds(of(0, 0), 2).low, bounds(of(0, 0), 2).high) == (0, 1)
