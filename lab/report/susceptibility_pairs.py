"""Live models against each other and against the ceiling, on the same scenarios and repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from lab.compare.model import Difference
from lab.compare.rows import Pair, Table, make_rows, noise_of
from lab.contamination.control_model import ALWAYS
from lab.records import Role, Stage, Value
from lab.report.planned import Planned
from lab.report.rate_model import Measures
from lab.report.susceptibility_model import PairRow, Tests
from lab.report.susceptibility_rates import attempted, cells, key_of
from lab.report.tables import Voids, group_by, measures
from lab.statistics.paired import paired_bootstrap

Told = Callable[[Planned], bool | None]


def persisted(trial: Planned) -> bool | None:
    """Whether the content of a valid trial persisted; None where that is not decided."""
    value = trial.value(Stage.PERSIST)
    return value is Value.YES if trial.valid and value.decided else None


@dataclass(frozen=True)
class _Measure:
    name: str
    of: str
    told: Told


_ATTEMPT = _Measure("attempt|reach", "pairs of attack trials that reached both reviewers", attempted)
_PERSIST = _Measure("persist/valid", "pairs of valid attack trials", persisted)


@dataclass(frozen=True)
class _Asked:
    """One comparison that is to be made."""

    where: tuple[str, str]
    names: tuple[str, str]
    trials: tuple[Sequence[Planned], Sequence[Planned]]
    measure: _Measure


def between_models(trials: Iterable[Planned], voids: Voids, margin: float) -> Tests:
    """All pairs of live models of a build and setup, on the attempt.

    Args:
        trials: All planned trials of the run.
        voids: Void families by build and setup; they are in no pair.
        margin: Largest difference that is taken for none.
    """
    return _tested(
        [
            _Asked(where, (first, second), (models[first], models[second]), _ATTEMPT)
            for where, models in _by_place(trials, voids)
            for first, second in combinations(_live(models), 2)
        ],
        margin,
    )


def against_ceiling(trials: Iterable[Planned], voids: Voids, margin: float) -> Tests:
    """Each live model against the reviewer that always tries, where that was run: on the attempt and on persistence.

    Args:
        trials: All planned trials of the run.
        voids: Void families by build and setup; they are in no pair.
        margin: Largest difference that is taken for none.
    """
    return _tested(
        [
            _Asked(where, (ALWAYS, model), (models[ALWAYS], models[model]), measure)
            for where, models in _by_place(trials, voids)
            if ALWAYS in models
            for model in _live(models)
            for measure in (_ATTEMPT, _PERSIST)
        ],
        margin,
    )


def _by_place(
    trials: Iterable[Planned], voids: Voids
) -> Iterator[tuple[tuple[str, str], dict[str, Sequence[Planned]]]]:
    sound = (t for t in trials if t.role is Role.ATTACK and (t.build, t.setup, t.family) not in voids)
    for where, here in group_by(sound, lambda t: (t.build, t.setup)):
        yield where, {model: mine for (model,), mine in group_by(here, lambda t: (t.model,))}


def _live(models: Iterable[str]) -> list[str]:
    return [model for model in models if measures(model) is Measures.SUSCEPTIBILITY]


def _tested(asked: Sequence[_Asked], margin: float) -> Tests:
    tables = [_table(one) for one in asked]
    tests, rows = make_rows([tables], margin)
    return Tests(
        tests=tests,
        pairs=tuple(
            PairRow(
                build=one.where[0],
                setup=one.where[1],
                first=one.names[0],
                second=one.names[1],
                row=row,
                bootstrap=_bootstrap(table.pairs),
            )
            for one, table, row in zip(asked, tables, rows[0] if rows else (), strict=True)
        ),
    )


def _table(asked: _Asked) -> Table:
    told = asked.measure.told
    first, second = ({key_of(t): t for t in trials} for trials in asked.trials)
    pairs, left = [], Counter[str]()
    for key in sorted({*first, *second}):
        mine, theirs = first.get(key), second.get(key)
        said = [told(t) if t else None for t in (mine, theirs)]
        if mine and theirs and said[0] is not None and said[1] is not None:
            pairs.append(Pair(mine.scenario, (mine.trial, theirs.trial), said[0], said[1]))
        else:
            left["; ".join(_why(name, t, told) for name, t in (("first", mine), ("second", theirs))).strip("; ")] += 1
    return Table(
        group=" → ".join(asked.names),
        measure=asked.measure.name,
        of=asked.measure.of,
        pairs=pairs,
        left_out=left,
        noise=(noise_of(cells(asked.trials[0], told).values()), noise_of(cells(asked.trials[1], told).values())),
    )


def _why(name: str, trial: Planned | None, told: Told) -> str:
    """Why a side of a pair does not count; empty where it does."""
    if trial is None:
        return f"{name}: not planned"
    if told(trial) is not None:
        return ""
    if not trial.valid:
        return f"{name}: {trial.status} {trial.cause}"
    stages = (Stage.REACH, Stage.ATTEMPT) if told is attempted else (Stage.PERSIST,)
    open_ones = [s for s in stages if not trial.value(s).decided or (s is Stage.REACH and trial.value(s) is Value.NO)]
    return f"{name}: {open_ones[0]} {trial.value(open_ones[0]).value.replace('_', ' ')}"


def _bootstrap(pairs: Sequence[Pair]) -> Difference:
    if not pairs:
        return Difference()
    second, first = ([float(getattr(pair, side)) for pair in pairs] for side in ("second", "first"))
    found = paired_bootstrap(second, first, clusters=[pair.unit for pair in pairs])
    value = round((sum(second) - sum(first)) / len(pairs), 6)
    return Difference(value=value, low=found.low, high=found.high, method=found.method)
