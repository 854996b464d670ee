"""How the locks of two runs differ: the one dimension that is compared, and everything that must not differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.compare.model import Dimension
from lab.contamination.live import comparable
from lab.errors import InputError
from lab.runs.lock import differences

PARTS = {Dimension.BUILD: "builds", Dimension.SETUP: "setups", Dimension.MODEL: "models"}
"""Parts of a lock in which the sides of a comparison may differ."""

_ASIDE = frozenset(
    {
        *("schema_version", "run_id", "created", "host", "plan_digest", "reused_run", "shard", "whole", "merged"),
        *("start", "cold_starts"),  # no cell depends on how sessions are started
        "replayed",  # a replay's verdicts are those of what it replays, or it says where not
    }
)
"""Parts that decide no result, or say again what others say."""

_SOURCE = "source"
"""Part of a build that is a path on a machine; the digest of its environment says what was there."""

_SCENARIOS = "scenarios"
_LIVE = "live"


class Incomparable(InputError):
    """Runs whose inputs differ in more than what is compared.

    Attributes:
        differences: Every difference, one line each.
    """

    def __init__(self, message: str, mend: str, differences: tuple[str, ...]) -> None:
        super().__init__(message, mend)
        self.differences = differences


@dataclass(frozen=True)
class Contrasted:
    """How two locks differ.

    Attributes:
        dimension: In what the sides differ.
        compared: The difference in that dimension, line by line.
        others: All other differences.
    """

    dimension: Dimension
    compared: tuple[str, ...]
    others: tuple[str, ...]


def contrast_locks(first: Mapping[str, Any], second: Mapping[str, Any]) -> Contrasted:
    """Finds the one dimension in which two contamination runs differ.

    It is build, setup or model where the runs differ in one of them only, and each has just one; then their trials
    are paired across it. Otherwise trials are paired with those of the same name.

    Args:
        first: Lock of the baseline.
        second: Lock of the other run.
    """
    told = {dimension: tuple(_part(dimension, first, second)) for dimension in PARTS}
    changed = [dimension for dimension, lines in told.items() if lines]
    others = tuple(_elsewhere(first, second))
    if len(changed) == 1 and all(len(lock[PARTS[changed[0]]]) == 1 for lock in (first, second)):
        return Contrasted(changed[0], told[changed[0]], others)
    return Contrasted(Dimension.RUN, (), tuple(line for lines in told.values() for line in lines) + others)


def check_comparable(contrasted: Contrasted, names: tuple[str, str], *, common: bool) -> None:
    """Refuses what differs in more than the dimension compared.

    Args:
        contrasted: How the locks differ.
        names: The runs, to name them.
        common: Whether only what is common is to be compared, and the rest put up with.

    Raises:
        Incomparable: They differ in more.
    """
    if contrasted.others and not common:
        more = f"{len(contrasted.others)} differences beside {contrasted.dimension}"
        if contrasted.dimension is Dimension.RUN:
            more = f"{len(contrasted.others)} differences in more than one build, setup or model"
        raise Incomparable(
            f"{names[0]} and {names[1]} cannot be compared: {more}; the first: {contrasted.others[0]}",
            "run both with the same inputs, or compare what is common: --common",
            contrasted.others,
        )


def body_lines(dimension: Dimension, lock: Mapping[str, Any], first: str, second: str) -> tuple[str, ...]:
    """How two builds, setups or models of one lock differ, line by line."""
    return tuple(_bodies(dimension, (lock, first), (lock, second)))


def _part(dimension: Dimension, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    mine, theirs = first[PARTS[dimension]], second[PARTS[dimension]]
    if len(mine) == len(theirs) == 1:
        yield from _bodies(dimension, (first, next(iter(mine))), (second, next(iter(theirs))))
        return
    for name in sorted({*mine, *theirs}):
        if name not in mine or name not in theirs:
            yield f"{dimension} {name} is in {'A' if name in mine else 'B'} alone"
        else:
            yield from _bodies(dimension, (first, name), (second, name))


def _bodies(
    dimension: Dimension, first: tuple[Mapping[str, Any], str], second: tuple[Mapping[str, Any], str]
) -> Iterator[str]:
    """Names and contents of two builds, setups or models; equal names are not told."""
    (lock, name), (other_lock, other) = first, second
    if name != other:
        yield f"{dimension} is {name} and {other}"
    if dimension is not Dimension.MODEL:
        mine, theirs = body_of(dimension, lock, name), body_of(dimension, other_lock, other)
        yield from differences(mine, theirs, name if name == other else str(dimension))


def body_of(dimension: Dimension, lock: Mapping[str, Any], name: str) -> Any:
    """What a build, setup or model is, without its name and place: equal where nothing that decides a result differs.

    What a lock holds of it is JSON of any kind.
    """
    if dimension is Dimension.MODEL:
        return name
    return {key: part for key, part in lock[PARTS[dimension]][name].items() if key not in (_SOURCE, "name")}


def _elsewhere(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    mine, theirs = first[_SCENARIOS], second[_SCENARIOS]
    for name in sorted({*mine, *theirs}):
        if name not in mine or name not in theirs:
            yield f"scenario {name} is in {'A' if name in mine else 'B'} alone"
        elif mine[name] != theirs[name]:
            yield f"scenario {name} has digest {mine[name][:12]} and {theirs[name][:12]}"
    yield from differences(_settings(first, second), _settings(second, first))


def _settings(lock: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    aside = {*_ASIDE, *PARTS.values(), _SCENARIOS}
    kept = {key: part for key, part in lock.items() if key not in aside}
    if lock.get(_LIVE):
        live = comparable(lock[_LIVE])
        # A model that one side alone has is told as such, as a difference in models.
        both = set(lock["models"]) & set(other["models"])
        kept[_LIVE] = live | {"models": {name: told for name, told in live["models"].items() if name in both}}
    return kept
