"""The benchmark: arms × sets on frozen stores, one rows file for each, and everything else computed from those."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.records import canonical_json, digest
from lab.retrieval.arms import FOUR_ARMS, Arm
from lab.retrieval.asking import Asked, Asker
from lab.retrieval.metrics.baselines import baselines
from lab.retrieval.metrics.invariants import judged
from lab.retrieval.results import LOCK, TIE_RULE, SetInfo, StoreInfo
from lab.retrieval.rows import PASSES, ROWS, TIMES, Passes, read_rows, rows_file, rows_text
from lab.retrieval.testset import TestSet
from lab.retrieval.timing import TIMING, ArmTiming, BenchTiming, arm_timing, read_times
from lab.runs.folder import RunFolder, write_atomic, write_json
from lab.runs.lock import make_lock, new_run_id
from lab.snapshots.store import Snapshot

Snapshots = Mapping[str, Snapshot]
"""The frozen database of each store of one set."""


@dataclass(frozen=True)
class Work:
    """What a benchmark run is made of.

    Attributes:
        sets: Test sets with their frozen stores.
        arms: Arms, in the order of the report.
        k: Depth of the rankings.
        fresh: Whether every topic gets a fresh copy of its store.
        facts: What else decides the results, for the lock: embedder, rule of the keywords, versions.
        absent: What cannot be run here and why.
        reference: Arm that every other one is compared with; empty for the pairs of ``declared_pairs``.
    """

    sets: Sequence[tuple[TestSet, Snapshots]]
    arms: Sequence[Arm]
    k: int
    fresh: bool
    facts: Mapping[str, Any]
    absent: tuple[str, ...] = ()
    reference: str = ""

    @property
    def queries(self) -> int:
        """Queries of a whole run, second passes apart."""
        return len(self.arms) * sum(len(testset.topics) for testset, _ in self.sets)

    def inputs(self) -> dict[str, Any]:
        """All that decides the results, in the form that it is read back in from the lock."""
        told = {
            "kind": "bench",
            "k": self.k,
            "fresh": self.fresh,
            "tie_rule": TIE_RULE,
            "pairs": [list(pair) for pair in declared_pairs(self.arms, self.reference)],
            "sets": [set_info(testset, shots, self.k).model_dump(mode="json") for testset, shots in self.sets],
            "arms": [
                {
                    "name": arm.name,
                    "label": arm.label,
                    "depth": arm.depth,
                    "system": arm.system,
                    "settings": arm.settings,
                }
                for arm in self.arms
            ],
            "absent": list(self.absent),
            **self.facts,
        }
        inputs: dict[str, Any] = json.loads(canonical_json(told))
        return inputs


def declared_pairs(arms: Sequence[Arm], reference: str = "") -> tuple[tuple[str, str], ...]:
    """The pairs that are compared, settled before anything is measured.

    They are each arm with the reference where there is one. Otherwise they are the six of the four arms where those are
    all there, else all pairs of what was asked for. Both have to return equally many hits: one that returns five misses
    by construction what the other finds at rank 6.
    """
    if reference:
        against = next(arm for arm in arms if arm.name == reference)
        return tuple((arm.name, reference) for arm in arms if arm is not against and arm.depth == against.depth)
    four = [arm for arm in arms if arm.name in FOUR_ARMS]
    chosen = four if len(four) == len(FOUR_ARMS) else arms
    return tuple((one.name, two.name) for one, two in combinations(chosen, 2) if one.depth == two.depth)


def set_info(testset: TestSet, snapshots: Snapshots, k: int) -> SetInfo:
    """What the lock keeps of a set.

    Raises:
        InputError: The rankings would be so deep that every system looked perfect.
    """
    asked = Counter(topic.store for topic in testset.topics)
    smallest = min(len(testset.stores[store]) for store in asked)
    if k > smallest / 5:
        raise InputError(
            f"set {testset.name}: k = {k} is more than a fifth of its smallest store ({smallest} facts)",
            "ask for fewer: --k, or measure on a larger store",
        )
    stores = tuple(
        StoreInfo(
            store=store,
            snapshot=shot.manifest.name,
            content=shot.manifest.content_sha256,
            facts=len(testset.stores[store]),
            topics=asked[store],
        )
        for store, shot in snapshots.items()
    )
    return SetInfo(
        name=testset.name,
        title=testset.title,
        purpose=testset.purpose,
        licence=testset.licence,
        digest=testset.digest(),
        stores=stores,
        classes=dict(Counter(topic.topic_class for topic in testset.topics)),
        answerable=dict(Counter(topic.topic_class for topic in testset.topics if testset.answerable(topic))),
        k_of_pool=round(k / smallest, 6),
        baselines=baselines(testset),
        notes=testset.notes,
    )


class Bench:
    """A benchmark run in its folder.

    Args:
        folder: The run folder.
        work: What to run.
    """

    def __init__(self, folder: RunFolder, work: Work) -> None:
        self.folder, self.work = folder, work

    @classmethod
    def start(cls, reports: Path, work: Work) -> Bench:
        """Makes the run folder and writes the lock.

        Raises:
            InputError: The run cannot mean anything (see ``set_info``).
            OSError: The folder cannot be made.
        """
        inputs = work.inputs()
        folder = RunFolder.create(reports, new_run_id(digest(inputs)), inner=ROWS)
        write_json(folder.path / LOCK, make_lock(folder.run_id, inputs))
        return cls(folder, work)

    @classmethod
    def resume(cls, folder: RunFolder, work: Work) -> Bench:
        """Goes on in the folder of an interrupted run.

        Raises:
            InputError: Something that decides the results is not as it was.
        """
        locked = folder.read(LOCK)
        inputs = work.inputs()
        if changed := sorted(name for name in inputs if locked.get(name) != inputs[name]):
            raise InputError(
                f"{folder.path} was begun with other inputs: {', '.join(changed)}", "start a new run: lab bench"
            )
        return cls(folder, work)

    def run(self, progress: Callable[[str, int], None]) -> None:
        """Asks everything that has not been asked, and writes a rows file for each arm and set.

        Args:
            progress: Told what is being asked and how many topics were just answered.

        Raises:
            InputError: A system returned a ranking that no metric may be taken of, or rows that an earlier attempt left
                are not of this set.
            EnvironmentUnusable: A system lacks something on this machine.
        """
        started, begun = datetime.now(UTC), time.perf_counter()
        for testset, snapshots in self.work.sets:
            for arm in self.work.arms:
                place = rows_file(self.folder.path, testset.name, arm.name)
                what = f"{testset.name} · {arm.name}"
                if place.is_file():
                    _check_kept(place, testset)
                    progress(what, len(testset.topics))
                    continue
                place.parent.mkdir(exist_ok=True)
                asked = self._ask(arm, testset, snapshots, partial(progress, what, 1))
                # The rows come last: an arm that has them is done.
                timing = arm_timing(asked.seconds, sum(row.fallback == "timeout" for row in asked.rows))
                write_json(place.with_suffix(TIMES), timing.model_dump(mode="json"))
                passes = Passes(settings=asked.settings, again=asked.again, changed=asked.changed, fresh=asked.fresh)
                write_json(place.with_suffix(PASSES), passes.model_dump(mode="json"))
                write_atomic(place, rows_text(tuple(asked.rows)))
        self._write_timing(started, time.perf_counter() - begun)

    def _ask(self, arm: Arm, testset: TestSet, snapshots: Snapshots, step: Callable[[], None]) -> Asked:
        system = arm.make()
        with tempfile.TemporaryDirectory(prefix="lab-bench-") as work:
            try:
                asker = Asker(system, testset, snapshots, min(self.work.k, arm.depth or self.work.k), Path(work), step)
                return asker.ask_all(self.work.fresh)
            finally:
                system.close()

    def _write_timing(self, started: datetime, seconds: float) -> None:
        arms: dict[str, dict[str, ArmTiming]] = {}
        for path in sorted((self.folder.path / ROWS).glob(f"*/*{TIMES}")):
            name = path.name.removesuffix(TIMES)
            arms.setdefault(path.parent.name, {})[name] = read_times(path, ArmTiming)
        timing = BenchTiming(started=started.isoformat(timespec="seconds"), seconds=round(seconds, 3), arms=arms)
        write_json(self.folder.path / TIMING, timing.model_dump(mode="json"))


def _check_kept(place: Path, testset: TestSet) -> None:
    """Looks at rows that an earlier attempt left: no seal guards them yet.

    Raises:
        InputError: They are not those of this set, as it is judged.
    """
    rows = read_rows(place)
    found = judged(rows, testset.qrels)
    if [row.topic for row in rows] != [topic.id for topic in testset.topics] or not found.holds:
        fault = f"{place} does not hold the topics of {testset.name} as they are judged: {found.text}"
        raise InputError(fault, "remove that file: its arm is then asked again")
