"""``lab run --start warm``: what it says of itself, the same report as a cold run, and nothing left after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import LAB, LabCommand, only_run

SELECTION = ("--select", "F[15]-001", "--models", "scripted:always-write", "--jobs", "1")

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]


def same(report: Any) -> Any:
    """The report without its run's name and time, and without how it was started."""
    kept = {name: part for name, part in report.items() if name != "run"}
    return {**kept, "header": {name: part for name, part in kept["header"].items() if name != "start"}}


def test_a_warm_run_is_killed_resumed_and_equal_to_a_cold_one(
    lab: LabCommand, installed: LabCommand, bwrap: str, tmp_path: Path
) -> None:
    reports, cold_reports, scratch = tmp_path / "reports", tmp_path / "cold", tmp_path / "scratch"
    scratch.mkdir()
    cold = installed("run", "--backend", bwrap, *SELECTION, "--json", LAB_REPORTS=str(cold_reports))
    assert cold.code == 0, cold.err
    assert cold.json["header"]["start"] == "cold"
    environment = {**os.environ, "LAB_REPORTS": str(reports), "TMPDIR": str(scratch)}
    command = [LAB, "run", "--backend", bwrap, *SELECTION, "--start", "warm"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and not list(reports.glob("*/trials/*/requests.jsonl")):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed: the point was missed"
    assert list(scratch.glob("lab-work-*")), "something was left, to be found"
    done = lab("resume", "--json", TMPDIR=str(scratch))
    assert done.code == 0, done.err
    assert json.loads((only_run(reports) / "lock.json").read_text())["start"] == "warm"
    assert done.json["header"]["start"] == "warm"
    assert same(done.json) == same(cold.json)
    assert list(scratch.glob("lab-work-*")) == []
    clean = installed("clean", "--backend", bwrap, "--json", TMPDIR=str(scratch))
    assert not [name for name in clean.json["removed"] if str(process.pid) in name]
    refused = lab("run", "--backend", bwrap, *SELECTION, "--reuse", only_run(reports), LAB_REPORTS=str(cold_reports))
    assert refused.code == 2 and refused.is_one_clear_line() and "--start warm" in refused.err


def test_an_unknown_start_is_refused(lab: LabCommand) -> None:
    done = lab("run", "--start", "hot")
    assert done.code == 2 and done.is_one_clear_line()
