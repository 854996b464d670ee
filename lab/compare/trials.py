"""Pairs the trials of two sides: tables by model and measure, what they are made of, and the cells that flipped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lab.compare.locks import PARTS, Contrasted, body_of
from lab.compare.measures import MEASURES, Measure, is_declared
from lab.compare.model import Change, Contrast, Dimension, Flip, Part, Place, Row, Side
from lab.compare.rows import Pair, Table, counts, noise_of
from lab.compare.sides import Trial, Trials
from lab.records import Value

TrialPair = tuple[Trial, Trial]


@dataclass(frozen=True)
class Paired:
    """Two sides, paired.

    Attributes:
        sides: The baseline and the other.
        contrasted: How their locks differ.
        pairs: Pairs of planned trials, in the order of their keys.
        alone: Trials without a partner, by cause.
    """

    sides: tuple[Side, Side]
    contrasted: Contrasted
    pairs: Sequence[TrialPair]
    alone: Counter[str]

    @classmethod
    def of(cls, sides: tuple[Side, Side], first: Trials, second: Trials, contrasted: Contrasted) -> Paired:
        """Pairs every trial with the one of the same cell and repeat across the dimension."""
        dimension = contrasted.dimension
        alone: Counter[str] = Counter()
        theirs = {trial.key(dimension): trial for trial in second.trials}
        pairs = []
        for trial in first.trials:
            other = theirs.pop(trial.key(dimension), None)
            if other is None:
                alone[f"{sides[0].letter}: no such cell or repeat in {sides[1].letter}"] += 1
            elif what := _another(dimension, (first, trial), (second, other)):
                alone[f"both: another {what} of the same name"] += 1
            else:
                pairs.append((trial, other))
        alone[f"{sides[1].letter}: no such cell or repeat in {sides[0].letter}"] += len(theirs)
        pairs.sort(key=lambda pair: pair[0].key(dimension))
        return cls(sides, contrasted, pairs, +alone)

    @property
    def dimension(self) -> Dimension:
        """In what the sides differ."""
        return self.contrasted.dimension

    def tables(self) -> list[Table]:
        """A table for each model and measure that has a pair of the measure's role."""
        return [
            self._table(group, measure, mine)
            for group, pairs in self._groups()
            for measure in MEASURES
            if (mine := [pair for pair in pairs if pair[0].role is measure.role])
        ]

    def contrast(self, rows: tuple[Row, ...]) -> Contrast:
        """The contrast, with the rows that were made of its tables."""
        return Contrast(
            first=self.sides[0],
            second=self.sides[1],
            dimension=self.dimension,
            compared=self.contrasted.compared,
            remaining=self.contrasted.others,
            pairs=len(self.pairs),
            alone=counts(self.alone),
            rows=rows,
            parts=tuple(self._parts()),
            flips=tuple(self._flips()),
        )

    def _groups(self) -> Iterator[tuple[str, list[TrialPair]]]:
        """Pairs by model: models measure different things and are never added up."""
        if self.dimension is Dimension.MODEL:
            yield f"{self.sides[0].name} → {self.sides[1].name}", list(self.pairs)
            return
        found: dict[str, list[TrialPair]] = defaultdict(list)
        for pair in self.pairs:
            found[pair[0].model].append(pair)
        yield from sorted(found.items())

    def _table(self, group: str, measure: Measure, pairs: Sequence[TrialPair]) -> Table:
        counted = [(pair, _decided(measure, pair)) for pair in pairs]
        return Table(
            group=group,
            measure=measure.name,
            of=measure.of,
            pairs=[
                Pair(pair[0].scenario, (pair[0].trial, pair[1].trial), *both)
                for pair, both in counted
                if both is not None
            ],
            left_out=Counter(self._why(measure, pair) for pair, both in counted if both is None),
            noise=(noise_of(_cells(measure, (a for a, _ in pairs))), noise_of(_cells(measure, (b for _, b in pairs)))),
            declared=is_declared(measure, pairs[0][0].model, self.dimension),
        )

    def _why(self, measure: Measure, pair: TrialPair) -> str:
        told = []
        for side, trial in zip(self.sides, pair, strict=True):
            why = trial.absence
            if not why and trial.result and measure.holds(trial.result) is None:
                verdict = trial.result.verdicts[measure.stage]
                why = f"{measure.stage} {verdict.value} ({verdict.reason[:120]})"
            if why:
                told.append(f"{side.letter}: {why}")
        return "; ".join(told)

    def _parts(self) -> Iterator[Part]:
        for group, pairs in self._groups():
            found: dict[tuple[str, str, str], list[TrialPair]] = defaultdict(list)
            for pair in pairs:
                found[self._of_both(pair, "build"), self._of_both(pair, "setup"), pair[0].family].append(pair)
            for (build, setup, family), mine in sorted(found.items()):
                for measure in MEASURES:
                    decided = [
                        both for pair in mine if (both := _decided(measure, pair)) and pair[0].role is measure.role
                    ]
                    if decided:
                        yield Part(
                            group=group,
                            measure=measure.name,
                            build=build,
                            setup=setup,
                            family=family,
                            n=len(decided),
                            first=sum(before for before, _ in decided),
                            second=sum(after for _, after in decided),
                            only_first=sum(before and not after for before, after in decided),
                            only_second=sum(after and not before for before, after in decided),
                        )

    def _of_both(self, pair: TrialPair, part: str) -> str:
        names = dict.fromkeys(str(getattr(trial, part)) for trial in pair)
        return " → ".join(names)

    def _flips(self) -> Iterator[Flip]:
        for pair in self.pairs:
            changes = tuple(
                Change(measure=measure.name, before=_word(both[0]), after=_word(both[1]))
                for measure in MEASURES
                if pair[0].role is measure.role and (both := _decided(measure, pair)) and both[0] is not both[1]
            )
            if changes:
                where = [self._of_both(pair, dimension.value) for dimension in PARTS]
                yield Flip(
                    what=pair[0].scenario,
                    role=pair[0].role.value,
                    where=" · ".join((*where, f"repeat {pair[0].repeat}")),
                    changes=changes,
                    first=_place(self.sides[0], pair[0]),
                    second=_place(self.sides[1], pair[1]),
                )


def _another(dimension: Dimension, first: tuple[Trials, Trial], second: tuple[Trials, Trial]) -> str:
    """What of two cells of the same names is not the same; empty where all of it is."""
    (side, trial), (other_side, other) = first, second
    if side.lock["scenarios"][trial.scenario] != other_side.lock["scenarios"][other.scenario]:
        return "scenario"
    for part in PARTS:
        mine, theirs = getattr(trial, part.value), getattr(other, part.value)
        if part is not dimension and body_of(part, side.lock, mine) != body_of(part, other_side.lock, theirs):
            return part.value
    return ""


def _decided(measure: Measure, pair: TrialPair) -> tuple[bool, bool] | None:
    """Whether each side counts; None unless both are valid and decided."""
    first, second = (_holds(measure, trial) for trial in pair)
    return None if first is None or second is None else (first, second)


def _holds(measure: Measure, trial: Trial) -> bool | None:
    return None if trial.absence or trial.result is None else measure.holds(trial.result)


def _cells(measure: Measure, trials: Iterable[Trial]) -> list[list[bool]]:
    """The decided verdicts of each cell's repeats."""
    found: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for trial in trials:
        if (held := _holds(measure, trial)) is not None:
            found[trial.scenario, trial.build, trial.setup, trial.model].append(held)
    return list(found.values())


def _word(held: bool) -> str:
    return Value.YES.value if held else Value.NO.value


def _place(side: Side, trial: Trial) -> Place:
    return Place(letter=side.letter, label=trial.trial, path=f"trials/{trial.trial}")
