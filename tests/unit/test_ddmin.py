"""Delta debugging against oracles whose smallest answers are known, and the bound of its calls."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.contamination.minimise.ddmin import ddmin


class Asked:
    """Remembers what an oracle was asked."""

    def __init__(self, shows) -> None:
        self.shows, self.calls, self.shown = shows, [], None

    def __call__(self, kept: Sequence[int]) -> bool:
        self.calls.append(list(kept))
        if self.shows(kept):
            self.shown = list(kept)
            return True
        return False


@given(st.integers(0, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(n - 1, 0)), max_size=n))))
def test_a_monotone_oracle_gives_exactly_what_is_needed(given: tuple[int, set[int]]) -> None:
    size, needed = given
    needed &= set(range(size))
    asked = Asked(lambda kept: needed <= set(kept))
    assert ddmin(range(size), asked) == sorted(needed)
    assert len(asked.calls) <= size * size + 3 * size + 1, "the paper's bound, and one for the empty part"


@given(st.integers(1, 14), st.integers(0, 2**32), st.integers(2, 6))
def test_any_oracle_gives_a_part_of_which_nothing_single_can_go(size: int, salt: int, rarity: int) -> None:
    """An oracle without rhyme or reason, but the same for the same part: it shows the whole, and some parts of it."""

    def shows(kept: Sequence[int]) -> bool:
        told = hashlib.sha256(f"{salt}:{list(kept)}".encode()).digest()[0]
        return len(kept) == size or told % rarity == 0

    asked = Asked(shows)
    left = ddmin(range(size), asked)
    assert shows(left)
    assert all(not shows([other for other in left if other != one]) for one in left)
    assert left == sorted(left)
    assert asked.shown in (None, left), "what was shown last is what it ends with"
    assert all(len(call) < size for call in asked.calls), "the whole is not asked again"


def test_what_can_all_go_costs_one_call() -> None:
    asked = Asked(lambda _: True)
    assert ddmin(range(100), asked) == []
    assert len(asked.calls) == 1


def test_one_of_many_is_found_in_a_logarithmic_number_of_calls() -> None:
    asked = Asked(lambda kept: 700 in kept)
    assert ddmin(range(1024), asked) == [700]
    assert len(asked.calls) <= 2 * 10 + 2


def test_two_that_are_needed_together_are_kept_far_apart() -> None:
    assert ddmin(range(64), lambda kept: {3, 60} <= set(kept)) == [3, 60]


def test_a_part_that_is_not_minimal_is_seen_by_the_check() -> None:
    """The check of the property above, on a planted answer that is too large."""
    left = [3, 4]
    assert not all(3 not in [other for other in left if other != one] for one in left)


def test_what_the_oracle_raises_ends_the_search() -> None:
    class Enough(Exception):
        pass

    def shows(_: Sequence[int]) -> bool:
        raise Enough

    with pytest.raises(Enough):
        ddmin([1, 2], shows)
