"""Runs the installed ``lab`` command as a user does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.isolation.base import Backend, PreparedEnvironment

PROJECT = Path(__file__).parents[2]
LAB = Path(sys.executable).with_name("lab")


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


@pytest.fixture
def lab(tmp_path: Path) -> LabCommand:
    """Runs ``lab`` with its reports in a temporary folder."""

    def run(*arguments: str | Path, timeout: float = 300, before: tuple[str, ...] = (), **environment: str) -> Outcome:
        variables = {**os.environ, "COLUMNS": "200", "LAB_REPORTS": str(tmp_path / "reports"), **environment}
        done = subprocess.run(
            [*before, LAB, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=tmp_path,
            env=variables,
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
