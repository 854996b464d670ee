"""Newer detectors on old evidence: runs of earlier versions are read, both judgements stay, changes are told."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import lab
from lab.cli.report import report, rescore
from lab.contamination.judgements import Rescored, earlier_judgements
from lab.contamination.observe import judge as judging
from lab.contamination.observe.detectors import ROOT, detectors, sources
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.records import Stage, TrialResult, Value, Verdict
from lab.runs import folder as run_folder
from lab.runs.folder import RunFolder
from tests.golden_runs import RUNS, unpack

RUN = RUNS[-1]


def results(run: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(run.glob("trials/*/result.json"))}


def files(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def kept(run: Path) -> dict[str, list[bytes]]:
    folders = sorted(run.glob("trials/*"))
    return {f.name: [p.read_bytes() for p in earlier_judgements(f)] for f in folders if earlier_judgements(f)}


def again(run: Path, capsys: pytest.CaptureFixture[str]) -> Rescored:
    capsys.readouterr()
    rescore(run, run.parent, json=True)
    return Rescored.model_validate_json(capsys.readouterr().out)


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the detectors other ones, which see nothing in any store."""

    def patch() -> None:
        monkeypatch.setattr(judging, "judge_persist", lambda stores: Verdict(value=Value.NO))
        monkeypatch.setattr(judging, "detectors", lambda: "blind")

    return patch


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_earlier_versions_are_reported_and_judged_again(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unpack(name, tmp_path)
    before, told = results(run), json.loads((run / "report.json").read_text())
    report(run, tmp_path)
    assert results(run) == before, "a report judges nothing"
    now = json.loads((run / "report.json").read_text())
    assert now["accounting"] == told["accounting"]
    assert [g["persist"]["proportion"] for g in now["groups"]] == [g["persist"]["proportion"] for g in told["groups"]]
    done = again(run, capsys)
    assert (done.judged, done.changes, done.first, done.unsealed) == (2, (), (), ())
    assert done.before == {"": 2} and done.detectors == detectors()
    assert kept(run) == {trial: [data] for trial, data in before.items()}, "to the byte"
    assert {TrialResult.model_validate_json(data).detectors for data in results(run).values()} == {detectors()}
    checked = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=run, check=False, capture_output=True)
    assert checked.returncode == 0
    assert "judgements/1.json" in (run / "SHA256SUMS").read_text()


@pytest.mark.parametrize("name", RUNS)
def test_judging_twice_changes_nothing(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = unpack(name, tmp_path)
    again(run, capsys)
    before = files(run)
    done = again(run, capsys)
    assert (done.same, done.before) == (2, {detectors(): 2})
    assert files(run) == before


def test_a_changed_scenario_of_an_old_run_is_still_refused(tmp_path: Path) -> None:
    run = unpack("run-0.1.0", tmp_path)
    copy = run / "scenarios" / "F1-001.json"
    copy.write_text(copy.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(InputError, match="changed after the run was locked"):
        Suite(RunFolder.open(run))


def test_a_result_of_a_version_to_come_is_refused(tmp_path: Path) -> None:
    run = unpack(RUN, tmp_path)
    for path in run.glob("trials/*/result.json"):
        path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    with pytest.raises(InputError, match="is damaged"):
        Suite(RunFolder.open(run)).results()


def test_other_detectors_what_changed_is_told_by_stage_and_both_verdicts_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blind: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = unpack(RUN, tmp_path)
    old = results(run)
    blind()
    done = again(run, capsys)
    (trial,) = done.changed
    assert not trial.startswith("F1-001-twin")
    assert done.counts == {"persist": {"yes → no": 1}} and done.same == 1 and done.detectors == detectors()
    assert [(c.trial, c.part, c.before, c.after) for c in done.changes] == [(trial, "persist", "yes", "no")]
    assert kept(run) == {name: [data] for name, data in old.items()}
    suite = Suite(RunFolder.open(run))
    assert {r.trial: r.value(Stage.PERSIST) for r in suite.results()}[trial] is Value.NO
    monkeypatch.undo()
    back = again(run, capsys)
    assert back.counts == {"persist": {"no → yes": 1}} and back.before == {"blind": 2}
    assert [len(data) for data in kept(run).values()] == [2, 2]
    rescore(run, tmp_path)
    assert "no verdict changed: 2 of 2" in capsys.readouterr().out


def test_people_are_told_from_and_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blind: Callable[[], None]
) -> None:
    run = unpack(RUN, tmp_path)
    blind()
    rescore(run, tmp_path)
    told = capsys.readouterr().out
    assert "verdicts changed in 1 of 2 compared trials" in told
    assert "r1: persist yes → no" in told


@pytest.mark.parametrize("where", ["before a trial is judged", "between keeping and writing"])
def test_an_interrupted_rescore_loses_nothing_and_tells_all_when_done_again(
    where: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    blind: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = unpack(RUN, tmp_path)
    old = results(run)
    blind()
    with monkeypatch.context() as cut:
        if where.startswith("before"):
            judge, calls = judging.judge, iter((False, True))

            def judge_once(*given: object) -> TrialResult:
                if next(calls):
                    raise KeyboardInterrupt
                return judge(*given)  # type: ignore[arg-type]

            cut.setattr("lab.contamination.suite.judge", judge_once)
        else:
            write = run_folder.write_atomic

            def write_but_results(path: Path, data: bytes) -> None:
                if path.name == "result.json":
                    raise KeyboardInterrupt
                write(path, data)

            cut.setattr("lab.contamination.judgements.write_atomic", write_but_results)
        with pytest.raises(KeyboardInterrupt):
            rescore(run, tmp_path)
    assert len(kept(run)) == 1, "the interruption came in the middle"
    if results(run) != old:
        with pytest.raises(InputError, match="lab rescore"):
            report(run, tmp_path)
    done = again(run, capsys)
    assert done.counts == {"persist": {"yes → no": 1}} and done.unsealed == () and done.before == {"": 2}
    assert kept(run) == {name: [data] for name, data in old.items()}


def test_a_forged_result_is_no_earlier_judgement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = unpack(RUN, tmp_path)
    forged, honest = sorted(run.glob("trials/*/result.json"))
    forged.write_text(forged.read_text().replace("F1-001", "F1-002"))
    done = again(run, capsys)
    assert done.unsealed == done.first == (forged.parent.name,)
    assert set(kept(run)) == {honest.parent.name}
    assert TrialResult.model_validate_json(forged.read_bytes()).scenario == "F1-001"


def test_a_kept_judgement_that_was_changed_is_refused(tmp_path: Path) -> None:
    run = unpack(RUN, tmp_path)
    rescore(run, tmp_path)
    path = next(run.glob("trials/*/judgements/1.json"))
    path.write_bytes(path.read_bytes() + b" ")
    for command in (rescore, report):
        with pytest.raises(InputError, match=r"judgements/1\.json is missing or was changed"):
            command(run, tmp_path)


def test_the_detectors_name_covers_all_that_the_judge_imports() -> None:
    """What is left out decides no verdict: the bounds of processes, the seal and the table of retries."""
    covered = set(sources())
    waiting, seen = [ROOT / "contamination" / "observe" / "judge.py"], set()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lab"):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                place = ROOT.joinpath(*name.split(".")[1:])
                for found in (place.with_suffix(".py"), place / "__init__.py"):
                    if found.is_file() and found not in seen:
                        waiting.append(found)
    missing = {str(p.relative_to(ROOT)) for p in seen - covered} - {"__init__.py"}
    assert {m for m in missing if not m.startswith(("isolation/", "runs/"))} == set()
    assert len(seen) > 20 and detectors().startswith(f"{lab.__version__}+")
