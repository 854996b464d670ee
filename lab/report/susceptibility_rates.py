"""The rates of live models: attempts by slice beside the ceiling, twins, controls, noise, answers, tokens and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.contamination.control_model import ALWAYS
from lab.records import ModelUse, Role, Stage, Value
from lab.report.planned import Planned, account
from lab.report.rate_model import Measures, RateName
from lab.report.rates import make_rate, tally
from lab.report.susceptibility_model import Answers, LiveRow, Position, Slice, Slicing, Split, Tried, Use
from lab.report.susceptibility_words import reading
from lab.report.tables import Voids, group_by, measures
from lab.statistics.proportions import Proportion, proportion

Trials = Sequence[Planned]
_Key = tuple[str, Role, int]
_UNTOLD = "not known (no result)"


def key_of(trial: Planned) -> _Key:
    """By which trials of two models are the same: scenario, role and repeat."""
    return trial.scenario, trial.role, trial.repeat


def live_rows(trials: Trials, voids: Voids) -> tuple[LiveRow, ...]:
    """A row for each live model in each setup and build.

    Args:
        trials: All planned trials of the run.
        voids: Void families by build and setup.
    """
    told = _described(trials)
    rows = []
    for (build, setup), here in group_by(trials, lambda t: (t.build, t.setup)):
        ceiling = {key_of(t): t for t in here if t.model == ALWAYS}
        void = {t.family: voids[build, setup, t.family] for t in here if (build, setup, t.family) in voids}
        live = (t for t in here if measures(t.model) is Measures.SUSCEPTIBILITY)
        for (model,), mine in group_by(live, lambda t: (t.model,)):
            rows.append(_row((build, setup, model), mine, ceiling, void, told))
    return tuple(rows)


def _row(
    where: tuple[str, str, str],
    mine: Trials,
    ceiling: Mapping[_Key, Planned],
    void: Mapping[str, tuple[str, ...]],
    told: Mapping[str, tuple[str, str]],
) -> LiveRow:
    build, setup, model = where
    attacks = [t for t in mine if t.role is Role.ATTACK]
    sound = [t for t in attacks if t.family not in void]
    labels: dict[Slicing, Callable[[Planned], str]] = {
        Slicing.FAMILY: lambda t: t.family,
        Slicing.DELIVERY: lambda t: told.get(t.scenario, (_UNTOLD, _UNTOLD))[0],
        Slicing.LANGUAGE: lambda t: told.get(t.scenario, (_UNTOLD, _UNTOLD))[1],
        Slicing.POSITION: position,
    }
    row = LiveRow(
        build=build,
        setup=setup,
        model=model,
        families=tuple(sorted({t.family for t in sound})),
        left_out=tuple(sorted({t.family for t in attacks if t.family in void})),
        whole=_slice("all", sound, ceiling),
        splits=tuple(
            Split(by=by, slices=tuple(_slices(attacks if by is Slicing.FAMILY else sound, label, ceiling, void)))
            for by, label in labels.items()
        ),
        twins=_beside("twins", [t for t in mine if t.role is Role.TWIN and t.family not in void]),
        controls=_beside("positive controls", [t for t in mine if t.role is Role.CONTROL]),
        flips=flips(sound),
        repeats=max((t.repeat for t in mine), default=1),
        answers=_answers(mine),
        use=_use(mine),
        reading=(),
    )
    return row.model_copy(update={"reading": tuple(reading(row))})


def _described(trials: Iterable[Planned]) -> dict[str, tuple[str, str]]:
    """Delivery and language of each scenario that has a result under any model: a trial without one has them, too."""
    return {t.scenario: (t.result.delivery[:80], t.result.language[:40]) for t in trials if t.result}


def position(trial: Planned) -> Position:
    """In which third of the review's message list the content stood; see ``Position``."""
    reached = trial.value(Stage.REACH) if trial.valid else Value.ERROR
    if reached is Value.NO:
        return Position.NOT_REACHED
    stood = trial.result.reach if trial.result and reached is Value.YES else None
    if stood is None or not 0 <= stood.position < stood.messages:
        return Position.UNKNOWN
    thirds = (Position.EARLY, Position.MIDDLE, Position.LATE)
    return thirds[3 * stood.position // stood.messages]


def _slices(
    trials: Trials,
    label: Callable[[Planned], str],
    ceiling: Mapping[_Key, Planned],
    void: Mapping[str, tuple[str, ...]],
) -> Iterable[Slice]:
    places = list(Position)
    for (name,), mine in sorted(
        group_by(trials, lambda t: (label(t),)),
        key=lambda item: (places.index(Position(item[0][0])) if item[0][0] in places else -1, item[0][0]),
    ):
        # Only the split by family holds void families, and there a slice is of one.
        yield _slice(str(name), mine, ceiling, void.get(mine[0].family, ()))


def _slice(label: str, mine: Trials, ceiling: Mapping[_Key, Planned], void: tuple[str, ...] = ()) -> Slice:
    same = [ceiling[key_of(t)] for t in mine if key_of(t) in ceiling]
    return Slice(
        label=label,
        **dict(_attacks("attack trials", mine)),
        stopped=tally(
            (str(attempt.decision), t.trial)
            for t in mine
            if t.valid and t.result and t.value(Stage.ATTEMPT) is Value.YES and t.value(Stage.PERSIST) is Value.NO
            for attempt in t.result.attempts
            if attempt.carries
        ),
        ceiling=_attacks("attack trials under the ceiling", same) if same else None,
        void=void,
    )


def _attacks(name: str, trials: Trials) -> Tried:
    return Tried(
        accounting=account(name, trials),
        attempt=make_rate(
            RateName.ATTEMPT_REACH, trials, stage=Stage.ATTEMPT, given=Stage.REACH, of="reached attack trials"
        ),
        persist=make_rate(
            RateName.PERSIST_ATTEMPT, trials, stage=Stage.PERSIST, given=Stage.ATTEMPT, of="attempted attack trials"
        ),
    )


def _beside(name: str, trials: Trials) -> Tried:
    of = f"valid {name}"
    return Tried(
        accounting=account(name, trials),
        attempt=make_rate(RateName.ATTEMPT_VALID, trials, stage=Stage.ATTEMPT, of=of),
        persist=make_rate(RateName.PERSIST_VALID, trials, stage=Stage.PERSIST, of=of),
    )


def attempted(trial: Planned) -> bool | None:
    """Whether a valid, reached trial attempted the write; None where it was not reached or that is not decided."""
    if not trial.valid or trial.value(Stage.REACH) is not Value.YES or not trial.value(Stage.ATTEMPT).decided:
        return None
    return trial.value(Stage.ATTEMPT) is Value.YES


def cells(trials: Iterable[Planned], told: Callable[[Planned], bool | None]) -> dict[str, list[bool]]:
    """What the repeats of each cell say, by scenario, where it is decided; all of one build, setup, model and role."""
    found: dict[str, list[bool]] = {}
    for trial in trials:
        if (said := told(trial)) is not None:
            found.setdefault(trial.scenario, []).append(said)
    return found


def flips(trials: Trials) -> Proportion:
    """The noise floor: cells whose repeats disagree on the attempt, among cells with two decided repeats at least."""
    several = {scenario: said for scenario, said in cells(trials, attempted).items() if len(said) > 1}
    return proportion(
        [scenario for scenario, said in several.items() if len(set(said)) > 1],
        several,
        name="repeats disagree",
        of="reached attack cells with repeats",
    )


def _answers(trials: Trials) -> Answers:
    valid = [t for t in trials if t.valid]
    used = [(t, t.result.model_use) for t in valid if t.result and t.result.model_use]
    answers, calls = "answers to reviews", "tool calls in answers to reviews"
    return Answers(
        refusals=_share(used, lambda u: (u.refusals, u.review_answers), "declined in words", answers),
        unparsable=_share(used, lambda u: (u.unparsable_calls, u.calls), "arguments are no JSON object", calls),
        unknown_tools=_share(used, lambda u: (u.unknown_tools, u.calls), "tool was not offered", calls),
        silent=len(valid) - len(used),
    )


def _share(
    used: Iterable[tuple[Planned, ModelUse]], counted: Callable[[ModelUse], tuple[int, int]], name: str, of: str
) -> Proportion:
    """A share of answers or calls, which are nested in trials and these in scenarios."""
    hits: list[str] = []
    base: list[str] = []
    units: dict[str, str] = {}
    for trial, use in used:
        k, n = counted(use)
        mine = [f"{trial.trial}#{number}" for number in range(n)]
        hits += mine[:k]
        base += mine
        units |= dict.fromkeys(mine, trial.scenario)
    return proportion(hits, base, name=name, of=of, clusters=units)


def _use(trials: Trials) -> Use:
    used = [t.result.model_use for t in trials if t.result and t.result.model_use]
    tokens = sum(u.prompt_tokens + u.completion_tokens for u in used)
    seconds = round(sum(u.seconds for u in used), 3)
    return Use(
        trials=len(used),
        requests=sum(u.requests for u in used),
        prompt_tokens=sum(u.prompt_tokens for u in used),
        completion_tokens=sum(u.completion_tokens for u in used),
        uncounted=sum(u.uncounted for u in used),
        seconds=seconds,
        tokens_per_trial=round(tokens / len(used), 1) if used else None,
        seconds_per_trial=round(seconds / len(used), 2) if used else None,
    )
