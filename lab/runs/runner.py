"""Works off a list of trials in parallel; safe against Ctrl-C, errors of single trials and a full disk."""

from __future__ import annotations

import errno
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from lab.errors import EnvironmentUnusable, SandboxCancelled

ERROR_BUDGET = 0.1
"""Share of planned trials, or of topics asked, that may end in an error where nothing else is said."""

LISTEN_S = 0.5
"""Longest that the main thread waits before it looks for a Ctrl-C."""


@dataclass(frozen=True)
class Ended:
    """How one attempt at a trial ended; all else about it is on disk.

    Attributes:
        status: ``valid``, ``invalid`` or ``error``.
        cause: Stable code of why it is not valid.
    """

    status: str
    cause: str = ""


Execute = Callable[[str, threading.Event], Ended]
"""Runs one trial by its id until its result is on disk."""

Again = Callable[[str, Ended], float | None]
"""Whether a trial is to be tried again: the seconds to start nothing before, or None where its end is final."""


@dataclass(frozen=True)
class Progress:
    """One step of a run, for whoever shows it.

    Attributes:
        trial: Id of the trial that ended.
        status: ``valid``, ``invalid`` or ``error``.
        done: Trials whose end is final, of ``total``.
        total: All trials of the plan.
        again: Whether it will be tried again, so that this end does not count.
    """

    trial: str
    status: str
    done: int
    total: int
    again: bool = False


def run_trials(
    pending: Sequence[str],
    execute: Execute,
    *,
    workers: int,
    total: int,
    on_progress: Callable[[Progress], None] = lambda _: None,
    again: Again = lambda *_: None,
    stop: threading.Event | None = None,
) -> bool:
    """Runs trials, at most ``workers`` at once; nothing but the ids that still wait is kept of them.

    Args:
        pending: Ids of trials without a final result, in the order in which they are to be started.
        execute: Runs one of them.
        workers: Trials at once.
        total: All trials of the plan, for progress.
        on_progress: Told of each end.
        again: Asked after each end. What is tried again is started after all others.
        stop: Start no further trial once this is set; those under way end by themselves.

    Returns:
        True when all ran; False when interrupted by Ctrl-C. What has ended is on disk either way.

    Raises:
        EnvironmentUnusable: The machine gave out (a full disk, a lost engine); trials that had ended are kept.
    """
    cancel = threading.Event()
    done = total - len(pending)
    queue = deque(pending)
    running: dict[Future[Ended], str] = {}
    failure: BaseException | None = None
    interrupted = False
    not_before = 0.0
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="trial") as pool:
        while True:
            try:
                pause = not_before - time.monotonic()
                halted = cancel.is_set() or (stop is not None and stop.is_set())
                while queue and len(running) < workers and not halted and pause <= 0:
                    trial = queue.popleft()
                    running[pool.submit(execute, trial, cancel)] = trial
                if not running:
                    if halted or not queue:
                        break
                    time.sleep(min(max(pause, 0), LISTEN_S))
                    continue
                # Never without an end: a signal that comes between the interpreter's check and the wait itself,
                # or that another thread is given, does not wake this one.
                ended, _ = wait(running, min(pause, LISTEN_S) if queue and pause > 0 else LISTEN_S, FIRST_COMPLETED)
                for future in ended:
                    trial = running.pop(future)
                    try:
                        end = future.result()
                    except SandboxCancelled:
                        continue
                    except Exception as error:
                        failure = failure or error
                        cancel.set()
                        continue
                    seconds = again(trial, end)
                    if seconds is not None:
                        queue.append(trial)
                        not_before = max(not_before, time.monotonic() + seconds)
                    else:
                        done += 1
                    on_progress(Progress(trial, end.status, done, total, again=seconds is not None))
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
