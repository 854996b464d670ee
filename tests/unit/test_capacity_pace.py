"""How many trials at once, and how long they will take: from what the machine and its earlier runs say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.runs.capacity import Capacity, free_memory, measure
from lab.runs.pace import default_pace, earlier_pace, estimate

GIB = 1 << 30


@pytest.mark.parametrize(
    ("cores", "free", "wanted", "jobs", "words"),
    [
        (4, 8 * GIB, 0, 4, ""),
        (4, 4 * GIB, 0, 4, ""),
        (4, 5 * GIB // 2, 0, 2, "2 at once, not 4: free memory of 2.5 GiB"),
        (4, GIB // 2, 0, 1, "1 at once may take more than the free memory of 0.5 GiB"),
        (4, 2 * GIB, 2, 2, ""),
        (4, 2 * GIB, 6, 6, "6 at once may take more than the free memory of 2.0 GiB"),
        (4, None, 0, 4, ""),
        (4, None, 9, 9, ""),
    ],
)
def test_jobs_are_bounded_by_cores_and_memory(cores: int, free: int | None, wanted: int, jobs: int, words: str) -> None:
    told = Capacity(cores, free).jobs(GIB, wanted)
    assert told[0] == jobs and (words in told[1] if words else told[1] == "")


def test_the_tightest_bound_on_memory_counts(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "cgroup"
    assert free_memory(meminfo, group) is None
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    4194304 kB\n")
    assert free_memory(meminfo, group) == 4 * GIB
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("5\n")
    assert free_memory(meminfo, group) == 4 * GIB
    (group / "memory.max").write_text(f"{3 * GIB}\n")
    (group / "memory.current").write_text(f"{2 * GIB}\n")
    assert free_memory(meminfo, group) == GIB
    (group / "memory").mkdir()
    (group / "memory" / "memory.limit_in_bytes").write_text("1024")
    (group / "memory" / "memory.usage_in_bytes").write_text("4096")
    assert free_memory(meminfo, group) == 0


def test_this_machine_can_be_asked() -> None:
    here = measure()
    assert here.cores >= 1 and here.free_bytes


def run_folder(reports: Path, name: str, backend: str, trials: list[dict[str, Any]]) -> None:
    folder = reports / name
    (folder / "trials").mkdir(parents=True)
    (folder / "lock.json").write_text(json.dumps({"backend": {"name": backend}}))
    for number, trial in enumerate(trials):
        (folder / "trials" / f"t{number}").mkdir()
        (folder / "trials" / f"t{number}" / "result.json").write_text(json.dumps({"status": "valid"} | trial))


def test_the_newest_run_on_the_same_backend_tells_the_pace(tmp_path: Path) -> None:
    run_folder(tmp_path, "1-old", "bwrap", [{"seconds": {"session": 90.0}}])
    slow = {"status": "error", "seconds": {"session": 120.0}}
    one, two = {"seconds": {"session": 2.0}}, {"seconds": {"session": 3.0, "load": 4.0}}
    run_folder(tmp_path, "2-newest", "bwrap", [one, two, slow])
    run_folder(tmp_path, "3-other-backend", "docker", [{"seconds": {"session": 50.0}}])
    run_folder(tmp_path, "4-nothing-ended", "bwrap", [slow])
    told = estimate(trials=10, jobs=4, backend="bwrap", reports=tmp_path)
    assert told.pace.source == "2 trials of run 2-newest"
    assert (told.pace.seconds_per_session, told.pace.sessions_per_trial) == (3.0, 1.5)
    assert told.seconds == 3 * 4.5, "three rounds of four at once"


def test_without_an_earlier_run_the_labs_own_measurement_is_told_as_such(tmp_path: Path) -> None:
    told = estimate(trials=10, jobs=1, backend="bwrap", reports=tmp_path / "none")
    assert told.pace == default_pace("bwrap") and told.pace.source == "the lab's own measurement"
    assert default_pace("unheard-of").seconds_per_session >= told.pace.seconds_per_session


@pytest.mark.parametrize(
    "text", ["[", "5", '{"seconds": 5}', '{"seconds": {"session": "x"}}', '{"seconds": {"s": -1}}']
)
def test_a_damaged_old_run_stops_nothing(tmp_path: Path, text: str) -> None:
    run_folder(tmp_path, "1", "bwrap", [{}])
    (tmp_path / "1" / "trials" / "t0" / "result.json").write_text(text)
    run_folder(tmp_path, "2", "bwrap", [])
    (tmp_path / "2" / "lock.json").write_text(text)
    assert earlier_pace(tmp_path, "bwrap") is None
