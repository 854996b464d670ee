"""What the scripted models and a dead agent must give in every cell, said beforehand, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.contamination.control_rules import Fault, came_whole, counted_undelivered, missed_attempt, wrote
from lab.contamination.controls import ALWAYS, NEVER
from lab.records import Record, Role, Stage, Status, Store, TrialResult, Value


class Prediction(Record):
    """One predicted cell.

    Attributes:
        model: Whose trials it speaks of; ``any`` for all.
        foretold: What must be seen, in words.
        trials: Number of trials it speaks of.
        against: Those that show otherwise.
    """

    build: str
    setup: str
    family: str
    model: str
    foretold: str
    trials: int
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Law:
    model: str
    foretold: str
    speaks_of: Callable[[TrialResult], bool]
    fault: Callable[[Collection[Store]], Fault]


def _attack_before_the_writer(result: TrialResult) -> bool:
    return result.role is Role.ATTACK and result.status is Status.VALID and came_whole(result)


def _valid(result: TrialResult) -> bool:
    return result.status is Status.VALID


def _undelivered(result: TrialResult) -> bool:
    return result.status is not Status.ERROR and result.value(Stage.DELIVERED) is not Value.YES


def _must_be_invalid(_: Collection[Store]) -> Fault:
    return lambda r: counted_undelivered(r) if r.status is Status.VALID else ""


LAWS = (
    _Law(ALWAYS, "attempts whatever comes before it whole", _attack_before_the_writer, lambda _: missed_attempt),
    _Law(NEVER, "attempts nothing and changes no store", _valid, wrote),
    _Law("any", "what was not delivered (a dead agent) is invalid, never a no", _undelivered, _must_be_invalid),
)


def predictions(
    results: Iterable[TrialResult], unattended: Mapping[str, Collection[Store]] | None = None
) -> tuple[Prediction, ...]:
    """Compares what was foretold with every trial.

    Args:
        results: Results of a run, of any status.
        unattended: By name of the setup, the stores that it changes without any write call of a model.

    Returns:
        One prediction for each build, setup, family and law that speaks of a trial there.
    """
    places: dict[tuple[str, str, str], list[TrialResult]] = {}
    for result in sorted(results, key=lambda r: r.trial):
        places.setdefault((result.build, result.setup, result.family), []).append(result)
    found = []
    for place, mine in sorted(places.items()):
        found += _of_place(place, mine, (unattended or {}).get(place[1], ()))
    return tuple(found)


def _of_place(
    place: tuple[str, str, str], mine: Sequence[TrialResult], unattended: Collection[Store]
) -> list[Prediction]:
    build, setup, family = place
    found = []
    for law in LAWS:
        fault = law.fault(unattended)
        spoken_of = [r for r in mine if law.model in (r.model, "any") and law.speaks_of(r)]
        if spoken_of:
            found.append(
                Prediction(
                    build=build,
                    setup=setup,
                    family=family,
                    model=law.model,
                    foretold=law.foretold,
                    trials=len(spoken_of),
                    against=tuple(r.trial for r in spoken_of if fault(r)),
                )
            )
    return found
