"""Judges the search for duplicates: false merges and missed duplicates at a threshold, and over all thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.memories.consolidation.duplicates import THRESHOLD, duplicate_clusters
from lab.retrieval.embedders.base import Vectors
from lab.suites.base import Curve, Number, Plant, Published, Rate
from lab.suites.consolidation.data import Difference, Part, TellingPair
from lab.suites.rates import rate

GRID = tuple(round(step / 100, 2) for step in range(101))
"""Thresholds of the sweep."""

ERRORS = ("false merges", "missed duplicates", "merged with another matter")
"""What can go wrong."""

_GRAMS = (3, 4)
_COPY = 0.9999


def characters(texts: Sequence[str]) -> Vectors:
    """Vectors of counted runs of three and four characters: a control without a model.

    Returns:
        Shape (texts, runs), rows of unit length.
    """
    counts: list[dict[str, int]] = []
    for text in texts:
        padded, runs = f"  {text.casefold()}  ", dict[str, int]()
        for size in _GRAMS:
            for start in range(len(padded) - size + 1):
                run = padded[start : start + size]
                runs[run] = runs.get(run, 0) + 1
        counts.append(runs)
    columns = {run: column for column, run in enumerate(sorted({run for runs in counts for run in runs}))}
    matrix = np.zeros((len(texts), len(columns)), dtype=np.float32)
    for row, runs in enumerate(counts):
        for run, count in runs.items():
            matrix[row, columns[run]] = count
    unit: Vectors = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit


class Merging:
    """What becomes of a data set's tellings when duplicates are merged.

    Args:
        part: The data set.
        name: What made the vectors.
        vectors: Of the tellings, in their order.
    """

    def __init__(self, part: Part, name: str, vectors: Vectors) -> None:
        self.name, self._part, self._vectors = name, part, vectors
        self._clusters: dict[float, tuple[tuple[str, ...], ...]] = {}
        self._ids = [telling.id for telling in part.tellings]
        self._scenes = {telling.id: telling.scene for telling in part.tellings}
        pairs = list(part.pairs())
        self._same = [pair for pair in pairs if pair.same]
        self._other = [pair for pair in pairs if not pair.same]

    def clusters(self, threshold: float) -> tuple[tuple[str, ...], ...]:
        """Clusters at a threshold; the sweeps ask for the same ones again and again."""
        if threshold not in self._clusters:
            self._clusters[threshold] = duplicate_clusters(self._ids, self._vectors, threshold)
        return self._clusters[threshold]

    def rates(self, threshold: float, chosen: str) -> list[Rate]:
        """Rates at a threshold.

        Args:
            threshold: Least cosine.
            chosen: Who chose it, in words.
        """
        group = self._groups(threshold)
        system = f"{self.name} at {threshold:.2f}, {chosen}"
        units = {pair.id: pair.one.scene for pair in (*self._same, *self._other)}

        def share(
            measure: str, of: str, pairs: Sequence[TellingPair], *, together: bool, split: dict[str, str] | None = None
        ) -> Rate:
            counted = [pair.id for pair in pairs if self._together(pair, group) is together]
            return rate(
                measure,
                system=system,
                data=self._part.info.name,
                counted=counted,
                among=[pair.id for pair in pairs],
                of=of,
                better="low",
                clusters=units,
                unit="scenes",
                group=split,
            )

        false, missed, strayed = ERRORS
        differing, duplicate = "pairs of a scene that differ", "pairs of duplicates"
        found = [share(false, differing, self._other, together=True)]
        for how in Difference:
            pairs = [pair for pair in self._other if _differs(pair) is how]
            found.append(share(false, differing, pairs, together=True, split={"differ by": how.value}))
        found.append(share(missed, duplicate, self._same, together=False))
        for name, alike in (("one", True), ("two", False)):
            pairs = [pair for pair in self._same if (pair.one.language == pair.two.language) is alike]
            found.append(share(missed, duplicate, pairs, together=False, split={"languages": name}))
        found.append(
            rate(
                strayed,
                system=system,
                data=self._part.info.name,
                counted=self._strayed(threshold),
                among=self._ids,
                of="memories",
                better="low",
                clusters=self._scenes,
                unit="scenes",
            )
        )
        return found

    def errors(self, threshold: float) -> tuple[float, float, float]:
        """False merges, missed duplicates and memories merged with another matter at a threshold, as shares."""
        group = self._groups(threshold)
        false = sum(self._together(pair, group) for pair in self._other) / max(len(self._other), 1)
        missed = sum(not self._together(pair, group) for pair in self._same) / max(len(self._same), 1)
        return false, missed, len(self._strayed(threshold)) / len(self._ids)

    def best(self) -> float:
        """The threshold of the sweep with the least sum of the three errors; of several the highest."""
        return min(reversed(GRID), key=lambda threshold: round(sum(self.errors(threshold)), 9))

    def lines(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """The three errors over all thresholds."""
        errors = [self.errors(threshold) for threshold in GRID]
        return {
            f"{self.name}: {name}": tuple(
                (threshold, error[which]) for threshold, error in zip(GRID, errors, strict=True)
            )
            for which, name in enumerate(ERRORS)
        }

    def numbers(self) -> list[Number]:
        """Where the cosines lie, and how well they order duplicates before pairs that differ."""
        place = {name: row for row, name in enumerate(self._ids)}
        cosines = self._vectors @ self._vectors.T
        same = np.array([cosines[place[pair.one.id], place[pair.two.id]] for pair in self._same])
        other = np.array([cosines[place[pair.one.id], place[pair.two.id]] for pair in self._other])
        scenes = np.array([self._scenes[name] for name in self._ids])
        apart = cosines[np.triu(scenes[:, None] != scenes[None, :])]
        found = [
            self._number(f"median cosine, {name}", float(np.median(values)), "cosine", _range(values))
            for name, values in (("duplicates", same), ("pairs of a scene that differ", other), ("other pairs", apart))
        ]
        ordered = float((same[:, None] > other[None, :]).mean() + (same[:, None] == other[None, :]).mean() / 2)
        what = "chance that a pair of duplicates is nearer than a pair of a scene that differs; 0.5 tells nothing"
        found.append(self._number("order of duplicates before differing pairs", ordered, "probability", what))
        largest = max((len(cluster) for cluster in self.clusters(THRESHOLD)), default=1)
        detail = f"of {len(self._ids)} memories in {len(set(self._scenes.values()))} scenes"
        found.append(self._number(f"largest cluster at {THRESHOLD:.2f}", largest, "memories", detail))
        return found

    def plants(self) -> list[Plant]:
        """A copy of every memory must be found; vectors of another row must not pass for it."""
        data, names = self._part.info.name, [*self._ids, *(f"copy of {name}" for name in self._ids)]
        faults = (
            ("vectors of another row", np.roll(self._vectors, 1, axis=0), False),
            ("each copy with its own vector", self._vectors, True),
        )
        found = []
        for fault, copies, clean in faults:
            clusters = duplicate_clusters(names, np.concatenate([self._vectors, copies]), _COPY)
            group = _members(clusters)
            lost = sum(group.get(name, name) != group.get(f"copy of {name}") for name in self._ids)
            detail = f"{data}, {self.name}: {lost} of {len(self._ids)} verbatim copies not found"
            found.append(Plant(fault=fault, clean=clean, reported=lost > 0, detail=detail))
        for fault, threshold, clean in (("everything is merged", -1.0, False), ("nothing is merged", 1.01, True)):
            false = self.errors(threshold)[0]
            detail = f"{data}, {self.name}: {false:.0%} of pairs that differ merged"
            found.append(Plant(fault=fault, clean=clean, reported=false > 0, detail=detail))
        return found

    def published(self) -> Published:
        """The design's threshold beside what it does with these vectors."""
        false, missed, strayed = (
            next(one for one in self.rates(THRESHOLD, "") if one.measure == measure and not one.group).proportion
            for measure in ERRORS
        )
        return Published(
            claim="memories at a cosine of 0.70 or more are duplicates",
            published="0.70",
            measured=f"{self._part.info.name}, {self.name}: false merges {false.text()}; missed {missed.text()}; "
            f"with another matter {strayed.text()}",
            same_task=True,
            same_data=False,
            note="a cosine depends on the model, the design's may be another; foils are hard on purpose",
        )

    def _groups(self, threshold: float) -> dict[str, str]:
        return _members(self.clusters(threshold))

    @staticmethod
    def _together(pair: TellingPair, group: dict[str, str]) -> bool:
        return pair.one.id in group and group[pair.one.id] == group.get(pair.two.id)

    def _strayed(self, threshold: float) -> list[str]:
        return [
            name
            for cluster in self.clusters(threshold)
            if len({self._scenes[member] for member in cluster}) > 1
            for name in cluster
        ]

    def _number(self, measure: str, value: float, unit: str, detail: str) -> Number:
        return Number(
            measure=measure,
            system=self.name,
            data=self._part.info.name,
            value=round(value, 4),
            unit=unit,
            detail=detail,
        )


def merge_curve(mergings: Sequence[Merging], data: str) -> Curve:
    """False merges against missed duplicates over all thresholds.

    Args:
        mergings: Of one data set.
        data: Its name.
    """
    lines = {name: points for merging in mergings for name, points in merging.lines().items()}
    return Curve(
        title=f"Duplicates by threshold, {data}", x="least cosine", y="share in error", lines=lines, mark=THRESHOLD
    )


def _members(clusters: Sequence[Sequence[str]]) -> dict[str, str]:
    """The first member of the cluster of each name."""
    return {name: cluster[0] for cluster in clusters for name in cluster}


def _differs(pair: TellingPair) -> Difference | None:
    """By what a foil differs from a telling of its scene's first cluster; None for two foils."""
    if pair.one.differs and pair.two.differs:
        return None
    return pair.one.differs or pair.two.differs


def _range(values: np.ndarray) -> str:
    low, high = np.quantile(values, [0.05, 0.95])
    return f"n = {len(values)}, 5 % to 95 %: {low:.3f} to {high:.3f}"
