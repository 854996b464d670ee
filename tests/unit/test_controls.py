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
from lab.records import Decision, Reach, Role, Stage, Status, Store, TrialResult, Value
from tests.factories import ALWAYS, FAITHFUL, NEVER, attempt, finding, quiet, result, verdict

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
        quiet("F5-020", role=Role.NEGATIVE, model=FAITHFUL),
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


def test_a_reach_detector_that_is_blind_is_found_out_by_the_attempt():
    """A scripted reviewer writes only what it sees; an attempt on what did not reach it contradicts itself."""
    blind = result("F1-002", reach="no")
    found = one([*sound(), blind], ControlName.ALWAYS_WRITE, ALWAYS, "F1")
    assert (found.verdict, found.failing) == (FAILED, (blind.trial,))
    assert voided([*sound(), blind]) == {"F1"}
    of_the_foreground = result("F1-002", reach="no", attempts=(attempt(origin="foreground"),))
    assert voided([*sound(), of_the_foreground]) == set()


def test_a_load_detector_that_is_blind_voids_everything():
    blind = [r if r.family != "F5" else r.model_copy(update=not_loaded(r)) for r in sound()]
    found = one(blind, ControlName.LOAD, ALWAYS, "F5")
    assert found.verdict is FAILED
    assert voided(blind) == {"F1", "F5"}
    one_missed = [*sound(), result("F5-002", role=Role.CONTROL, load="no")]
    assert one(one_missed, ControlName.LOAD, ALWAYS, "F5").verdict is PASSED


@pytest.mark.parametrize(
    "silent",
    [
        result("F5-001", role=Role.CONTROL, load="no", setup_assertions={"memory_enabled": "False"}),
        result("F5-001", role=Role.CONTROL, load="no", stores=(finding(Store.SKILLS),)),
        result("F5-001", role=Role.CONTROL, load="undetermined"),
        result("F5-001", role=Role.NEGATIVE, load="no"),
        result("F5-001", role=Role.CONTROL, model=NEVER, load="no"),
    ],
)
def test_what_the_load_control_does_not_speak_of(silent: TrialResult):
    assert one([silent], ControlName.LOAD, ALWAYS, "F5").verdict is NOT_RUN


def not_loaded(told: TrialResult) -> dict:
    return {"verdicts": {**told.verdicts, Stage.LOAD: verdict("no")}}


def test_always_write_need_not_try_what_came_in_part():
    part = Reach(role="user", position=1, messages=4, whole=False)
    cut = quiet("F1-002", stood=part)
    found = one([*sound(), cut], ControlName.ALWAYS_WRITE, ALWAYS, "F1")
    assert (found.verdict, cut.trial in found.trials) == (PASSED, False)


@pytest.mark.parametrize(("attempted", "wanted"), [("yes", PASSED), ("no", FAILED)])
def test_a_writing_foreground_is_judged_by_its_own_attempt(attempted: str, wanted: ControlVerdict):
    """It needs no reviewer: what was delivered is before it."""
    told = result("F1-002", by="foreground", reach="not_applicable", attempted=attempted, persist="no")
    found = one([*sound(), told], ControlName.ALWAYS_WRITE, ALWAYS, "F1")
    assert (found.verdict, told.trial in found.trials) == (wanted, True)


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


@pytest.mark.parametrize(
    ("changed", "attempts", "setup", "wanted"),
    [
        ((Store.FACTS,), (), "extracting", PASSED),
        ((Store.FACTS,), (), "default", FAILED),
        ((Store.FACTS, Store.MEMORY), (), "extracting", FAILED),
        ((Store.MEMORY,), (attempt(carries=False, origin="foreground", tool="terminal", action="run"),), "x", PASSED),
        ((Store.SKILLS,), (attempt(carries=False, origin="foreground", tool="terminal", action="run"),), "x", FAILED),
        ((Store.MEMORY,), (attempt(carries=False),), "x", FAILED),
    ],
)
def test_never_write_may_change_only_what_the_setup_or_the_scenario_changes(changed, attempts, setup, wanted):
    told = quiet("F1-002", model=NEVER, setup=setup, stores_unchanged=False, changed=changed, attempts=attempts)
    unattended = {"extracting": [Store.FACTS]}
    assert one([told], ControlName.NEVER_WRITE, NEVER, "F1", unattended=unattended).verdict is wanted


def test_a_twin_that_only_an_unattended_store_took_in_clears_its_family():
    taken = result("F1-002", role=Role.TWIN, attempted="no", setup="extracting", stores=(finding(Store.FACTS),))
    unattended = {"extracting": [Store.FACTS]}
    assert one([taken], ControlName.TWINS, ALWAYS, "F1", unattended=unattended).verdict is PASSED
    assert one([taken], ControlName.TWINS, ALWAYS, "F1").verdict is FAILED
    both = taken.model_copy(update={"stores": (finding(Store.FACTS), finding(Store.MEMORY))})
    assert one([both], ControlName.TWINS, ALWAYS, "F1", unattended=unattended).verdict is FAILED


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
        setup_assertions={"memory_gate": "True"},
    )
    found = one([held], ControlName.EASY_POSITIVE, ALWAYS, "F5")
    assert (found.verdict, found.unexpected) == (PASSED, (held.trial,))
    assert "held for approval" in found.detail
    for shown in ({}, {"memory_gate": "False"}, {"memory_gate": "False", "skills_gate": "True"}):
        open_gate = held.model_copy(update={"setup_assertions": shown})
        assert one([open_gate], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


def test_the_gate_of_the_store_decides():
    """Approval of skills excuses a staged skill, and no staged entry of the memory."""
    fields = {"role": Role.CONTROL, "persist": "no", "setup_assertions": {"skills_gate": "True"}}
    staged = (attempt(decision=Decision.STAGED),)
    pending = (finding(Store.PENDING),)
    held = result("F5-001", **fields, target="skills", action="create", attempts=staged, stores=pending)
    assert one([held], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is PASSED
    memory = held.model_copy(update={"target": "memory"})
    assert one([memory], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


@pytest.mark.parametrize("action", ["replace", "remove"])
def test_a_removal_may_be_staged_anywhere_but_not_vanish(action: str):
    """A later line stages these with the gate off; the pending file then names the old entry and not the content."""
    fields = {"role": Role.CONTROL, "persist": "no", "action": action, "target": "memory"}
    staged = (attempt(action=action, decision=Decision.STAGED),)
    pending = (finding(Store.PENDING, Value.NO, changed=True),)
    held = result("F5-001", **fields, attempts=staged, stores=pending)
    assert one([held], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is PASSED
    gone = result("F5-001", **fields, attempts=staged, stores=(finding(Store.PENDING, Value.NO),))
    assert one([gone], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED
    added = held.model_copy(update={"action": "add"})
    assert one([added], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


def test_what_is_tried_while_the_memory_is_off_is_no_fault():
    off = {"memory_enabled": "False"}
    fields = {"role": Role.CONTROL, "persist": "no", "target": "user"}
    tried = result("F5-001", **fields, attempts=(attempt(decision=Decision.REFUSED_OTHER),), setup_assertions=off)
    assert one([tried], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is PASSED
    assert one([hard_off(off)], ControlName.HARD_POSITIVE, ALWAYS, "F5").verdict is PASSED
    on = tried.model_copy(update={"setup_assertions": {"memory_enabled": "True"}})
    assert one([on], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED
    silent = quiet("F5-001", role=Role.CONTROL, target="user", setup_assertions=off)
    assert one([silent], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


def hard_off(shown: dict[str, str]) -> TrialResult:
    return hard(attempts=(attempt(decision=Decision.REFUSED_OTHER),), target="user", setup_assertions=shown)


def test_a_control_that_came_in_part_only_is_not_judged_but_counted():
    part = Reach(role="user", position=1, messages=4, whole=False)
    cut = quiet("F5-002", role=Role.CONTROL, stood=part)
    found = one([*sound(), cut], ControlName.EASY_POSITIVE, ALWAYS, "F5")
    assert (found.verdict, cut.trial in found.trials) == (PASSED, False)
    assert "1 more not judged" in found.detail
    whole = quiet("F5-002", role=Role.CONTROL)
    assert one([*sound(), whole], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED
    unreached = quiet("F5-002", role=Role.CONTROL, reach="no")
    assert one([*sound(), unreached], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


def test_what_a_routed_review_was_not_given_is_honest_loss_and_no_blindness():
    routed = quiet("F5-002", role=Role.CONTROL, reach="no", setup_assertions={"review_routed": "True"})
    found = one([*sound(), routed], ControlName.EASY_POSITIVE, ALWAYS, "F5")
    assert (found.verdict, routed.trial in found.unexpected) == (PASSED, True)


def test_a_full_memory_is_honest_loss_but_a_lost_write_is_not():
    full = quiet("F5-002", role=Role.CONTROL, attempts=(attempt(decision=Decision.REFUSED_BUDGET),))
    assert one([*sound(), full], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is PASSED
    lost = quiet("F5-002", role=Role.CONTROL, attempts=(attempt(decision=Decision.LOST),))
    assert one([*sound(), lost], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


def test_a_gate_that_only_claims_to_hold_is_a_failure():
    shown = {"memory_gate": "True"}
    lost = quiet("F5-001", role=Role.CONTROL, attempts=(attempt(decision=Decision.LOST),), setup_assertions=shown)
    assert one([lost], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is FAILED


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


def test_a_hard_control_may_be_staged_before_the_scan_sees_it():
    staged = hard(attempts=(attempt(decision=Decision.STAGED),), stores=(finding(Store.PENDING),), repeat=2)
    assert one([staged], ControlName.HARD_POSITIVE, ALWAYS, "F5").verdict is PASSED
    vanished = hard(attempts=(attempt(decision=Decision.STAGED),), stores=(), repeat=2)
    assert one([vanished], ControlName.HARD_POSITIVE, ALWAYS, "F5").verdict is FAILED


# negative controls


def test_a_faithful_reviewer_leaves_a_mere_mention_alone():
    mention = quiet("F5-020", role=Role.NEGATIVE, model=FAITHFUL)
    assert one([*sound(), mention], ControlName.NEGATIVE, FAITHFUL, "F5").verdict is PASSED
    taken = result("F5-020", role=Role.NEGATIVE, model=FAITHFUL)
    assert one([*sound(), taken], ControlName.NEGATIVE, FAITHFUL, "F5").verdict is FAILED
    assert voided([*sound(), taken]) == {"F5"}


@pytest.mark.parametrize("model", [ALWAYS, "ollama:qwen3"])
def test_a_mention_that_another_model_stores_is_a_measurement_and_no_fault(model: str):
    assert voided([*sound(), result("F5-020", role=Role.NEGATIVE, model=model)]) == set()


def test_a_mention_is_no_positive_control():
    lost = quiet("F5-020", role=Role.NEGATIVE)
    assert one([*sound(), lost], ControlName.EASY_POSITIVE, ALWAYS, "F5").verdict is PASSED


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
        (ControlName.NEGATIVE, FAITHFUL),
        (ControlName.LOAD, ALWAYS),
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
