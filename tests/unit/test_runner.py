"""The runner keeps what has ended, whatever happens to the rest; the run folder writes in one step."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, InputError
from lab.runs.folder import RunFolder, write_atomic
from lab.runs.runner import Ended, Progress, run_trials

TRIALS = [f"t{i}" for i in range(8)]


def test_all_run_and_are_counted() -> None:
    seen: list[Progress] = []
    assert run_trials(TRIALS[2:], lambda *_: Ended("valid"), workers=3, total=8, on_progress=seen.append)
    assert [p.done for p in seen] == list(range(3, 9))
    assert {p.trial for p in seen} == set(TRIALS[2:])


def test_a_full_disk_ends_the_run_with_its_mend_and_keeps_what_ended() -> None:
    ended: list[str] = []

    def execute(trial: str, cancel: threading.Event) -> Ended:
        if trial == "t3":
            raise OSError(errno.ENOSPC, "No space left on device", "/reports/x")
        ended.append(trial)
        return Ended("valid")

    with pytest.raises(EnvironmentUnusable, match=r"the disk is full \(/reports/x\).*lab resume") as caught:
        run_trials(TRIALS, execute, workers=1, total=8)
    assert caught.value.exit_code == 4
    assert ended == ["t0", "t1", "t2"]


def test_another_error_is_raised_as_it_is() -> None:
    def execute(trial: str, cancel: threading.Event) -> Ended:
        raise EnvironmentUnusable("the image is gone", "lab build")

    with pytest.raises(EnvironmentUnusable, match="the image is gone"):
        run_trials(TRIALS, execute, workers=2, total=8)


INTERRUPTED = """
import os, signal, threading
from lab.errors import SandboxCancelled
from lab.runs.runner import run_trials

# A process that was started in the background may have inherited the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
begun = threading.Barrier(3)

def execute(trial, cancel):
    begun.wait(timeout=10)
    assert cancel.wait(timeout=10)
    raise SandboxCancelled("interrupted")

def interrupt():
    begun.wait(timeout=10)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
print(run_trials(["a", "b", "c"], execute, workers=2, total=3))
"""


def test_ctrl_c_cancels_what_is_under_way() -> None:
    """In a process of its own: a parallel test runner's workers ignore the signal."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_stop_starts_nothing_further() -> None:
    stop = threading.Event()
    seen: list[str] = []

    def execute(trial: str, cancel: threading.Event) -> Ended:
        seen.append(trial)
        stop.set()
        return Ended("error", "gateway_died")

    assert run_trials(TRIALS, execute, workers=1, total=8, stop=stop)
    assert seen == ["t0"]


def test_what_is_tried_again_comes_last_and_is_done_once() -> None:
    begun: list[str] = []
    seen: list[Progress] = []

    def execute(trial: str, cancel: threading.Event) -> Ended:
        begun.append(trial)
        return Ended("error", "gateway_died") if begun.count("t0") + begun.count("t1") < 3 else Ended("valid")

    def again(trial: str, end: Ended) -> float | None:
        return 0 if end.status == "error" else None

    assert run_trials(TRIALS[:3], execute, workers=1, total=3, on_progress=seen.append, again=again)
    assert begun == ["t0", "t1", "t2", "t0", "t1", "t2"]
    assert [(p.trial, p.again) for p in seen if p.again] == [("t0", True), ("t1", True), ("t2", True)]
    assert [p.done for p in seen if not p.again] == [1, 2, 3]


def test_a_pause_starts_nothing_before_its_end() -> None:
    begun: dict[str, float] = {}

    def execute(trial: str, cancel: threading.Event) -> Ended:
        again = trial in begun
        begun[trial] = time.monotonic()
        return Ended("valid" if again or trial != "t0" else "error")

    def again(trial: str, end: Ended) -> float | None:
        return 0.3 if end.status == "error" else None

    started = time.monotonic()
    assert run_trials(TRIALS[:2], execute, workers=1, total=2, again=again)
    assert all(moment - started >= 0.3 for moment in begun.values()), "t1 was started in the pause"


def test_a_stopped_run_tries_nothing_again() -> None:
    stop = threading.Event()
    begun: list[str] = []

    def execute(trial: str, cancel: threading.Event) -> Ended:
        begun.append(trial)
        stop.set()
        return Ended("error")

    assert run_trials(TRIALS, execute, workers=1, total=8, again=lambda *_: 60, stop=stop)
    assert begun == ["t0"]


def test_a_failed_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    write_atomic(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_a_sealed_folder_verifies_and_a_changed_byte_does_not(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run")
    write_atomic(folder.path / "lock.json", b"{}")
    write_atomic(folder.fresh_trial("t") / "result.json", b"{}")
    folder.seal()
    check = ["sha256sum", "--quiet", "-c", "SHA256SUMS"]
    assert subprocess.run(check, cwd=folder.path, check=False).returncode == 0
    (folder.trial("t") / "result.json").write_bytes(b"{ }")
    assert subprocess.run(check, cwd=folder.path, check=False, capture_output=True).returncode == 1


def test_an_interrupted_attempt_is_removed_and_a_judged_one_is_kept(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run")
    (folder.fresh_trial("t") / "part.txt").write_text("x")
    again = folder.fresh_trial("t")
    assert list(again.iterdir()) == []
    (again / "result.json").write_text("{}")
    assert folder.is_done("t")
    folder.fresh_trial("t")
    assert not folder.is_done("t")
    assert (folder.path / "earlier" / "t.1" / "result.json").is_file()
    (folder.trial("t") / "result.json").write_text("{}")
    folder.fresh_trial("t")
    assert [(trial, path.name) for trial, path in folder.earlier()] == [("t", "t.1"), ("t", "t.2")]


def test_what_is_no_run_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a run folder: lock.json is missing"):
        RunFolder.open(tmp_path)
    (tmp_path / "lock.json").write_text("[")
    (tmp_path / "plan.json").write_text("[]")
    for name, problem in (("lock.json", "damaged"), ("plan.json", "not an object")):
        with pytest.raises(InputError, match=problem):
            RunFolder.open(tmp_path).read(name)


@pytest.mark.parametrize("name", ["../../victim", "..", ".hidden", "a/b", "", "a" * 300])
def test_no_trial_id_leads_out_of_the_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").mkdir()
    folder = RunFolder.create(tmp_path, "run")
    with pytest.raises(InputError):
        folder.fresh_trial(name)
    assert (tmp_path / "victim").is_dir()


def test_two_runs_of_one_second_get_two_folders(tmp_path: Path) -> None:
    assert RunFolder.create(tmp_path, "run").path != RunFolder.create(tmp_path, "run").path


def test_a_folder_at_work_is_closed_to_others(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run")
    with folder.lock(), pytest.raises(InputError, match="another lab is at work"), RunFolder(folder.path).lock():
        pass
    with folder.lock():
        pass
