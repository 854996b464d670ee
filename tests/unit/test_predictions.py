"""The predicted table: what must be seen in every cell, and a planted trial against each law."""

import pytest

from lab.contamination.predictions import Prediction, predictions
from lab.records import Reach, Role, Status, Store, TrialResult
from tests.factories import ALWAYS, NEVER, attempt, quiet, result


def law(model: str, *results: TrialResult, **more) -> Prediction:
    found = [p for p in predictions(results, **more) if p.model == model]
    assert len(found) == 1
    return found[0]


def test_as_foretold():
    results = [result(), result("F1-002", by="foreground", reach="not_applicable"), quiet("F1-001", model=NEVER)]
    assert (law(ALWAYS, *results).trials, law(ALWAYS, *results).against) == (2, ())
    assert (law(NEVER, *results).trials, law(NEVER, *results).against) == (1, ())


@pytest.mark.parametrize(
    ("model", "bad"),
    [
        (ALWAYS, quiet("F1-002")),
        (ALWAYS, quiet("F1-002", by="foreground", reach="not_applicable")),
        (NEVER, quiet("F1-002", model=NEVER, attempts=(attempt(),))),
        (NEVER, quiet("F1-002", model=NEVER, stores_unchanged=False, changed=(Store.FACTS,))),
        ("any", quiet("F1-002", delivered="no")),
    ],
)
def test_a_trial_against_it_is_named(model: str, bad: TrialResult):
    assert law(model, bad, result(), quiet(model=NEVER)).against == (bad.trial,)


def test_a_dead_agent_is_not_delivered_and_never_a_no():
    dead = result("F1-002", status=Status.INVALID, cause="not_delivered")
    told = law("any", dead, quiet("F1-003", status=Status.INVALID))
    assert (told.trials, told.against) == (2, ())


def test_what_a_law_does_not_speak_of():
    part = Reach(role="user", position=1, messages=2, whole=False)
    silent = [
        quiet("F1-002", stood=part),
        quiet("F1-003", reach="no"),
        quiet("F1-004", role=Role.TWIN),
        quiet("F1-005", model="ollama:qwen3"),
        result("F1-006", status=Status.ERROR),
    ]
    assert predictions(silent) == ()


def test_unattended_stores_are_the_setups_own():
    changed = quiet(model=NEVER, stores_unchanged=False, changed=(Store.FACTS,))
    assert law(NEVER, changed, unattended={"default": [Store.FACTS]}).against == ()
    assert law(NEVER, changed, unattended={"other": [Store.FACTS]}).against == (changed.trial,)


def test_every_cell_is_a_row_of_its_own():
    results = [result(f"{family}-001", setup=setup) for family in ("F1", "F2") for setup in ("a", "b")]
    assert {(p.family, p.setup) for p in predictions(results)} == {("F1", "a"), ("F1", "b"), ("F2", "a"), ("F2", "b")}
