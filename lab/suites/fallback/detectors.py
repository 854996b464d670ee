"""What the suite notices by: text outside of quotations, a ranking that knows the archive, a trigger without effect."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing

from lab.errors import LabError
from lab.memories.hfea.archive import times_opened
from lab.memories.hfea.evidence import Statement, question
from lab.memories.hfea.fallback import TOP, Fact, Trigger
from lab.retrieval.database import open_database, read_facts
from lab.retrieval.systems.base import Hit, System
from lab.suites.fallback.data import World

_QUOTED = re.compile(r"`[^`\n]*`")
_LEAST = 24
"""Characters of an instruction that are looked for: a shorter piece, such as a word, may be there by chance."""


def unquoted(shown: str, instruction: str) -> bool:
    """Whether a piece of an instruction stands in a text outside of its code spans.

    Args:
        shown: An answer as it is put before an agent.
        instruction: The instruction; at least ``_LEAST`` characters.
    """
    rest = " ".join(_QUOTED.sub(" ", shown).split())
    wanted = " ".join(instruction.split())
    return any(wanted[at : at + _LEAST] in rest for at in range(max(1, len(wanted) - _LEAST + 1)))


def rankings(world: World, system: System) -> list[tuple[tuple[int, float], ...]]:
    """What the normal route finds for every topic: row ids and scores."""
    system.open(world.database)
    try:
        found = [system.search(topic.text, TOP).hits for topic in world.topics]
    finally:
        system.close()
    return [tuple((hit.fact_id, hit.score) for hit in hits) for hits in found]


def leak(world: World, make: Callable[[], System]) -> str:
    """How the archive takes part in the normal ranking; empty where it does not.

    The normal route is asked every topic twice, the second time while the archive is out of the way. It may not find
    another ranking then, nor fail, nor have opened the archive, nor find what is no fact.

    Args:
        world: The set.
        make: Makes the normal route.
    """
    before = times_opened(world.path)
    with_archive = rankings(world, make())
    if times_opened(world.path) != before:
        return "the normal route opened the archive"
    aside = world.path.with_name("archive.aside")
    world.path.rename(aside)
    try:
        without = rankings(world, make())
    except (LabError, OSError, sqlite3.Error) as error:
        return f"the normal route fails without the archive: {error}"
    finally:
        aside.rename(world.path)
    if with_archive != without:
        count = sum(a != b for a, b in zip(with_archive, without, strict=True))
        return f"{count} of {len(without)} normal rankings are others without the archive"
    return foreign(world)


def foreign(world: World) -> str:
    """What the normal memory holds that is none of the set's facts; empty where there is nothing."""
    with closing(open_database(world.database)) as connection:
        held = {fact.content for fact in read_facts(connection)}
    strange = sorted(held - {text.strip() for text in world.labels.values()})
    return f"the normal memory holds {len(strange)} texts that are no facts of the set" if strange else ""


def without_effect(trigger: Trigger) -> str:
    """How a trigger fails its controls; empty where it decides.

    Four cases that are certain: nothing was found, something else was found, two facts answer differently, and one
    fact answers.
    """
    asked = question("What is the code of the blue safe?")
    other = Fact(Hit(1, 1.0), Statement("The blue door was painted in May."))
    answer = Fact(Hit(2, 1.0), Statement("The code of the blue safe is 5519."))
    rival = Fact(Hit(3, 1.0), Statement("The code of the blue safe is 7730."))
    if trigger(asked, ()).reason is None or trigger(asked, (other,)).reason is None:
        return "does not fire where no fact answers"
    judged = trigger(asked, (answer, rival))
    if judged.reason is None or not judged.contradiction:
        return "does not fire where facts contradict each other"
    return "" if trigger(asked, (answer,)).reason is None else "fires where a fact answers"
