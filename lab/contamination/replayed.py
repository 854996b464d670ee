"""Whether a replay came to the verdicts of the run that it replays."""

from __future__ import annotations

from dataclasses import dataclass

from lab.contamination.suite import Suite
from lab.records import Stage, TrialResult


@dataclass(frozen=True)
class Replayed:
    """A replay beside its recording.

    Attributes:
        equal: Trials with the same status, cause and verdicts.
        differing: The others that have a result on both sides, each with what differs.
        without: Trials without a result in the recording or in the replay; nothing is said of them.
    """

    equal: tuple[str, ...]
    differing: dict[str, str]
    without: tuple[str, ...]


def beside_recording(replay: Suite, recording: Suite) -> Replayed:
    """Compares the results of a replay with those of its recording, trial by trial.

    Raises:
        InputError: A result is damaged.
    """
    equal, differing, without = [], {}, []
    for trial in replay.trials:
        now, then = replay.result(trial), recording.result(trial) if trial in recording.trials else None
        if now is None or then is None:
            without.append(trial)
        elif difference := _difference(then, now):
            differing[trial] = difference
        else:
            equal.append(trial)
    return Replayed(tuple(equal), differing, tuple(without))


def _difference(then: TrialResult, now: TrialResult) -> str:
    if (then.status, then.cause) != (now.status, now.cause):
        was, is_now = (f"{r.status} {r.cause}".strip() for r in (then, now))
        return f"was {was} and is {is_now}: {now.detail}" if now.detail else f"was {was} and is {is_now}"
    for stage in Stage:
        if then.value(stage) is not now.value(stage):
            return f"{stage} was {then.value(stage)} and is {now.value(stage)}"
    return ""
