"""Pip on the host, asked for the environment inside: CPython 3.11 on a manylinux system of this machine's kind."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise

from lab.errors import EnvironmentUnusable

_PYTHON = "3.11"
_ABI = "cp311"
_NEWEST_GLIBC_MINOR = 28
_OLDEST_GLIBC_MINOR = 5
_END_OF_BUILD_OUTPUT = "[end of output]"


class PipFailed(Exception):
    """Pip ended with an error.

    Attributes:
        reason: The last line of a build that failed under it, else its first error line, else the last line it wrote.
        output: All it wrote to standard error.
    """

    def __init__(self, output: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        ends = [before for before, line in pairwise(lines) if line == _END_OF_BUILD_OUTPUT]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
        self.reason = " ".join((ends or errors or lines[-1:] or ["no reason given"])[0].split())[:300]
        self.output = output
        super().__init__(self.reason)


def platform_tags(machine: str) -> tuple[str, ...]:
    """Platforms whose wheels run in the environment, the newest C library first."""
    modern = [f"manylinux_2_{minor}_{machine}" for minor in range(_NEWEST_GLIBC_MINOR, _OLDEST_GLIBC_MINOR - 1, -1)]
    legacy = [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    return (*modern, *legacy)


def target_options() -> list[str]:
    """The options that make pip choose wheels, and only wheels, for the environment inside."""
    options = ["--only-binary", ":all:", "--python-version", _PYTHON, "--implementation", "cp", "--abi", _ABI]
    for tag in platform_tags(platform.machine()):
        options += ["--platform", tag]
    return options


def call_pip(command: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
    """Runs pip. Its own configuration decides which index and which cache it uses.

    Args:
        command: ``download``, ``install`` or ``wheel``.
        arguments: The rest of its command line.
        variables: Environment variables to set beside those of the lab.

    Raises:
        EnvironmentUnusable: This Python has no pip.
        PipFailed: Pip ended with an error.
    """
    if importlib.util.find_spec("pip") is None:
        raise EnvironmentUnusable("this Python has no pip", f"{sys.executable} -m ensurepip")
    line = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(
        line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, **(variables or {})},
        check=False,
    )
    if done.returncode != 0:
        raise PipFailed(done.stderr or done.stdout)
