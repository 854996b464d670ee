"""Compares benchmark runs on the same sets and snapshots: paired by topic, arm by arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lab
from lab.compare.contamination import check_sides
from lab.compare.locks import Incomparable
from lab.compare.model import (
    Change,
    Comparison,
    Contrast,
    Difference,
    Dimension,
    Flip,
    MeanRow,
    Place,
    Row,
    Side,
    Verdict,
)
from lab.compare.rows import ALPHA, Pair, Table, counts, make_rows, within
from lab.errors import InputError
from lab.retrieval.metrics.compare import compare_arms
from lab.retrieval.metrics.ranks import RankCounts
from lab.retrieval.metrics.scores import ranks_of
from lab.retrieval.results import LOCK, ComparisonRow
from lab.retrieval.rows import TopicRow, read_rows, rows_file
from lab.runs.folder import RunFolder
from lab.runs.lock import differences
from lab.statistics.proportions import LEVEL, PLACES

KIND = "bench"
HIT1, HIT5, MRR10 = "Hit@1", "Hit@5", "MRR@10"
_HITS = {HIT1: 1, HIT5: 5}
_ASIDE = frozenset({"schema_version", "run_id", "created", "host", "sets", "arms", "pairs"})
_SAME = ("k", "tie_rule", "keyword_rule")
"""Parts of a lock that decide what a ranking is judged by; in all others runs may differ, and are compared."""


@dataclass(frozen=True)
class _Run:
    """A benchmark run: its folder and lock, with sets and arms by name."""

    folder: RunFolder
    lock: Mapping[str, Any]
    sets: Mapping[str, Mapping[str, Any]]
    arms: Mapping[str, Mapping[str, Any]]

    @classmethod
    def open(cls, folder: RunFolder) -> _Run:
        lock = folder.read(LOCK)
        try:
            if lock["kind"] != "bench":
                raise InputError(f"{folder.path} is not the folder of a benchmark run", "give one made by lab bench")
            sets = {one["name"]: _judged_on(one) for one in lock["sets"]}
            return cls(folder, lock, sets, {arm["name"]: arm for arm in lock["arms"]})
        except (KeyError, TypeError) as error:
            raise InputError(f"{folder.path / LOCK} is damaged: {error}", "start a new run: lab bench") from error

    def rows(self, testset: str, arm: str) -> tuple[TopicRow, ...]:
        return read_rows(rows_file(self.folder.path, testset, arm))


def _judged_on(info: Mapping[str, Any]) -> dict[str, Any]:
    """What of a set must be the same: facts, topics and judgements, and the frozen databases."""
    return {"digest": info["digest"], "content": {store["store"]: store["content"] for store in info["stores"]}}


@dataclass(frozen=True)
class _Arm:
    """One arm on one set in both runs, over all answerable topics."""

    testset: str
    arm: str
    rows: tuple[tuple[TopicRow, ...], tuple[TopicRow, ...]]

    @property
    def group(self) -> str:
        return f"{self.testset} · {self.arm}"

    @property
    def topics(self) -> list[tuple[TopicRow, TopicRow]]:
        """Pairs of rows.

        Raises:
            InputError: The runs were not asked the same topics.
        """
        mine, theirs = ({row.topic: row for row in rows if row.answerable} for rows in self.rows)
        if mine.keys() != theirs.keys():
            odd = sorted(mine.keys() ^ theirs.keys())[0]
            raise InputError(
                f"{self.group}: topic {odd} has a row in one run alone", "run the benchmark again: lab bench"
            )
        return [(row, theirs[topic]) for topic, row in mine.items()]


def compare_benches(folders: Sequence[RunFolder], *, margin: float, common: bool = False) -> Comparison:
    """Compares benchmark runs with the first of them.

    Args:
        folders: Two finished runs at least.
        margin: Largest difference that is taken for none.
        common: Whether sets and arms that only one has are left out, instead of refused.

    Raises:
        Incomparable: Sets, snapshots, depth, rule of ties or of keywords differ, or the arms do.
        InputError: A folder is damaged, or nothing can be paired.
    """
    letters = check_sides([str(folder.path.resolve()) for folder in folders])
    runs = [_Run.open(folder) for folder in folders]
    sides = [
        Side(letter=letter, run=run.folder.run_id, name=run.folder.run_id)
        for letter, run in zip(letters, runs, strict=True)
    ]
    made = [
        _Contrast.of((sides[0], side), (runs[0], run), common=common)
        for side, run in zip(sides[1:], runs[1:], strict=True)
    ]
    tests, rows = make_rows([one.tables() for one in made], margin)
    return Comparison(
        lab_version=lab.__version__,
        kind=KIND,
        margin=margin,
        level=LEVEL,
        alpha=ALPHA,
        tests=tests,
        sides=tuple(sides),
        contrasts=tuple(one.contrast(mine, margin) for one, mine in zip(made, rows, strict=True)),
    )


@dataclass(frozen=True)
class _Contrast:
    """Two runs with the arms that both have."""

    sides: tuple[Side, Side]
    compared: tuple[str, ...]
    remaining: tuple[str, ...]
    arms: Sequence[_Arm]
    alone: Counter[str]

    @classmethod
    def of(cls, sides: tuple[Side, Side], runs: tuple[_Run, _Run], *, common: bool) -> _Contrast:
        first, second = runs
        others = tuple(_others(first, second))
        if others and not common:
            raise Incomparable(
                f"{first.folder.run_id} and {second.folder.run_id} cannot be compared: {others[0]}",
                "run both on the same sets and snapshots with the same arms, or compare what is common: --common",
                others,
            )
        fixed = [line for part in _SAME for line in differences(first.lock.get(part), second.lock.get(part), part)]
        if fixed:
            raise Incomparable(
                f"{first.folder.run_id} and {second.folder.run_id} judge rankings by other rules: {fixed[0]}",
                "run both with the same -k and the same version of the lab",
                tuple(fixed),
            )
        sets = [name for name, told in first.sets.items() if second.sets.get(name) == told]
        arms = [
            name
            for name, arm in first.arms.items()
            if name in second.arms and second.arms[name]["depth"] == arm["depth"]
        ]
        if not sets or not arms:
            raise InputError(
                f"{first.folder.run_id} and {second.folder.run_id} have no set and arm in common",
                "lab bench with the same --topics and --arms",
            )
        alone = Counter(
            {
                "sets that are not the same in both": len({*first.sets, *second.sets} - {*sets}),
                "arms that are not the same in both": len({*first.arms, *second.arms} - {*arms}),
            }
        )
        paired = [_Arm(name, arm, (first.rows(name, arm), second.rows(name, arm))) for name in sets for arm in arms]
        return cls(sides, tuple(_compared(first, second, arms)), others, paired, +alone)

    def tables(self) -> list[Table]:
        return [self._table(arm, measure) for arm in self.arms for measure in _HITS]

    def _table(self, arm: _Arm, measure: str) -> Table:
        answered = [pair for pair in arm.topics if not any(row.error for row in pair)]
        several = len({row.store for row, _ in answered}) > 1
        return Table(
            group=arm.group,
            measure=measure,
            of="answerable topics",
            pairs=[
                Pair(
                    row.store if several else row.topic,
                    (row.topic, row.topic),
                    *(_hit(one, _HITS[measure]) for one in (row, other)),
                )
                for row, other in answered
            ],
            left_out=Counter(
                "; ".join(
                    f"{side.letter}: {row.error}" for side, row in zip(self.sides, pair, strict=True) if row.error
                )
                for pair in arm.topics
                if any(row.error for row in pair)
            ),
            fewer_is_better=False,
            unit="stores" if several else "topics",
        )

    def contrast(self, rows: tuple[Row, ...], margin: float) -> Contrast:
        letters = [f"{side.letter} · " for side in self.sides]
        named = {letters[side] + arm.group: arm.rows[side] for arm in self.arms for side in (0, 1)}
        told = [compare_arms(named, [(letters[0] + arm.group, letters[1] + arm.group)])[0] for arm in self.arms]
        hits = {(row.group, row.measure): row for row in rows}
        means = tuple(_mean(arm, row, hits[arm.group, HIT1], margin) for arm, row in zip(self.arms, told, strict=True))
        return Contrast(
            first=self.sides[0],
            second=self.sides[1],
            dimension=Dimension.RUN,
            compared=self.compared,
            remaining=self.remaining,
            pairs=sum(len(arm.topics) for arm in self.arms),
            alone=counts(self.alone),
            rows=rows,
            means=means,
            flips=tuple(flip for arm in self.arms for flip in self._flips(arm)),
        )

    def _flips(self, arm: _Arm) -> Iterator[Flip]:
        for row, other in arm.topics:
            if row.error or other.error or all(_hit(row, k) == _hit(other, k) for k in _HITS.values()):
                continue
            path = f"rows/{arm.testset}/{arm.arm}.jsonl"
            places = [Place(letter=side.letter, label=path, path=path) for side in self.sides]
            yield Flip(
                what=row.topic,
                role=row.topic_class,
                where=arm.group,
                changes=(Change(measure="first relevant rank", before=_rank(row), after=_rank(other)),),
                first=places[0],
                second=places[1],
            )


def _hit(row: TopicRow, k: int) -> bool:
    return row.rank is not None and row.rank <= k


def _rank(row: TopicRow) -> str:
    return "none" if row.rank is None else str(row.rank)


def _mean(arm: _Arm, row: ComparisonRow, hit1: Row, margin: float) -> MeanRow:
    """MRR@10 with a verdict by the benchmark's rule: Hit@1 after Holm and the mean's interval have to agree."""
    told = row.mrr_difference  # first minus second
    value, low, high = (
        None if part is None else round(-part, PLACES) + 0.0 for part in (told.value, told.high, told.low)
    )
    difference = Difference(value=value, low=low, high=high, method=told.method)
    verdict = Verdict.CANNOT_TELL
    if hit1.verdict is Verdict.BETTER and low is not None and low > 0:
        verdict = Verdict.BETTER
    elif hit1.verdict is Verdict.WORSE and high is not None and high < 0:
        verdict = Verdict.WORSE
    elif hit1.verdict is Verdict.NONE_SHOWN and within(difference, margin):
        verdict = Verdict.NONE_SHOWN
    answered = [pair for pair in arm.topics if not any(one.error for one in pair)]
    means = [RankCounts.of(ranks_of([pair[side] for pair in answered])).mrr for side in (0, 1)]
    first, second = (None if mean is None else round(float(mean), PLACES) for mean in means)
    return MeanRow(
        group=arm.group, measure=MRR10, n=row.n, first=first, second=second, difference=difference, verdict=verdict
    )


def _compared(first: _Run, second: _Run, arms: Sequence[str]) -> Iterator[str]:
    """What differs beside sets and judgement: embedder, settings of arms, versions. It is what is compared."""
    for name in arms:
        yield from differences(first.arms[name], second.arms[name], f"arm {name}")
    kept = [
        {part: value for part, value in run.lock.items() if part not in (*_ASIDE, *_SAME)} for run in (first, second)
    ]
    yield from differences(kept[0], kept[1])


def _others(first: _Run, second: _Run) -> Iterator[str]:
    for name in sorted({*first.sets, *second.sets}):
        if name not in first.sets or name not in second.sets:
            yield f"set {name} is in {'A' if name in first.sets else 'B'} alone"
        else:
            yield from differences(first.sets[name], second.sets[name], f"set {name}")
    for name in sorted({*first.arms, *second.arms}):
        if name not in first.arms or name not in second.arms:
            yield f"arm {name} is in {'A' if name in first.arms else 'B'} alone"
        else:
            yield from differences(first.arms[name]["depth"], second.arms[name]["depth"], f"depth of arm {name}")
