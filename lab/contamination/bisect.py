"""Finds between which neighbouring builds the outcome of a scenario changed, by binary search; pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.contamination.outcome import Outcome
from lab.errors import EnvironmentUnusable, InputError
from lab.records import Status, TrialResult


@dataclass(frozen=True)
class Shown:
    """What a build showed.

    Attributes:
        outcome: Outcome of the trial.
        detail: Of an invalid trial, what is wrong in words; may hold hostile text.
    """

    outcome: Outcome
    detail: str = ""

    @classmethod
    def of(cls, result: TrialResult) -> Shown:
        """What a judged trial shows."""
        return cls(Outcome.of(result), result.detail)

    @property
    def says_something(self) -> bool:
        """Whether the trial is valid."""
        return self.outcome.status is Status.VALID


@dataclass(frozen=True)
class Bisection:
    """What a search found.

    Attributes:
        builds: All builds, in the given order.
        shown: What those showed that were run, by their place in that order.
        changed: Places of the two builds between which the outcome changed; None where both ends show the same.
            What lies between the two, if anything, showed nothing.
    """

    builds: tuple[str, ...]
    shown: dict[int, Shown] = field(default_factory=dict)
    changed: tuple[int, int] | None = None

    @property
    def silent(self) -> tuple[str, ...]:
        """Builds between the two that showed nothing."""
        first, last = self.changed or (0, 0)
        return self.builds[first + 1 : last]


def bisect(builds: Sequence[str], run: Callable[[str], Shown], *, every: bool = False) -> Bisection:
    """Searches.

    The outcome is looked at on both ends first. The search then keeps two builds with different outcomes, so what it
    ends with is a change, though not the only one where the outcome changes more than once.

    Args:
        builds: At least two, in the order in which they came out.
        run: Runs a trial in a build.
        every: Run all of them; the change is then the first one, whatever the ends show.

    Raises:
        InputError: Fewer than two builds, or the trial on an end is invalid.
        EnvironmentUnusable: A trial ended in an infrastructure error.
    """
    if len(builds) < 2:
        raise InputError("a change lies between two builds", "lab bisect SCENARIO --builds A,B,C")
    shown: dict[int, Shown] = {}

    def look(place: int) -> Shown:
        if place not in shown:
            found = run(builds[place])
            if found.outcome.status is Status.ERROR:
                told = f"the trial in {builds[place]} ended in an error: {found.outcome.cause} {found.detail}".strip()
                raise EnvironmentUnusable(told, "lab doctor, then try again")
            shown[place] = found
        return shown[place]

    if every:
        valid = [place for place in range(len(builds)) if look(place).says_something]
        pairs = itertools.pairwise(valid)
        changed = next((p for p in pairs if shown[p[0]].outcome != shown[p[1]].outcome), None)
        return Bisection(tuple(builds), shown, changed)
    first, last = 0, len(builds) - 1
    for end in (first, last):
        if not (found := look(end)).says_something:
            told = f"the trial in {builds[end]} is invalid: {found.outcome.cause} ({found.detail})"
            raise InputError(told, "begin and end with builds in which the scenario can be run")
    if shown[first].outcome == shown[last].outcome:
        return Bisection(tuple(builds), shown)
    while (place := _middle(first, last, shown)) is not None:
        found = look(place)
        if not found.says_something:
            continue
        if found.outcome == shown[first].outcome:
            first = place
        else:
            last = place
    return Bisection(tuple(builds), shown, (first, last))


def _middle(first: int, last: int, shown: dict[int, Shown]) -> int | None:
    """The place nearest the middle between two that has not been looked at; what showed nothing is passed over."""
    between = [place for place in range(first + 1, last) if place not in shown]
    return min(between, key=lambda place: abs(2 * place - first - last), default=None)
