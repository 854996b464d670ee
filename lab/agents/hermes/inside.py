"""Runs the lab's small inspection programs inside a built environment and reads their one JSON answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lab.agents.hermes.recipe import containers_directory
from lab.errors import EnvironmentUnusable, InputError, SandboxError
from lab.isolation.base import Limits, PreparedEnvironment, SandboxSpec
from lab.isolation.select import backend_named
from lab.text import printable

_PYTHON = "/opt/agent/bin/python3"
_LIMITS = Limits(memory_bytes=1 << 30, wall_seconds=120, output_bytes=4 << 20)


def ask_inside(
    environment: PreparedEnvironment,
    program: str,
    *,
    options: tuple[str, ...] = (),
    argument: str = "",
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Runs ``containers/hermes/inspect/<program>`` and returns the object that it prints.

    The program text is passed on the command line, so it is no part of the environment and of its digest.

    Args:
        environment: A prepared build.
        program: File name of the program.
        options: Options of the interpreter inside.
        argument: The program's one argument.
        variables: Environment variables beside the path.

    Raises:
        InputError: The program is not in the ``containers`` folder.
        EnvironmentUnusable: It does not run to its end inside, or does not answer as it should.
    """
    text = program_text(program)
    spec = SandboxSpec(
        environment,
        (_PYTHON, *options, "-c", text, argument),
        env={"PATH": "/opt/agent/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **(variables or {})},
        limits=_LIMITS,
        labels={"purpose": "inspection"},
        workdir="/",
    )
    try:
        done = backend_named(environment.backend).run(spec)
    except SandboxError as error:
        raise EnvironmentUnusable(f"{program} does not run inside the build: {error.message}", error.mend) from error
    try:
        answer = json.loads(done.stdout) if done.code == 0 else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.code}"]
        raise EnvironmentUnusable(
            f"{program} gave no answer inside the build: {printable(lines[-1])}", "lab agent check"
        )
    return answer


def program_text(program: str) -> str:
    """The text of an inspection program.

    Raises:
        InputError: It is not in the ``containers`` folder.
    """
    path = containers_directory() / "hermes" / "inspect" / program
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read", "use a complete checkout") from error
