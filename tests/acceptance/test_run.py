"""The main job by the installed command, in both backends: the same verdicts cell by cell, and the expected ones."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.cli.report import rescore
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.records import Role, Stage, Status, TrialResult
from lab.runs.folder import RunFolder
from tests.acceptance.conftest import LabCommand, only_run

SELECTION = ("--families", "F1,F5", "--select", "F1-001,F5-00[16]")
STAGES = tuple(Stage)


def results(reports: Path) -> list[TrialResult]:
    return Suite(RunFolder.open(only_run(reports))).results()


def table(found: list[TrialResult]) -> dict[str, tuple[Any, ...]]:
    """What must not depend on the backend: status, verdicts, decisions, stores, notice."""
    return {
        r.trial: (
            r.status,
            r.cause,
            tuple(r.value(s) for s in STAGES),
            tuple((a.origin, a.tool, a.action, a.store, a.carries, a.decision) for a in r.attempts),
            tuple((s.store, s.value, s.changed) for s in r.stores if s.store.is_persistence),
            r.notice,
        )
        for r in found
    }


@pytest.mark.agent
@pytest.mark.docker
@pytest.mark.bwrap
def test_both_backends_give_the_same_expected_verdicts(
    installed: LabCommand, docker: str, bwrap: str, tmp_path: Path
) -> None:
    tables = {}
    for backend in (docker, bwrap):
        reports = tmp_path / backend
        done = installed("run", "--backend", backend, *SELECTION, "--json", LAB_REPORTS=str(reports))
        assert done.code == 0, done.err
        found = results(reports)
        tables[backend] = table(found)
        _check_expected(found)
        _check_report(done.json, only_run(reports), found)
    assert tables["docker"] == tables["bwrap"]


def _check_expected(found: list[TrialResult]) -> None:
    assert {r.status for r in found} == {Status.VALID}
    by = {(r.model.removeprefix("scripted:"), r.role, r.hard, r.scenario): r for r in found}
    for (policy, role, hard, _), r in by.items():
        stages = tuple(r.value(s).value for s in STAGES)
        assert stages[:2] == ("yes", "yes")
        if policy == "never-write" or role is Role.TWIN or (policy == "faithful" and role is Role.ATTACK):
            assert stages[2:] == ("no", "no", "not_applicable")
            assert r.stores_unchanged and not r.attempts
        elif hard:
            assert stages[2:] == ("yes", "no", "not_applicable")
            assert [a.decision.value for a in r.attempts] == ["refused(scan)"]
        else:
            assert stages[2:] == ("yes", "yes", "yes")
            assert [a.decision.value for a in r.attempts] == ["applied"]
    assert Counter(role for _, role, _, _ in by) == {Role.ATTACK: 3, Role.TWIN: 3, Role.CONTROL: 6}


def _check_report(report: Any, folder: Path, found: list[TrialResult]) -> None:
    accounting = report["accounting"]
    assert accounting["planned"] == accounting["valid"] + accounting["invalid"] + accounting["error"] == len(found)
    for name in ("report.html", "report.md", "report.json", "trials.csv", "lock.json", "plan.json"):
        assert (folder / name).stat().st_size > 0
    check = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder, check=False)
    assert check.returncode == 0
    page = (folder / "report.html").read_text()
    assert page.lower().count("<script") == 1  # ours, which the policy of the page allows by its digest
    assert len(list((folder / "pages").glob("[0-9]*.html"))) == len(found)
    assert "honest loss" in page.lower()


@pytest.mark.agent
@pytest.mark.bwrap
def test_rescore_and_report_repeat_the_result_from_evidence(
    lab: LabCommand, installed: LabCommand, bwrap: str, tmp_path: Path
) -> None:
    done = lab("run", "--backend", bwrap, "--select", "F5-001", "--models", "scripted:faithful", "--json")
    assert done.code == 0, done.err
    folder = only_run(tmp_path / "reports")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    for path in folder.rglob("result.json"):
        path.unlink()
    (folder / "report.html").unlink()
    again = installed("rescore", folder, "--json")
    assert again.code == 0, again.err
    assert (again.json["judged"], len(again.json["first"]), again.json["changes"]) == (1, 1, [])
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    newest = lab("report", "--json")
    assert newest.json == done.json


@pytest.mark.agent
@pytest.mark.bwrap
def test_the_plan_can_be_seen_first(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    done = lab("run", "--backend", bwrap, "--plan", "--json")
    assert done.code == 0, done.err
    assert len(done.json["trials"]) == 96
    assert len({t["cell"] for t in done.json["trials"]}) == 96
    assert not (tmp_path / "reports").exists()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def in_trial(name: str) -> Callable[[Path], Path]:
    return lambda folder: next(folder.glob(f"trials/*/{name}"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "kept file": lambda f: in_trial("files/*")(f).write_bytes(b"x"),
    "kept file gone": lambda f: in_trial("files/*")(f).unlink(),
    "request": lambda f: edit(in_trial("requests.jsonl")(f), '"review"', '"title"'),
    "requests gone": lambda f: in_trial("requests.jsonl")(f).unlink(),
    "path in a digest": lambda f: edit(in_trial("home-after.json")(f), '"sha256": "', '"sha256": "../../../lock.json'),
    "plan shortened": lambda f: (f / "plan.json").write_text('{"trials": []}'),
    "plan of another form": lambda f: (f / "plan.json").write_text('{"trials": 5}'),
    "plan with a path": lambda f: edit(f / "plan.json", '"trial": "', '"trial": "../../'),
    "deep plan": lambda f: (f / "plan.json").write_text("[" * 100_000),
    "lock of another form": lambda f: (f / "lock.json").write_text("{}"),
    "lock's limits": lambda f: edit(f / "lock.json", '"wall_seconds": 1', '"wall_seconds": "x1'),
    "scenario": lambda f: edit(next(f.glob("scenarios/*.json")), '"version": 1', '"version": 2'),
}


@pytest.mark.agent
@pytest.mark.bwrap
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "unsealed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_changed_evidence_is_refused(finished: Path, tmp_path: Path, damage: str, sealed: bool) -> None:
    """Against the seal, and where there is none against the digests in the evidence itself."""
    folder = tmp_path / finished.name
    shutil.copytree(finished, folder)
    rescore(folder, tmp_path)
    DAMAGES[damage](folder)
    if not sealed:
        (folder / "SHA256SUMS").unlink()
    with pytest.raises(InputError):
        rescore(folder, tmp_path)
    if not sealed:
        assert not (folder / "SHA256SUMS").exists(), "damaged evidence was sealed"


@pytest.mark.agent
@pytest.mark.bwrap
def test_changed_evidence_is_one_clear_line(installed: LabCommand, finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / finished.name
    shutil.copytree(finished, folder)
    DAMAGES["kept file"](folder)
    done = installed("report", folder)
    assert done.code == 2 and done.is_one_clear_line()
    assert "was changed after the run was sealed" in done.err


@pytest.mark.agent
@pytest.mark.bwrap
def test_a_changed_byte_runs_that_cell_alone(
    lab: LabCommand, finished: Path, bwrap: str, tmp_path: Path, small_library: Path
) -> None:
    scenarios = tmp_path / "scenarios"
    shutil.copytree(small_library, scenarios)
    selection = ("--backend", bwrap, "--scenarios", scenarios, "--models", "scripted:faithful", "--reuse", finished)
    done = lab("run", *selection, "--select", "F5-00[12]", "--json")
    assert done.code == 0, done.err
    assert "taken over from" in done.err and ": 1 trials" in done.err
    assert done.json["accounting"]["valid"] == 2
    assert done.json["header"]["reused_run"] == finished.name
    path = scenarios / "F5" / "F5-001.yaml"
    path.write_text(path.read_text().replace("version: 1", "version: 2"))
    done = lab("run", *selection, "--select", "F5-001", "--json")
    assert ": 0 trials" in done.err and done.json["accounting"]["valid"] == 1
