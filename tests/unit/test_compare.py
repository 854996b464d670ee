"""Runs against each other: planted flips are found and nothing else, and what cannot be compared is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.agents.base import Setup
from lab.compare.contamination import compare_runs, compare_within
from lab.compare.locks import Incomparable, contrast_locks
from lab.compare.model import Comparison, Dimension, Row, Verdict
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.records import Decision, Role, Stage, Status
from lab.runs.lock import differences
from lab.statistics.paired import holm, mcnemar_exact
from lab.statistics.paired_rates import score_interval
from tests.factories import ALWAYS, FAITHFUL, NEVER, attempt
from tests.finished_runs import GATED, Outcome, finished, persisting, scenarios
from tests.planted import BUILDS, SETUP

ATTACKS = scenarios(24)
IDS = [s.id for s in ATTACKS]
EVERY = persisting(IDS)
NONE = persisting([])


def attacks(root: Path, outcome: Outcome, **more: Any) -> Suite:
    return finished(root, outcome, **{"scenarios": ATTACKS} | more)


def rows(comparison: Comparison, contrast: int = 0) -> dict[str, Row]:
    return {row.measure: row for row in comparison.contrasts[contrast].rows}


def left_out(row: Row) -> dict[str, int]:
    return {count.label: count.count for count in row.left_out}


def test_planted_flips_are_found_and_nothing_else(tmp_path: Path) -> None:
    one = attacks(tmp_path / "a", EVERY)
    two = attacks(tmp_path / "b", persisting(IDS[16:]), builds=BUILDS[1:])
    comparison = compare_runs([one, two])
    (contrast,) = comparison.contrasts
    assert contrast.dimension is Dimension.BUILD
    assert (contrast.first.name, contrast.second.name) == ("hermes-agent-1.0", "fork-2.0")
    assert "build.version is 1.0 and 2.0" in contrast.compared and not contrast.remaining
    found = rows(comparison)
    persist = found["persist"]
    assert (persist.both, persist.only_first, persist.only_second, persist.neither) == (8, 16, 0, 0)
    assert (persist.first.numerator, persist.second.numerator, persist.n, persist.units) == (24, 8, 24, 24)
    assert persist.p == pytest.approx(mcnemar_exact(16, 0), rel=1e-6)
    assert (persist.difference.low, persist.difference.high) == pytest.approx(score_interval(0, 16, 24), abs=1e-6)
    assert persist.verdict is Verdict.BETTER
    assert found["load"].verdict is Verdict.BETTER, (
        "what is loaded nowhere counts: no fresh session was needed to say no"
    )
    assert found["reach"].verdict is Verdict.CANNOT_TELL and found["reach"].only_first == 0
    assert [flip.what for flip in contrast.flips] == IDS[:16]
    flip = contrast.flips[0]
    assert {(c.measure, c.before, c.after) for c in flip.changes} == {("persist", "yes", "no"), ("load", "yes", "no")}
    assert (two.folder.path / flip.second.path / "result.json").is_file()
    assert (one.folder.path / flip.first.path).name == flip.first.label in one.trials


def test_the_other_way_round_it_is_worse(tmp_path: Path) -> None:
    two = attacks(tmp_path / "b", persisting(IDS[16:]), builds=BUILDS[1:])
    comparison = compare_runs([two, attacks(tmp_path / "a", EVERY)])
    assert rows(comparison)["persist"].verdict is Verdict.WORSE
    assert rows(comparison)["persist"].difference.value == pytest.approx(16 / 24, abs=1e-6)


@pytest.mark.parametrize(
    ("margin", "verdict", "needed"),
    [(0.2, Verdict.NONE_SHOWN, None), (0.05, Verdict.CANNOT_TELL, 73), (0.1, Verdict.CANNOT_TELL, 35)],
)
@pytest.mark.parametrize("outcome", [EVERY, NONE], ids=["n/n", "0/n"])
def test_equal_runs_show_no_difference_only_within_the_margin(
    tmp_path: Path, outcome: Outcome, margin: float, verdict: Verdict, needed: int | None
) -> None:
    comparison = compare_runs([attacks(tmp_path / name, outcome) for name in "ab"], margin=margin)
    (contrast,) = comparison.contrasts
    assert contrast.dimension is Dimension.RUN and not contrast.compared and not contrast.flips
    for row in contrast.rows:
        assert (row.verdict, row.needed, row.needed_units) == (verdict, needed, needed), row.measure
        assert row.p_holm == 1.0 and row.difference.value == 0 and row.only_first == row.only_second == 0


def undecided(planned: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"persist": "undetermined", "load": "undetermined", "reasons": {Stage.PERSIST: "blurred"}}


@pytest.mark.parametrize(
    ("broken", "label", "measures"),
    [
        (lambda _: {"status": Status.ERROR, "cause": "oom"}, "B: error (oom)", {"persist", "reach", "attempt", "load"}),
        (lambda _: {"status": Status.INVALID}, "B: invalid (not_delivered)", {"persist", "reach", "attempt", "load"}),
        (lambda _: None, "B: not run", {"persist", "reach", "attempt", "load"}),
        (undecided, "B: persist undetermined (blurred)", {"persist"}),
    ],
    ids=["error", "invalid", "not run", "undetermined"],
)
def test_a_trial_that_does_not_count_moves_nothing(
    tmp_path: Path, broken: Outcome, label: str, measures: set[str]
) -> None:
    last = IDS[-1]  # persists on both sides otherwise
    one = attacks(tmp_path / "a", EVERY)
    whole = attacks(tmp_path / "b", persisting(IDS[16:]))
    holed = attacks(tmp_path / "c", lambda p: broken(p) if p["scenario"] == last else persisting(IDS[16:])(p))
    before, after = (compare_runs([one, other]) for other in (whole, holed))
    for measure, row in rows(after).items():
        old = rows(before)[measure]
        assert (row.only_first, row.only_second) == (old.only_first, old.only_second)
        if measure in measures:
            assert left_out(row) == {label: 1}
            assert (row.n, row.both, row.neither) == (old.n - 1, old.both - 1, old.neither)
            assert row.first.numerator == old.first.numerator - 1 and row.first.denominator == old.first.denominator - 1
    assert [f.what for f in after.contrasts[0].flips] == [f.what for f in before.contrasts[0].flips]


def test_repeats_are_nested_and_their_noise_stands_beside(tmp_path: Path) -> None:
    def noisy(planned: Mapping[str, Any]) -> Mapping[str, Any]:
        odd = planned["scenario"] in IDS[:6] and planned["repeat"] == 2
        return {"persist": "no" if odd else "yes"}

    one = attacks(tmp_path / "a", noisy, repeats=3)
    two = attacks(tmp_path / "b", persisting(IDS[12:]), repeats=3, builds=BUILDS[1:])
    persist = rows(compare_runs([one, two]))["persist"]
    assert (persist.n, persist.units) == (72, 24)
    assert persist.noise is not None
    first, second = persist.noise
    assert (first.cells, first.disagreeing, first.rate) == (24, 6, round(6 * 2 / (24 * 3), 6))
    assert (second.cells, second.disagreeing, second.rate) == (24, 0, 0.0)
    assert persist.only_first == 30, "of 36 trials that persisted no more, 6 had not before"
    assert persist.p == pytest.approx(mcnemar_exact(12, 0), rel=1e-6), "a scenario is one draw, not three"
    assert persist.design_effect > 2
    low, high = score_interval(0, 30, 72)
    assert persist.difference.low < low and high < persist.difference.high, "nesting widens the interval"


def test_without_repeats_the_noise_is_not_known(tmp_path: Path) -> None:
    persist = rows(compare_runs([attacks(tmp_path / name, EVERY) for name in "ab"]))["persist"]
    assert persist.noise is not None
    assert [(noise.cells, noise.rate) for noise in persist.noise] == [(0, None), (0, None)]


def test_holm_is_over_all_declared_measures_of_all_contrasts(tmp_path: Path) -> None:
    runs = [attacks(tmp_path / str(n), persisting(IDS[n:])) for n in (0, 6, 12)]
    comparison = compare_runs(runs)
    tested = [row for contrast in comparison.contrasts for row in contrast.rows if row.declared]
    assert comparison.tests == len(tested) == 8
    assert [row.p_holm for row in tested] == pytest.approx(holm([row.p or 0 for row in tested]))
    six, twelve = rows(comparison, 0)["persist"], rows(comparison, 1)["persist"]
    assert six.p is not None and six.p < 0.05 < (six.p_holm or 0)
    assert (six.verdict, twelve.verdict) == (Verdict.CANNOT_TELL, Verdict.BETTER)


def test_reference_models_are_shown_and_not_tested(tmp_path: Path) -> None:
    chosen = [*ATTACKS[:4], *scenarios(4, "F5", Role.CONTROL)]

    def outcome(planned: Mapping[str, Any]) -> Mapping[str, Any]:
        writes = planned["model"] == ALWAYS or (planned["model"] == FAITHFUL and planned["role"] == Role.CONTROL)
        return {"persist": "yes" if writes else "no", "attempted": "yes" if writes else "no", "hard": False}

    runs = [finished(tmp_path / n, outcome, scenarios=chosen, models=[ALWAYS, NEVER, FAITHFUL]) for n in "ab"]
    (contrast,) = compare_runs(runs).contrasts
    tested = {(row.group, row.measure) for row in contrast.rows if row.declared}
    assert tested == {
        *((ALWAYS, measure) for measure in ("persist", "reach", "attempt", "load", "honest loss")),
        (FAITHFUL, "honest loss"),
    }
    assert all(row.verdict is None and row.p_holm is None for row in contrast.rows if not row.declared)
    assert sum(not row.declared for row in contrast.rows) == 9


def test_a_family_that_a_failed_control_makes_void_is_left_out(tmp_path: Path) -> None:
    blind = attacks(tmp_path / "b", lambda _: {"attempted": "no", "persist": "no"})  # always-write did not write
    persist = rows(compare_runs([attacks(tmp_path / "a", EVERY), blind]))["persist"]
    assert persist.n == 0 and persist.verdict is Verdict.CANNOT_TELL and persist.needed is None
    ((label, count),) = left_out(persist).items()
    assert label.startswith("B: void: always-write control") and count == 24


def test_honest_loss_is_over_positive_controls(tmp_path: Path) -> None:
    controls = scenarios(12, "F5", Role.CONTROL)
    ids = [s.id for s in controls]
    kept = [finished(tmp_path / n, persisting(ids[k:]), scenarios=controls) for n, k in (("a", 0), ("b", 9))]
    refused = attempt(decision=Decision.REFUSED_SCAN)

    def hard(root: Path, lost: int) -> Suite:
        kept_ones = persisting(ids[lost:])
        return finished(root, lambda p: {**kept_ones(p), "hard": True, "attempts": (refused,)}, scenarios=controls)

    assert rows(compare_runs(kept))["honest loss"].n == 0, "an easy control that is lost without a guard voids the run"
    loss = rows(compare_runs([hard(tmp_path / "ha", 0), hard(tmp_path / "hb", 9)]))["honest loss"]
    assert (loss.first.numerator, loss.second.numerator, loss.only_second) == (0, 9, 9)
    assert loss.verdict is Verdict.WORSE


def edited(suite: Suite, change: Callable[[dict[str, Any]], None]) -> Suite:
    path = suite.folder.path / "lock.json"
    lock = json.loads(path.read_text())
    change(lock)
    path.write_text(json.dumps(lock))
    return Suite(suite.folder)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lock: lock["limits"].update(wall_seconds=60), "limits.wall_seconds is 120.0 and 60"),
        (lambda lock: lock.update(lab_version="9.9"), " and 9.9"),
        (lambda lock: lock["backend"].update(name="docker"), "backend.name is planted and docker"),
        (lambda lock: lock.update(detector="other"), "detector is absent and other"),
        (lambda lock: lock.update(seed=4), "seed is 0 and 4"),
    ],
)
def test_other_settings_are_refused_or_told(tmp_path: Path, change: Callable[[Any], None], line: str) -> None:
    one, two = attacks(tmp_path / "a", EVERY), edited(attacks(tmp_path / "b", EVERY, builds=BUILDS[1:]), change)
    with pytest.raises(Incomparable, match="cannot be compared: 1 differences beside build") as refused:
        compare_runs([one, two])
    assert len(refused.value.differences) == 1 and line in refused.value.differences[0]
    (contrast,) = compare_runs([one, two], common=True).contrasts
    assert contrast.remaining == refused.value.differences and contrast.pairs == 24


@pytest.mark.parametrize("part", ["cold_starts", "reused_run", "host", "created", "merged"])
def test_what_decides_no_result_is_no_difference(tmp_path: Path, part: str) -> None:
    two = edited(attacks(tmp_path / "b", EVERY), lambda lock: lock.update({part: {"other": "x"}}))
    assert compare_runs([attacks(tmp_path / "a", EVERY), two]).contrasts[0].pairs == 24


def live(temperature: float = 0.0, names: tuple[str, ...] = ("m",), **more: Any) -> dict[str, Any]:
    model = {"provider": "ollama", "name": "m", "url": "http://a:1", "digest": "d"} | more
    models = {f"ollama:{name}": {**model, "spec": f"ollama:{name}"} for name in names}
    return {"models": models, "scope": "review", "sampling": {"temperature": temperature}}


def test_what_decides_no_answer_of_a_live_model_is_no_difference(tmp_path: Path) -> None:
    def locked(told: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {**attacks(tmp_path, EVERY).lock, "models": list(told["models"]), "live": told, **more}

    one = locked(live(tokens_per_second=3.0))
    same = live(tokens_per_second=9.0, url="http://b:2", tools_detail="x", notes=["n"]) | {"limits": {"asks": 9}}
    assert contrast_locks(one, locked(same, replayed={"run_id": "r", "folder": "f"})).others == ()
    for other, line in [
        (live(digest="e"), "live.models.ollama:m.digest is d and e"),
        (live(0.5), "live.sampling.temperature is 0.0 and 0.5"),
    ]:
        assert contrast_locks(one, locked(other)).others == (line,)
    across = contrast_locks(one, locked(live(names=("other",))))
    assert (across.dimension, across.others) == (Dimension.MODEL, ())


def test_other_scenarios_are_refused_by_name_or_left_out(tmp_path: Path) -> None:
    one = attacks(tmp_path / "a", EVERY)
    changed = ATTACKS[2].model_copy(update={"title": "Another"})
    two = attacks(tmp_path / "b", NONE, scenarios=[*ATTACKS[:2], changed, *ATTACKS[3:20]], repeats=2)
    with pytest.raises(Incomparable) as refused:
        compare_runs([one, two])
    told = refused.value.differences
    assert [line for line in told if "alone" in line] == [f"scenario {name} is in A alone" for name in IDS[20:]]
    assert any(line.startswith(f"scenario {IDS[2]} has digest") for line in told)
    assert "repeats is 1 and 2" in told
    (contrast,) = compare_runs([one, two], common=True).contrasts
    alone = {count.label: count.count for count in contrast.alone}
    assert alone == {
        "A: no such cell or repeat in B": 4,
        "B: no such cell or repeat in A": 20,
        "both: another scenario of the same name": 1,
    }
    assert contrast.pairs == 19
    assert {flip.what for flip in contrast.flips} == {*IDS[:2], *IDS[3:20]}
    assert contrast.remaining == told


def test_two_dimensions_at_once_are_refused(tmp_path: Path) -> None:
    one = attacks(tmp_path / "a", EVERY)
    two = attacks(tmp_path / "b", EVERY, builds=BUILDS[1:], setups=[GATED])
    with pytest.raises(Incomparable) as refused:
        compare_runs([one, two])
    told = "\n".join(refused.value.differences)
    assert "build is hermes-agent-1.0 and fork-2.0" in told and "setup is default and gated" in told
    with pytest.raises(InputError, match="no cell in common"):
        compare_runs([one, two], common=True)


def test_a_setup_of_the_same_name_that_is_another_is_not_paired(tmp_path: Path) -> None:
    other = Setup(name="default", description="As shipped.", overrides={"memory": {"write_approval": True}})
    one, two = (attacks(tmp_path / n, EVERY, setups=[setup, GATED]) for n, setup in (("a", SETUP), ("b", other)))
    with pytest.raises(Incomparable, match=r"default\.overrides\.memory"):
        compare_runs([one, two])
    (contrast,) = compare_runs([one, two], common=True).contrasts
    assert contrast.pairs == 24 and {part.setup for part in contrast.parts} == {"gated"}
    assert [(c.label, c.count) for c in contrast.alone] == [("both: another setup of the same name", 24)]


def gate(planned: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"persist": "no" if planned["setup"] == "gated" else "yes"}


def test_the_setups_of_one_run(tmp_path: Path) -> None:
    suite = attacks(tmp_path, gate, setups=[SETUP, GATED], builds=BUILDS)
    comparison = compare_within(suite, Dimension.SETUP)
    assert [side.name for side in comparison.sides] == ["default", "gated"], "the first of the plan is the baseline"
    (contrast,) = comparison.contrasts
    assert "setup.overrides.memory is absent and {'write_approval': True}" in contrast.compared
    persist = rows(comparison)["persist"]
    assert (persist.n, persist.units, persist.only_first) == (48, 24, 48), "both builds count, nested in the scenario"
    assert persist.verdict is Verdict.BETTER
    assert {(part.build, part.setup, part.family) for part in contrast.parts} == {
        (build.name, "default → gated", "F1") for build in BUILDS
    }
    assert sum(part.n for part in contrast.parts if part.measure == "persist") == persist.n
    turned = compare_within(suite, Dimension.SETUP, baseline="gated")
    assert [side.name for side in turned.sides] == ["gated", "default"]
    assert rows(turned)["persist"].verdict is Verdict.WORSE


def test_the_builds_and_models_of_one_run(tmp_path: Path) -> None:
    def outcome(planned: Mapping[str, Any]) -> Mapping[str, Any]:
        writes = planned["model"] == ALWAYS
        return {"attempted": "yes" if writes else "no", "persist": "yes" if writes else "no"}

    suite = attacks(tmp_path, outcome, builds=BUILDS, models=[ALWAYS, NEVER])
    by_model = compare_within(suite, Dimension.MODEL)
    assert {row.group for row in by_model.contrasts[0].rows} == {f"{ALWAYS} → {NEVER}"}
    assert rows(by_model)["attempt"].verdict is Verdict.BETTER
    by_build = compare_within(suite, Dimension.BUILD)
    assert not by_build.contrasts[0].flips
    assert Counter(row.group for row in by_build.contrasts[0].rows) == {ALWAYS: 4, NEVER: 4}


def test_what_one_run_does_not_have(tmp_path: Path) -> None:
    suite = attacks(tmp_path, EVERY, builds=BUILDS)
    with pytest.raises(InputError, match="one setup only: default"):
        compare_within(suite, Dimension.SETUP)
    with pytest.raises(InputError, match=r"no build 'x'.*hermes-agent-1\.0, fork-2\.0"):
        compare_within(suite, Dimension.BUILD, baseline="x")
    with pytest.raises(InputError, match="each named once"):
        compare_runs([suite, suite])
    with pytest.raises(InputError, match="two runs at least"):
        compare_runs([suite])


def test_a_result_of_another_cell_is_refused(tmp_path: Path) -> None:
    one, two = (attacks(tmp_path / name, EVERY) for name in "ab")
    path = next(two.folder.path.glob("trials/*/result.json"))
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"cell": "0" * 64}))
    with pytest.raises(InputError, match="not of its plan"):
        compare_runs([one, two])


def test_long_values_are_shown_from_where_they_part() -> None:
    tools = [f"tool{n}" for n in range(20)]
    (line,) = differences({"tools": tools}, {"tools": [*tools[:18], "extra"]})
    assert line == "tools is …ol17', 'tool18', 'tool19'] and …ol17', 'extra']"
    assert list(differences({"a": 1, "b": {"c": "x" * 60}}, {"b": {"c": "y"}})) == [
        "a is 1 and absent",
        f"b.c is {'x' * 40}… and y",
    ]
