"""Computes the results of a benchmark run from its lock and its rows, and from nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.errors import InputError
from lab.records import file_digest, first_fault
from lab.retrieval.metrics.compare import compare_arms
from lab.retrieval.metrics.invariants import asked, checks
from lab.retrieval.metrics.noise import INJECTED, gate_rows, noise
from lab.retrieval.metrics.scores import score_rows
from lab.retrieval.results import LOCK, ArmResult, BenchResult, GapRow, Mean, SetInfo, SetResult
from lab.retrieval.rows import PASSES, TopicRow, read_passes, read_rows, rows_file
from lab.retrieval.testset import Purpose
from lab.runs.folder import RunFolder
from lab.statistics.independent import Estimate, difference
from lab.statistics.proportions import PLACES

ArmRows = Mapping[str, tuple[TopicRow, ...]]
"""Rows by arm."""


@dataclass(frozen=True)
class Finished:
    """A finished run.

    Attributes:
        result: Its results.
        rows: The rows that they were computed from, by set and arm.
    """

    result: BenchResult
    rows: Mapping[str, ArmRows]


def assemble(folder: RunFolder) -> BenchResult:
    """The results of a run folder; see ``finished``."""
    return finished(folder).result


def finished(folder: RunFolder) -> Finished:
    """The results of a run folder, and their rows.

    Args:
        folder: Folder of a benchmark run.

    Raises:
        InputError: It is no such folder, is not finished, or its files do not belong together.
    """
    lock = folder.read(LOCK)
    if lock.get("kind") != "bench":
        raise InputError(f"{folder.path} is not the folder of a benchmark run", "give one made by lab bench")
    try:
        infos = [SetInfo.model_validate(told) for told in lock["sets"]]
        rows = {info.name: _rows(folder.path, info.name, lock["arms"]) for info in infos}
        sets = tuple(_set_result(folder.path, info, lock, rows[info.name]) for info in infos)
        result = BenchResult(
            lab_version=lock["lab_version"],
            k=lock["k"],
            tie_rule=lock["tie_rule"],
            sets=sets,
            gaps=_gaps(sets),
            doubts=tuple(dict.fromkeys(doubt for told in lock["vectors"] for doubt in told["doubts"])),
            absent=lock["absent"],
        )
    except (LookupError, TypeError, ValueError) as error:
        told = first_fault(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{folder.path / LOCK} is damaged: {told}", "start a new run: lab bench") from error
    return Finished(result, rows)


def _rows(run: Path, testset: str, arms: Sequence[Mapping[str, Any]]) -> ArmRows:
    names = [arm["name"] for arm in arms]
    if not names or any(Path(name).name != name for name in (testset, *names)):
        raise ValueError("its sets and arms name no files of the run")
    return {name: read_rows(rows_file(run, testset, name)) for name in names}


def _set_result(run: Path, info: SetInfo, lock: Mapping[str, Any], rows: ArmRows) -> SetResult:
    arms = tuple(_arm_result(run, info, arm, rows[arm["name"]], lock["k"]) for arm in lock["arms"])
    pairs = [(first, second) for first, second in lock["pairs"]]
    return SetResult(info=info, arms=arms, comparisons=compare_arms(rows, pairs))


def _arm_result(run: Path, info: SetInfo, arm: Mapping[str, Any], rows: Sequence[TopicRow], k: int) -> ArmResult:
    place = rows_file(run, info.name, arm["name"])
    passes = read_passes(place.with_suffix(PASSES))
    depth = min(k, arm["depth"] or k)
    if deeper := next((row.topic for row in rows if len(row.hits) > depth), None):
        raise InputError(f"{place}: topic {deeper} has more hits than {depth}", "run the benchmark again: lab bench")
    scores = score_rows(rows, tuple(info.answerable), depth=depth, clusters=len(info.stores) > 1)
    return ArmResult(
        arm=arm["name"],
        system=arm["system"],
        label=arm["label"],
        settings=passes.settings,
        rows_file=place.relative_to(run).as_posix(),
        rows_digest=file_digest(place),
        scores=scores,
        noise=noise(rows, INJECTED),
        gate=gate_rows(rows),
        fallbacks=_by_cause((row.topic, row.fallback) for row in rows),
        errors=_by_cause((row.topic, row.error) for row in rows),
        asked_again=passes.again,
        changed_again=passes.changed,
        fresh=passes.fresh,
        checks=(
            asked(rows, info.classes, {store.store: store.topics for store in info.stores}),
            *checks(rows, scores, declared_n=info.answerable),
        ),
    )


def _gaps(sets: Sequence[SetResult]) -> tuple[GapRow, ...]:
    """Development against hold-out, for the arms that were run on exactly one set of each."""
    mine = [[one for one in sets if one.info.purpose == purpose] for purpose in (Purpose.DEVELOPMENT, Purpose.HOLD_OUT)]
    if [len(found) for found in mine] != [1, 1]:
        return ()
    rows = []
    for before, after in zip(mine[0][0].arms, mine[1][0].arms, strict=True):
        development, hold_out = before.scores[0].mrr10, after.scores[0].mrr10
        if development and hold_out and (told := _difference(hold_out, development)):
            rows.append(GapRow(arm=before.arm, development=development, hold_out=hold_out, difference=told))
    return tuple(rows)


def _difference(first: Mean, second: Mean) -> Mean | None:
    estimates = []
    for mean in (first, second):
        if mean.value is None or mean.low is None or mean.high is None:
            return None
        estimates.append(Estimate(mean.value, mean.low, mean.high))
    told = difference(*estimates)
    return Mean(
        n=first.n + second.n,
        value=round(told.value, PLACES),
        low=round(told.low, PLACES),
        high=round(told.high, PLACES),
        method="variance estimates recovery",
    )


def _by_cause(topics: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for topic, cause in topics:
        if cause:
            found[cause].append(topic)
    return {cause: tuple(named) for cause, named in sorted(found.items())}
