"""Typed errors of the lab and the exit codes they map to.

Every error that may reach a user carries one line that names the thing and one line that mends it. The command line
prints both and exits with ``exit_code``; it never prints a traceback for a ``LabError``.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every ``lab`` command."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    ERROR_BUDGET = 3
    ENVIRONMENT = 4
    INTERRUPTED = 130


class LabError(Exception):
    """An error that a user can act on.

    Args:
        message: One line that names the thing that is wrong.
        mend: One line that says what to do, ideally a command; empty where nothing can be done.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.message} — {self.mend}" if self.mend else self.message


class InputError(LabError):
    """Bad input: a broken scenario, an unknown name, a run folder that is not one."""


class EnvironmentUnusable(LabError):
    """The machine lacks something: no engine, no bubblewrap, no image, no disk space."""

    exit_code = ExitCode.ENVIRONMENT


class ErrorBudgetExceeded(LabError):
    """Too many trials ended in infrastructure errors for the run to be evidence."""

    exit_code = ExitCode.ERROR_BUDGET


class VerdictsDiffer(LabError):
    """What must be the same is not: a replay judged otherwise than its recording."""

    exit_code = ExitCode.GATE_FAILED


class BudgetSpent(LabError):
    """What a run may spend on live models is spent; what has ended is kept and the run can go on."""

    exit_code = ExitCode.ERROR_BUDGET


class SandboxError(LabError):
    """The sandbox did not run its program to an end of its own; never a statement about the agent.

    Attributes:
        cause: Short stable code used in trial results (``timeout``, ``oom``, ``killed``, ``output_limit``, ``start``).
        stdout: Bytes the program had written before, bounded by the output limit.
        stderr: The same for standard error.
    """

    exit_code = ExitCode.ENVIRONMENT
    cause = "sandbox"

    def __init__(self, message: str, mend: str = "", *, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message, mend)
        self.stdout = stdout
        self.stderr = stderr


class SandboxTimeout(SandboxError):
    """The wall-time limit passed; the whole process tree was killed."""

    cause = "timeout"


class SandboxOutOfMemory(SandboxError):
    """The kernel killed a process of the sandbox because of the memory limit."""

    cause = "oom"


class SandboxKilled(SandboxError):
    """The sandbox was killed from outside (an operator, the engine, a crash of the backend)."""

    cause = "killed"


class SandboxOutputLimit(SandboxError):
    """The program wrote more output than allowed and was killed."""

    cause = "output_limit"


class SandboxStartFailed(SandboxError):
    """The sandbox could not be made or its program could not be started."""

    cause = "start"


class SandboxCancelled(SandboxError):
    """The caller asked for the end of the sandbox (Ctrl-C)."""

    exit_code = ExitCode.INTERRUPTED
    cause = "cancelled"


class SystemFailed(LabError):
    """A retrieval system could not answer a query; an error of that topic, never a miss."""

    exit_code = ExitCode.ERROR_BUDGET


class EmbeddingFailed(LabError):
    """An embedder gave no vectors.

    Attributes:
        cause: ``timeout``, ``server_gone``, ``model_missing`` or ``bad_answer``.
    """

    exit_code = ExitCode.ENVIRONMENT

    def __init__(self, message: str, mend: str = "", *, cause: str) -> None:
        super().__init__(message, mend)
        self.cause = cause
