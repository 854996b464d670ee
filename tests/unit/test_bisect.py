"""The search for the build in which an outcome changed, with planted builds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.contamination.bisect import Shown, bisect
from lab.contamination.outcome import Outcome
from lab.errors import EnvironmentUnusable, InputError
from lab.records import Status, Value

APPLIED = Shown(Outcome(status=Status.VALID, persist=Value.YES))
REFUSED = Shown(Outcome(status=Status.VALID, persist=Value.NO))
ABSENT = Shown(
    Outcome(status=Status.INVALID, cause="not_in_this_build", persist=Value.NO), "this build offers no tool kanban_show"
)
FAILED = Shown(Outcome(status=Status.ERROR, cause="sandbox_timeout", persist=Value.ERROR))


def planted(shown: list[Shown]) -> tuple[list[str], list[str], object]:
    names, ran = [f"0.{n}" for n in range(len(shown))], list[str]()

    def run(name: str) -> Shown:
        ran.append(name)
        return shown[names.index(name)]

    return names, ran, run


@given(st.integers(2, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))))
def test_one_change_is_found_in_logarithmic_time(given: tuple[int, int]) -> None:
    count, first_new = given
    names, ran, run = planted([APPLIED] * first_new + [REFUSED] * (count - first_new))
    found = bisect(names, run)
    assert found.changed == (first_new - 1, first_new) and not found.silent
    assert len(ran) == len(set(ran)) <= 2 + (count - 1).bit_length()
    assert set(found.shown) == {names.index(name) for name in ran}


@given(st.lists(st.sampled_from([APPLIED, REFUSED, ABSENT]), min_size=2, max_size=30))
def test_whatever_changes_the_answer_is_two_builds_that_differ(shown: list[Shown]) -> None:
    names, _, run = planted(shown)
    if ABSENT in (shown[0], shown[-1]):
        with pytest.raises(InputError, match=r"invalid: not_in_this_build \(this build offers no tool kanban_show\)"):
            bisect(names, run)
        return
    found = bisect(names, run)
    if shown[0] == shown[-1]:
        assert found.changed is None and set(found.shown) == {0, len(shown) - 1}
        return
    assert found.changed
    first, last = found.changed
    assert shown[first] != shown[last] and ABSENT not in (shown[first], shown[last])
    assert all(one == ABSENT for one in shown[first + 1 : last])
    assert found.silent == tuple(names[first + 1 : last])


def test_both_ends_are_looked_at_first() -> None:
    names, ran, run = planted([APPLIED, APPLIED, REFUSED, REFUSED, REFUSED])
    bisect(names, run)
    assert ran[:2] == ["0.0", "0.4"]


def test_all_runs_every_build_and_finds_a_change_between_equal_ends() -> None:
    names, ran, run = planted([APPLIED, ABSENT, REFUSED, APPLIED])
    assert bisect(names, run).changed is None
    ran.clear()
    found = bisect(names, run, every=True)
    assert ran == names and found.changed == (0, 2) and found.silent == ("0.1",)


def test_an_infrastructure_error_is_no_outcome() -> None:
    names, _, run = planted([APPLIED, FAILED, REFUSED])
    with pytest.raises(EnvironmentUnusable, match=r"0\.1 ended in an error: sandbox_timeout"):
        bisect(names, run)


def test_one_build_is_too_few() -> None:
    with pytest.raises(InputError, match="between two builds"):
        bisect(["0.1"], lambda _: APPLIED)
