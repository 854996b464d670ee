"""Harness controls: each rule with a planted failure and its matched negative."""

import pytest

from lab.contamination.controls import (
    Control,
    ControlName,
    ControlVerdict,
    Scope,
    evaluate_controls,
    void_families,
)
from lab.records import Decision, Role, Stage, Status, Store, TrialResult, Value
from tests.factories import ALWAYS, FAITHFUL, NEVER, attempt, finding, quiet, result

PASSED, FAILED, NOT_RUN = ControlVerdict.PASSED, ControlVerdict.FAILED, ControlVerdict.NOT_RUN


def one(results, name: ControlName, model: str, family: str, **more) -> Control:
    found = [c for c in evaluate_controls(results, **more) if (c.name, c.family) == (name, family) and c.model == model]
    assert len(found) == 1
    return found[0]


def sound() -> list[TrialResult]:
    """A run in which every control passes."""
    return [
        result("F1-001"),
        quiet("F1-001", model=NEVER),
        quiet("F1-001", model=FAITHFUL),
        quiet("F1-001", role=Role.TWIN),
        quiet("F1-001", role=Role.TWIN, model=FAITHFUL),
        result("F5-001", role=Role.CONTROL),
        result("F5-001", role=Role.CONTROL, model=FAITHFUL),
        quiet("F5-001", role=Role.CONTROL, model=NEVER),
        hard(),
        hard(model=FAITHFUL),
    ]


def hard(**more) -> TrialResult:
    fields = {"attempts": (attempt(decision=Decision.REFUSED_SCAN),), "hard": True, "role": Role.CONTROL}
    return result("F5-009", **{"persist": "no"} | fields | more)


def scopes(results) -> list[Scope]:
    return [Scope(family=r.family, build=r.build, setup=r.setup) for r in results]


def voided(results) -> set[str]:
    return {v.family for v in void_families(evaluate_controls(results), scopes(results))}


def test_a_sound_run_passes_everything():
    controls = evaluate_controls(sound())
    assert {c.verdict for c in controls} == {PASSED}
    assert voided(sound()) == set()


# (a) always-write


@pytest.mark.parametrize("value", ["no", "undetermined", "error", "not_applicable"])
def test_a_reached_trial_without_an_attempt_fails_always_write(value):
    bad = result("F1-002", attempted=value, persist="no")
    found = one([*sound(), bad], ControlName.ALWAYS_WRITE, ALWAYS, "F1")
    assert (found.verdict, found.failing) == (FAILED, (bad.trial,))
    assert voided([*sound(), bad]) == {"F1"}


@pytest.mark.parametrize(
    "harmless",
    [
        quiet("F1-002", reach="no"),
        result("F1-002", status=Status.ERROR),
        result("F1-002", status=Status.INVALID),
        quiet("F1-002", model="ollama:qwen3"),
    ],
)
def test_what_always_write_does_not_speak_of(harmless):
    assert one([*sound(), harmless], ControlName.ALWAYS_WRITE, ALWAYS, "F1").verdict is PASSED


def test_always_write_without_a_reached_trial_is_not_run():
    found = one([quiet("F1-002", reach="no")], ControlName.ALWAYS_WRITE, ALWAYS, "F1")
    assert (found.verdict, found.trials) == (NOT_RUN, ())


# (b) never-write


@pytest.mark.parametrize(
    "bad",
    [
        quiet("F1-002", model=NEVER, attempts=(attempt(),)),
        quiet("F1-002", model=NEVER, attempts=(attempt(origin="foreground"),)),
        quiet("F1-002", model=NEVER, stores_unchanged=False),
        quiet("F1-002", model=NEVER, role=Role.TWIN, stores_unchanged=False),
    ],
)
def test_never_write_that_writes_fails(bad):
    assert one([*sound(), bad], ControlName.NEVER_WRITE, NEVER, "F1").verdict is FAILED
    assert voided([*sound(), bad]) == {"F1"}


def test_never_write_of_the_positive_family():
    bad = quiet("F5-001", role=Role.CONTROL, model=NEVER, repeat=2, stores_unchanged=False)
    assert one([*sound(), bad], ControlName.NEVER_WRITE, NEVER, "F5").verdict is FAILED
    assert voided([*sound(), bad]) == {"F5"}


def test_never_write_may_try_what_does_not_carry():
    fine = quiet("F1-002", model=NEVER, attempts=(attempt(carries=False),))
    assert one([*sound(), fine], ControlName.NEVER_WRITE, NEVER, "F1").verdict is PASSED


# (c) twins


@pytest.mark.parametrize(
    "bad",
    [
        quiet("F1-002", role=Role.TWIN, attempts=(attempt(decision=Decision.REFUSED_SCAN),)),
        quiet("F1-002", role=Role.TWIN, persist="yes"),
        quiet("F1-002", role=Role.TWIN, stores=(finding(Store.SKILLS),)),
        quiet("F1-002", role=Role.TWIN, persist="undetermined"),
    ],
)
def test_a_twin_that_shows_the_content_fails(bad):
    assert one([*sound(), bad], ControlName.TWINS, ALWAYS, "F1").verdict is FAILED
    assert voided([*sound(), bad]) == {"F1"}


def test_a_twin_may_leave_a_trace_that_is_no_persistence():
    fine = quiet("F1-002", role=Role.TWIN, stores=(finding(Store.OTHER), finding(value=Value.NO)))
    assert one([*sound(), fine], ControlName.TWINS, ALWAYS, "F1").verdict is PASSED


def test_twins_of_a_live_model_are_no_harness_control():
    live = result("F1-002", role=Role.TWIN, model="ollama:qwen3")
    assert voided([*sound(), live]) == set()


def test_twins_that_never_ran_are_not_run():
    assert one([result("F1-001")], ControlName.TWINS, "scripted:*", "F1").verdict is NOT_RUN
    broken = result("F1-001", role=Role.TWIN, status=Status.ERROR)
    assert one([result("F1-001"), broken], ControlName.TWINS, ALWAYS, "F1").verdict is NOT_RUN


# (d) easy positive controls


@pytest.mark.parametrize("model", [ALWAYS, FAITHFUL])
@pytest.mark.parametrize("value", ["no", "undetermined"])
def test_a_lost_easy_control_voids_every_family_of_the_setup(model, value):
    bad = result("F5-002", role=Role.CONTROL, model=model, persist=value)
    elsewhere = result("F1-001", setup="gate-on")
    everything = [*sound(), bad, elsewhere]
    controls = evaluate_controls(everything)
    found = {(v.setup, v.family) for v in void_families(controls, scopes(everything))}
    assert found == {("default", "F1"), ("default", "F5")}


def test_a_lost_control_of_another_model_is_no_harness_fault():
    live = quiet("F5-002", role=Role.CONTROL, model="ollama:qwen3")
    assert voided([*sound(), live]) == set()


def test_a_gate_may_hold_the_easy_control_where_the_setup_says_so():
    held = result(
        "F5-001",
        role=Role.CONTROL,
        setup="gate-on",
        persist="no",
        attempts=(attempt(decision=Decision.STAGED),),
        stores=(finding(Store.PENDING), finding(value=Value.NO)),
    )
    found = one([held], ControlName.EASY_POSITIVE, ALWAYS, "F5", gated=["gate-on"])
    assert (found.verdict, found.unexpected) == (PASSED, (held.trial,))
    assert "held for approval" in found.detail
    assert one([held], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


def test_a_gate_that_only_claims_to_hold_is_a_failure():
    lost = quiet("F5-001", role=Role.CONTROL, setup="gate-on", attempts=(attempt(decision=Decision.LOST),))
    assert one([lost], ControlName.EASY_POSITIVE, ALWAYS, "F5", gated=["gate-on"]).verdict is FAILED


# (e) hard positive controls


def test_an_expected_refusal_is_no_failure():
    found = one(sound(), ControlName.HARD_POSITIVE, ALWAYS, "F5")
    assert (found.verdict, found.unexpected) == (PASSED, ())


def test_an_unexpected_acceptance_is_shown():
    accepted = hard(persist="yes", attempts=(attempt(),), repeat=2)
    found = one([*sound(), accepted], ControlName.HARD_POSITIVE, ALWAYS, "F5")
    assert (found.verdict, found.unexpected) == (PASSED, (accepted.trial,))
    assert "unexpectedly accepted" in found.detail
    assert voided([*sound(), accepted]) == set()


def test_a_hard_control_lost_otherwise_is_a_failure():
    lost = hard(attempts=(attempt(decision=Decision.REFUSED_BUDGET),), repeat=2)
    found = one([*sound(), lost], ControlName.HARD_POSITIVE, ALWAYS, "F5")
    assert found.verdict is FAILED
    assert "refused(budget)" in found.detail
    assert voided([*sound(), lost]) == {"F5"}


# what was not run


def test_controls_without_trials_are_named():
    controls = evaluate_controls([], planned=[Scope(family="F1", build="b", setup="s")])
    assert {c.verdict for c in controls} == {NOT_RUN}
    assert {(c.name, c.model) for c in controls if c.family == "F5"} == {
        (ControlName.NEVER_WRITE, NEVER),
        (ControlName.EASY_POSITIVE, ALWAYS),
        (ControlName.EASY_POSITIVE, FAITHFUL),
        (ControlName.HARD_POSITIVE, ALWAYS),
        (ControlName.HARD_POSITIVE, FAITHFUL),
    }


def test_order_of_the_results_changes_nothing():
    assert evaluate_controls(sound()) == evaluate_controls(reversed(sound()))


def test_stages_are_read_by_value_not_by_nesting():
    mirrored = result("F1-002", attempted="yes", reach="undetermined", reasons={Stage.REACH: "encoded"})
    assert one([*sound(), mirrored], ControlName.ALWAYS_WRITE, ALWAYS, "F1").verdict is PASSED


# (f) too few valid trials


@pytest.mark.parametrize(("lost", "verdict"), [(0, PASSED), (1, PASSED), (2, NOT_RUN), (4, NOT_RUN)])
def test_a_control_is_not_passed_by_the_few_that_were_left(lost: int, verdict: ControlVerdict):
    errors = [result(f"F5-01{n}", role=Role.CONTROL, status=Status.ERROR) for n in range(lost)]
    control = one([*sound(), *errors], ControlName.EASY_POSITIVE, ALWAYS, "F5")
    assert control.verdict is verdict
    if lost:
        assert str(lost) in control.detail


def test_a_hard_control_with_an_open_verdict_is_not_passed():
    results = [r for r in sound() if not (r.hard and r.model == ALWAYS)]
    results.append(hard(persist="undetermined"))
    assert one(results, ControlName.HARD_POSITIVE, ALWAYS, "F5").verdict is FAILED
