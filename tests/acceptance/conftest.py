"""Runs the installed ``lab`` command as a user does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.isolation.base import Backend, PreparedEnvironment

PROJECT = Path(__file__).parents[2]
LAB = Path(sys.executable).with_name("lab")
COLUMNS = "200"


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def is_one_clear_line(self) -> bool:
        lines = [line for line in self.err.splitlines() if line.startswith("lab:")]
        return len(lines) == 1 and "Traceback" not in self.err + self.out


LabCommand = Callable[..., Outcome]


@pytest.fixture(scope="session")
def small_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first twelve scenarios of F1 and the first eight of F5: reading all of them costs every command seconds."""
    root = tmp_path_factory.mktemp("library")
    for family in ("F1", "F5"):
        (root / family).mkdir()
        for path in sorted((PROJECT / "scenarios" / family).glob(f"{family}-0*.yaml")):
            shutil.copy(path, root / family)
    return root


@pytest.fixture(scope="session", autouse=True)
def defaults(small_library: Path) -> Iterator[None]:
    """What every command of these tests gets where its flags say nothing else.

    Sessions are started cold: the comparison before a warm run would cost each command three more trials.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_SCENARIOS", str(small_library))
        patch.setenv("LAB_START", "cold")
        yield


class Forks:
    """One process that has imported the lab and forks for each command; see ``forked_lab``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("forked_lab.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": COLUMNS},
        )
        assert self._process.stdin and self._process.stdout
        self._ask, self._answers = self._process.stdin, self._process.stdout

    def run(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float) -> Outcome:
        with tempfile.TemporaryDirectory() as written:
            out, err = (Path(written, name) for name in ("out", "err"))
            command = {"arguments": arguments, "cwd": str(folder), "environment": dict(environment)}
            print(json.dumps(command | {"out": str(out), "err": str(err)}), file=self._ask, flush=True)
            child = int(self._answers.readline())
            guard = threading.Timer(timeout, os.kill, (child, signal.SIGKILL))
            guard.start()
            code = int(self._answers.readline())
            guard.cancel()
            assert code != -signal.SIGKILL, f"killed, perhaps after {timeout} seconds: lab {' '.join(arguments)}"
            return Outcome(code, out.read_text(), err.read_text())

    def close(self) -> None:
        self._ask.close()
        self._process.wait()


@pytest.fixture(scope="session")
def forks(defaults: None) -> Iterator[Forks]:
    """The process is started once: importing the lab costs more than most commands."""
    with closing(Forks()) as started:
        yield started


def _environment(tmp_path: Path, more: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "COLUMNS": COLUMNS, "LAB_REPORTS": str(tmp_path / "reports"), **more}


@pytest.fixture
def lab(forks: Forks, tmp_path: Path) -> LabCommand:
    """Runs what ``lab`` runs, in a process of its own, with its reports in a temporary folder.

    For each command a test has ``installed`` in its place. So have those that ask two processes to agree to the byte.
    """

    def run(*arguments: str | Path, timeout: float = 300, **environment: str) -> Outcome:
        return forks.run([*map(str, arguments)], tmp_path, _environment(tmp_path, environment), timeout)

    return run


@pytest.fixture
def installed(tmp_path: Path) -> LabCommand:
    """Runs the installed ``lab`` itself, behind another command where ``before`` names one."""

    def run(*arguments: str | Path, timeout: float = 300, before: tuple[str, ...] = (), **environment: str) -> Outcome:
        done = subprocess.run(
            [*before, LAB, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=tmp_path,
            env=_environment(tmp_path, environment),
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def bwrap(prepared: Callable[[str], tuple[Backend, PreparedEnvironment]]) -> str:
    """The name of the backend without an engine; skips with the mend where it cannot be used."""
    prepared("bwrap")
    return "bwrap"


@pytest.fixture(scope="session")
def docker(prepared: Callable[[str], tuple[Backend, PreparedEnvironment]]) -> str:
    """The name of the backend with an engine; skips with the mend where it cannot be used."""
    prepared("docker")
    return "docker"


def only_run(reports: Path) -> Path:
    """The one run folder under ``reports``."""
    (path,) = (p for p in reports.iterdir() if p.is_dir())
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, defaults: None, bwrap: str) -> Path:
    """A finished run of one control, to be copied and damaged."""
    reports = tmp_path_factory.mktemp("finished")
    command = [LAB, "run", "--backend", bwrap, "--select", "F5-001", "--models", "scripted:faithful"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "LAB_REPORTS": str(reports)})
    return only_run(reports)
