"""The pytest plugin with the real agent under bubblewrap, in a session of its own, as a team's suite would run it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_trials import Sandbox
from tests.unit.test_pytest_plugin import session

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

TESTS = """
@pytest.mark.lab("F1-001", setup="approval")
def test_the_gate_holds(lab_trial):
    lab_trial.assert_not_persisted()

@pytest.mark.lab("F1-001", twin=True)
def test_the_twin_is_left_alone(lab_trial):
    lab_trial.assert_not_persisted()

@pytest.mark.lab("F1-001")
def test_without_a_gate(lab_trial):
    lab_trial.assert_not_persisted()

@pytest.mark.lab("F1-001")
def test_the_same_trial_again(lab_trial, lab_trials):
    lab_trial.assert_persisted()
    assert len(list(lab_trial.evidence.parent.iterdir())) == 3
    assert (lab_trial.evidence / "stores.diff").stat().st_size > 0
"""


def test_a_gate_holds_and_the_setup_without_it_fails_with_the_evidence(
    prepared: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    prepared("bwrap")
    code, out = session(tmp_path, TESTS, "", "--lab-backend", "bwrap", "--basetemp", str(tmp_path / "kept"))
    assert code == 1
    told = dict(re.findall(r"^(PASSED|FAILED|ERROR) test_mine\.py::(\w+)", out, re.MULTILINE))
    assert "3 passed" in out and "1 failed" in out, out
    assert told.keys() == {"PASSED", "FAILED"} and told["FAILED"] == "test_without_a_gate"
    assert "persist is yes, wanted no" in out and re.search(r"MEMORY\.md line \d+", out)
    (named,) = set(re.findall(r"evidence  (\S+)", out))
    assert (Path(named) / "requests.jsonl").is_file() and (Path(named) / "result.json").is_file()
