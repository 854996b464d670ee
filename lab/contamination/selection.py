"""Which scenarios of a library a run takes: by id, glob, tag and shard."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from lab.contamination.scenarios.scenario import Scenario
from lab.errors import InputError
from lab.records import digest

LEFT_OUT = "!"
"""In front of an id or glob: what it fits is left out."""

_SHARD = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


@dataclass(frozen=True)
class Shard:
    """One part of a selection that is run on several machines.

    The part is decided by the SHA-256 of the scenario's id and by nothing else: a scenario with its twin, setups,
    models and repeats stays in one shard, so pairs stay paired, and it stays in the same one when the library grows.
    The shards of one selection are disjoint and together the whole; they are only about equal in size.

    Attributes:
        index: Which one, from 1.
        count: How many there are.
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``2/4``.

        Raises:
            InputError: It is not of that form, or there is no such shard.
        """
        found = _SHARD.fullmatch(text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(f"{text!r} is not a shard", "write K/N with 1 ≤ K ≤ N, e.g. --shard 2/4")
        return cls(int(found[1]), int(found[2]))

    def holds(self, scenario_id: str) -> bool:
        """Whether a scenario belongs to this shard."""
        return int(digest(scenario_id.encode())[:16], 16) % self.count == self.index - 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def select(scenarios: Sequence[Scenario], patterns: Iterable[str] = (), tags: Iterable[str] = ()) -> list[Scenario]:
    """Keeps the scenarios that fit, in their order.

    Args:
        scenarios: What there is.
        patterns: Ids and shell globs over ids, of which one must fit; with ``!`` in front none may fit. With none but
            such exclusions, or none at all, everything else is kept.
        tags: A scenario must have at least one of them; with none, tags do not matter.

    Raises:
        InputError: A pattern or tag fits no scenario, or nothing is left.
    """
    given = list(patterns)
    wanted = [p for p in given if not p.startswith(LEFT_OUT)]
    unwanted = [p.removeprefix(LEFT_OUT) for p in given if p.startswith(LEFT_OUT)]
    ids = [s.id for s in scenarios]
    for pattern in (*wanted, *unwanted):
        # A pattern that fits nothing is a slip; the smaller run that it would give looks like a full one.
        if not fnmatch.filter(ids, pattern):
            raise InputError(f"no scenario fits {pattern!r}", f"there are {_some(ids)}")
    known = {tag for s in scenarios for tag in s.tags}
    asked = set(tags)
    for tag in sorted(asked - known):
        raise InputError(f"no scenario has the tag {tag!r}", f"there are {_some(sorted(known))}")
    chosen = [
        s
        for s in scenarios
        if (not wanted or _fits(s.id, wanted)) and not _fits(s.id, unwanted) and (not asked or asked & set(s.tags))
    ]
    if not chosen:
        raise InputError("the selection holds no scenario", "see --families, --select and --tags")
    return chosen


def take_shard(scenarios: Sequence[Scenario], shard: Shard) -> list[Scenario]:
    """Keeps the scenarios of one shard, in their order.

    Raises:
        InputError: It holds none.
    """
    mine = [s for s in scenarios if shard.holds(s.id)]
    if not mine:
        raise InputError(f"shard {shard} of {len(scenarios)} scenarios is empty", "leave it out, or use fewer shards")
    return mine


def _fits(scenario_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(scenario_id, pattern) for pattern in patterns)


def _some(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "none") + more
