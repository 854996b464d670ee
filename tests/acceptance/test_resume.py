"""``kill -9`` of the lab at any point, then ``lab resume``: the same report, and no trial twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import LAB, LabCommand, only_run

SELECTION = ("--select", "F1-001", "--models", "scripted:always-write", "--jobs", "1")
PLANNED = 2

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]


def trials(folder: Path) -> list[Path]:
    return sorted((folder / "trials").iterdir())


POINTS: dict[str, Callable[[Path], bool]] = {
    "run folder made": lambda f: (f / "plan.json").exists(),
    "first session under way": lambda f: any((t / "requests.jsonl").exists() for t in trials(f)),
    "first session ended": lambda f: any((t / "stores.diff").exists() for t in trials(f)),
    "one trial of two done": lambda f: any((t / "result.json").exists() for t in trials(f)),
    "all trials done, report not yet": lambda f: sum((t / "result.json").exists() for t in trials(f)) == PLANNED,
}


def same(report: Any) -> Any:
    """The report without its run's name and time."""
    return {name: part for name, part in report.items() if name != "run"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, bwrap: str) -> Any:
    reports = tmp_path_factory.mktemp("undisturbed")
    command = [LAB, "run", "--backend", bwrap, *SELECTION, "--json"]
    environment = {**os.environ, "LAB_REPORTS": str(reports)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return same(json.loads(done.stdout))


@pytest.mark.parametrize("point", POINTS)
def test_killed_and_resumed(lab: LabCommand, bwrap: str, tmp_path: Path, point: str, undisturbed: Any) -> None:
    reports = tmp_path / "reports"
    environment = {**os.environ, "LAB_REPORTS": str(reports)}
    command = [LAB, "run", "--backend", bwrap, *SELECTION]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        found = [p for p in reports.glob("*") if (p / "trials").is_dir()]
        if found and POINTS[point](found[0]):
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed: the point was missed"
    folder = only_run(reports)
    done_before = {t: (t / "result.json").read_bytes() for t in trials(folder) if (t / "result.json").exists()}
    done = lab("resume", folder, "--json")
    assert done.code == 0, done.err
    assert same(done.json) == undisturbed
    assert len(trials(folder)) == PLANNED
    assert not (folder / "earlier").exists()
    for trial, result in done_before.items():
        assert (trial / "result.json").read_bytes() == result, "a finished trial was run again"
    again = lab("resume", "--json")
    assert again.code == 0 and again.json == done.json


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_130_and_can_be_resumed(
    lab: LabCommand, bwrap: str, tmp_path: Path, undisturbed: Any, number: signal.Signals
) -> None:
    reports, scratch = tmp_path / "reports", tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "LAB_REPORTS": str(reports), "TMPDIR": str(scratch)}
    # A process started in the background may have inherited the interrupt ignored; a user's terminal has not.
    command = ["env", "--default-signal=INT", LAB, "run", "--backend", bwrap, *SELECTION]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(reports.glob("*/trials/*/requests.jsonl")):
        time.sleep(0.01)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "lab resume" in told and "Traceback" not in told
    left = [p for p in scratch.rglob("*") if p.name.startswith("lab-work-") or p.is_file()]
    assert left == [], "something was left behind"
    assert same(lab("resume", "--json").json) == undisturbed


def test_a_second_lab_keeps_out_of_a_folder_at_work(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    environment = {**os.environ, "LAB_REPORTS": str(reports)}
    first = subprocess.Popen(
        [LAB, "run", "--backend", bwrap, *SELECTION],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(reports.glob("*/trials/*/requests.jsonl")):
        time.sleep(0.01)
    for command in ("resume", "report", "rescore"):
        second = lab(command)
        assert second.code == 2 and second.is_one_clear_line(), second.err
        assert "another lab is at work" in second.err
    assert first.wait(timeout=120) == 0
    assert lab("report", "--json").json["accounting"]["valid"] == PLANNED
