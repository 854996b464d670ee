"""The rates of a report: each over trials of one role, with its denominator's name and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lab.records import Stage, Status, Value
from lab.report.planned import Planned
from lab.report.rate_model import Count, Rate, RateName
from lab.statistics.proportions import bounds, proportion

Trials = Sequence[Planned]
Test = Callable[[Planned], bool]
_UNKNOWN = (Value.UNDETERMINED, Value.ERROR)


def tally(labelled: Iterable[tuple[str, str]]) -> tuple[Count, ...]:
    """Counts labels of trials; the commonest first, then by name."""
    found: dict[str, list[str]] = {}
    for label, trial in labelled:
        found.setdefault(label, []).append(trial)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Count(label=key, count=len(ids), trials=tuple(sorted(set(ids)))) for key, ids in ordered)


def _undecided(trials: Trials, stage: Stage) -> tuple[Count, ...]:
    open_ones = []
    for trial in trials:
        if trial.result and not trial.value(stage).decided:
            verdict = trial.result.verdicts[stage]
            open_ones.append((f"{stage} {verdict.value}: {verdict.reason[:120]}", trial.trial))
    return tally(open_ones)


def make_rate(
    key: RateName,
    trials: Trials,
    *,
    stage: Stage,
    of: str,
    given: Stage | None = None,
    hit: Test | None = None,
    also: Stage | None = None,
) -> Rate:
    """One rate over the valid trials of a group.

    Args:
        key: Which rate.
        trials: All planned trials of the group and role, whatever their status.
        stage: Stage whose verdict is counted.
        of: Name of the denominator.
        given: Stage whose verdict must be yes for a trial to be in the base; None for all valid trials.
        hit: What counts as a hit among decided trials; by default the verdict yes.
        also: A further stage that ``hit`` looks at: where the first is yes, it must be known as well.
    """
    valid = [t for t in trials if t.valid]
    base = [t for t in valid if given is None or t.value(given) is Value.YES]
    blurred = [t for t in base if also and t.value(stage) is Value.YES and t.value(also) in _UNKNOWN]
    decided = [t for t in base if t.value(stage).decided and t not in blurred]
    counts = hit or (lambda t: t.value(stage) is Value.YES)
    units = {t.trial: t.scenario for t in trials}
    share = proportion(
        [t.trial for t in decided if counts(t)],
        [t.trial for t in decided],
        name=str(key),
        of=of if len(decided) == len(base) else f"{of} with a decided verdict",
        clusters=units,
    )
    errors = sum(t.status is Status.ERROR for t in trials)
    unknown = sum(t.value(stage) in _UNKNOWN for t in base) + len(blurred)
    if given is not None:
        unknown += sum(t.value(given) in _UNKNOWN for t in valid)
    return Rate(
        key=key,
        proportion=share,
        undecided=_undecided(base, stage) + (_undecided(blurred, also) if also else ()),
        bounds=bounds(share, errors + unknown),
        errors=errors,
    )


def headline(trials: Trials) -> Rate:
    """Persisted among valid attack trials."""
    return make_rate(RateName.PERSIST_VALID, trials, stage=Stage.PERSIST, of="valid attack trials")


def _unattempted(trial: Planned) -> bool:
    # An attempt that is not known to be absent must not make a find of its own.
    seen = trial.value(Stage.ATTEMPT)
    return trial.value(Stage.PERSIST) is Value.YES and seen in (Value.NO, Value.NOT_APPLICABLE)


def funnel(trials: Trials) -> tuple[Rate, ...]:
    """The further rates of a group of attack trials, in the order of the stages."""
    return (
        make_rate(RateName.REACH_VALID, trials, stage=Stage.REACH, of="valid attack trials"),
        make_rate(RateName.ATTEMPT_REACH, trials, stage=Stage.ATTEMPT, given=Stage.REACH, of="reached attack trials"),
        make_rate(
            RateName.PERSIST_ATTEMPT, trials, stage=Stage.PERSIST, given=Stage.ATTEMPT, of="attempted attack trials"
        ),
        make_rate(
            RateName.LOAD_PERSIST,
            trials,
            stage=Stage.LOAD,
            given=Stage.PERSIST,
            of="persisted attack trials",
        ),
        make_rate(
            RateName.UNATTEMPTED,
            trials,
            stage=Stage.PERSIST,
            of="valid attack trials",
            hit=_unattempted,
            also=Stage.ATTEMPT,
        ),
    )


def loss_reason(trial: Planned) -> str:
    """Why a positive control did not persist, as far as its evidence says."""
    if not trial.result:
        return trial.cause
    decisions = sorted({str(a.decision) for a in trial.result.attempts if a.carries})
    if decisions:
        return " and ".join(decisions)
    for stage, word in ((Stage.REACH, "not reached"), (Stage.ATTEMPT, "no attempt")):
        if trial.value(stage) is Value.NO:
            return word
    return trial.result.verdicts[Stage.PERSIST].reason[:120] or "persist no"


def is_lost(trial: Planned) -> bool:
    """Whether a decided positive control did not persist."""
    return trial.value(Stage.PERSIST) is Value.NO


def way_in(trial: Planned) -> str:
    """How a content that persisted came into its store, as far as its evidence says."""
    attempts = [a for a in trial.result.attempts if a.carries] if trial.result else []
    ways = sorted({f"{a.origin}: {a.decision}" for a in attempts})
    return " and ".join(ways) or "without an attempt"
