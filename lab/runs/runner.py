"""Works off a list of trials in parallel; safe against Ctrl-C, errors of single trials and a full disk."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from lab.errors import EnvironmentUnusable, SandboxCancelled

Execute = Callable[[str, threading.Event], str]
"""Runs one trial by its id until its result is on disk; returns ``valid``, ``invalid`` or ``error``."""


@dataclass(frozen=True)
class Progress:
    """One step of a run, for whoever shows it.

    Attributes:
        trial: Id of the trial that ended.
        status: ``valid``, ``invalid`` or ``error``.
        done: Trials that have a result, of ``total``.
        total: All trials of the plan.
    """

    trial: str
    status: str
    done: int
    total: int


def run_trials(
    pending: Sequence[str],
    execute: Execute,
    *,
    workers: int,
    total: int,
    on_progress: Callable[[Progress], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> bool:
    """Runs trials, at most ``workers`` at once.

    Args:
        pending: Ids of trials without a result, in order.
        execute: Runs one of them.
        workers: Trials at once.
        total: All trials of the plan, for progress.
        on_progress: Told of each end.
        stop: Start no further trial once this is set; those under way end by themselves.

    Returns:
        True when all ran; False when interrupted by Ctrl-C. What has ended is on disk either way.

    Raises:
        EnvironmentUnusable: The machine gave out (a full disk, a lost engine); trials that had ended are kept.
    """
    cancel = threading.Event()
    done = total - len(pending)
    queue = list(pending)
    running: dict[Future[str], str] = {}
    failure: BaseException | None = None
    interrupted = False
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="trial") as pool:
        while True:
            try:
                while queue and len(running) < workers and not (cancel.is_set() or (stop and stop.is_set())):
                    trial = queue.pop(0)
                    running[pool.submit(execute, trial, cancel)] = trial
                if not running:
                    break
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    trial = running.pop(future)
                    try:
                        status = future.result()
                    except SandboxCancelled:
                        continue
                    except Exception as error:
                        failure = failure or error
                        cancel.set()
                        continue
                    done += 1
                    on_progress(Progress(trial, status, done, total))
            except KeyboardInterrupt:
                interrupted = True
                cancel.set()
    if failure:
        raise _explain(failure) from failure
    return not interrupted


def _explain(failure: BaseException) -> BaseException:
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" ({failure.filename})" if failure.filename else ""
        return EnvironmentUnusable(
            f"the disk is full{where}", "free some space, then: lab resume; ended trials are kept"
        )
    return failure
