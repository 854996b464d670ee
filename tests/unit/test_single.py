"""One trial outside of a plan: found in a run folder, and run again with the errors that pass tried again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lab.agents.hermes.adapter import HermesAgent
from lab.contamination.single import find_trial, read_result, run_alone
from lab.contamination.trial import Bench
from lab.errors import InputError, SandboxTimeout
from lab.gateway.server import GatewayHost
from lab.isolation.base import Limits
from lab.records import Role, Status
from tests.planted import BUILDS, MODEL, SETUP, Planted, make, work
from tests.trial_evidence import SCENARIO


def test_a_trial_is_found_by_its_folder_and_by_its_id(tmp_path: Path) -> None:
    backend = Planted()
    suite = make(tmp_path, backend)
    trial = next(iter(suite.trials))
    with pytest.raises(InputError, match="has not ended"):
        read_result(suite, trial)
    work(suite, backend)
    for given in ((suite.folder.trial(trial),), (suite.folder.path, trial)):
        found, name = find_trial(*given)
        assert name == trial and found.folder.path == suite.folder.path
        assert read_result(found, name).trial == trial
    (suite.folder.trial(trial) / "result.json").write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        read_result(suite, trial)


def test_what_is_no_trial_is_one_clear_line(tmp_path: Path) -> None:
    suite = make(tmp_path)
    with pytest.raises(InputError, match="is not the folder of a trial"):
        find_trial(suite.folder.path)
    with pytest.raises(InputError, match="has no trial F1-999"):
        find_trial(suite.folder.path, "F1-999")
    with pytest.raises(InputError, match="is not a run folder"):
        find_trial(tmp_path / "trials" / "F1-001")


@pytest.mark.parametrize(("errors", "status", "runs"), [(1, Status.INVALID, 2), (9, Status.ERROR, 2)])
def test_an_error_that_may_pass_is_tried_again(
    errors: int, status: Status, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    backend = Planted(ends={"alone": [SandboxTimeout("slow") for _ in range(errors)]})
    paused: list[float] = []
    with GatewayHost() as gateways:
        bench = Bench(backend, BUILDS[0].environment, HermesAgent(), gateways, Limits(), "test")
        result = run_alone(bench, SCENARIO, Role.ATTACK, SETUP, MODEL, sleep=paused.append)
    assert result.status is status, result
    assert len(backend.ran) == runs and len(paused) == runs - 1
    assert not list(tmp_path.iterdir()), "nothing is left"
