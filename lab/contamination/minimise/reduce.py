"""What can be left out of a scenario, axis by axis, and the scenario without it; pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lab.agents.base import Setup
from lab.contamination.observe.detect import find
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.scenarios.words import Carrier
from lab.contamination.script import history_of, turn_texts

Place = tuple[str | int, ...]
"""Where something stands in the scenario's plain data: keys and list positions from the root."""

Unit = tuple[Place, int]
"""One thing that can be left out: a place, and for a text the number of the piece; -1 for all that stands there."""

_WHOLE = -1
_LINE = re.compile(r"\n+")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|\n+")


@dataclass(frozen=True)
class Axis:
    """One way to make a scenario smaller.

    Attributes:
        name: For the progress.
        units: What can be left out of a scenario, in order.
        keep: The plain data of the scenario with no more than these units left of all.
    """

    name: str
    units: Callable[[Scenario], list[Unit]]
    keep: Callable[[Scenario, Collection[Unit]], dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """How large a scenario is.

    Attributes:
        messages: Messages of the conversation: history, its padding included, and turns with their answers.
        steps: Tool calls that the scripted models make.
        world: Entries of the memories, files and skills that are there before.
        characters: All text that the agent is given.
        payload: Characters of the content among them.
    """

    messages: int
    steps: int
    world: int
    characters: int
    payload: int

    @classmethod
    def of(cls, scenario: Scenario) -> Size:
        """Measures a scenario as its own role is run in a setup that adds nothing."""
        role, world, channel = scenario.role, scenario.world, scenario.channel
        history = history_of(scenario, role, Setup(name="plain", description="Adds nothing."))
        texts = [text for exchange in history for text in exchange]
        texts += turn_texts(scenario, role) + [turn.assistant for turn in scenario.transcript]
        texts += [*world.memory, *world.user, *(scenario.fill(f.text, role) for f in world.files)]
        texts += [part for s in world.skills for part in (s.description, scenario.fill(s.body, role))]
        texts += [scenario.fill(channel.child.report, role)] if channel.child else []
        if board := channel.board:
            texts += [board.title, board.body, scenario.fill(board.comment, role)]
        child = channel.child.steps if channel.child else ()
        return cls(
            messages=2 * len(history) + 2 * len(scenario.transcript),
            steps=sum(len(turn.steps) for turn in scenario.transcript) + len(child),
            world=len(world.memory) + len(world.user) + len(world.files) + len(world.skills),
            characters=sum(map(len, texts)),
            payload=sum(map(len, scenario.pieces(role))),
        )


def plain(scenario: Scenario) -> dict[str, Any]:
    """The scenario as it stands in a file, without what is so by default."""
    return scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def candidate(data: dict[str, Any]) -> Scenario | None:
    """The scenario that plain data make; None where they make none, or one whose content has lost its canary."""
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError:
        return None
    return scenario if find(scenario.canary, scenario.content.text) else None


def split(text: str, end: re.Pattern[str]) -> list[str]:
    """Cuts a text behind every end of a piece; joined again the pieces are the text."""
    edges = [0, *(match.end() for match in end.finditer(text))]
    pieces = [text[start:stop] for start, stop in zip(edges, [*edges[1:], len(text)], strict=True)]
    return [piece for piece in pieces if piece]


def _at(data: Any, place: Place) -> Any:
    for step in place:
        if data is None:
            return None
        data = data[step] if isinstance(step, int) else data.get(step)
    return data


def _list_places(data: dict[str, Any]) -> Iterator[Place]:
    """The lists whose items are messages, tool calls or things in the world."""
    yield ("history",)
    yield ("transcript",)
    for number in range(len(data["transcript"])):
        yield ("transcript", number, "steps")
    yield ("channel", "child", "steps")
    for kind in ("memory", "user", "files", "skills"):
        yield ("world", kind)


def _text_places(data: dict[str, Any]) -> Iterator[Place]:
    """The texts of the conversation, and those of the world and the channel in which the content may stand."""
    for part in ("history", "transcript"):
        for number in range(len(data.get(part, ()))):
            yield (part, number, "user")
            yield (part, number, "assistant")
    for kind, field in (("files", "text"), ("skills", "body")):
        for number in range(len(_at(data, ("world", kind)) or ())):
            yield ("world", kind, number, field)
    yield from (("channel", "child", "report"), ("channel", "board", "comment"), ("channel", "summary"))


def _payload_places(data: dict[str, Any]) -> Iterator[Place]:
    parts = data["content"].get("parts")
    yield from (("content", "parts", n) for n in range(len(parts))) if parts else [("content", "text")]


def _items(scenario: Scenario) -> list[Unit]:
    data = plain(scenario)
    return [((*place, n), _WHOLE) for place in _list_places(data) for n in range(len(_at(data, place) or ()))]


def _without_items(scenario: Scenario, kept: Collection[Unit]) -> dict[str, Any]:
    data = plain(scenario)
    gone = {place for place, _ in _items(scenario)} - {place for place, _ in kept}
    # From the last to the first and from the inner to the outer, so that every place is still what it was.
    for place in sorted(gone, reverse=True):
        del _at(data, place[:-1])[place[-1]]
    return data


def _padding(scenario: Scenario) -> list[Unit]:
    channel = scenario.channel
    count = channel.padding if channel.carrier is Carrier.COMPRESSION else 0
    return [(("channel", "padding"), number) for number in range(count)]


def _with_padding(scenario: Scenario, kept: Collection[Unit]) -> dict[str, Any]:
    data = plain(scenario)
    if _padding(scenario):
        data["channel"]["padding"] = len(kept)
    return data


def _text_axis(name: str, places: Callable[[dict[str, Any]], Iterator[Place]], end: re.Pattern[str]) -> Axis:
    def pieces(data: dict[str, Any], place: Place) -> list[str]:
        text = _at(data, place)
        return split(text, end) if isinstance(text, str) else []

    def units(scenario: Scenario) -> list[Unit]:
        data = plain(scenario)
        return [(place, n) for place in places(data) for n in range(len(pieces(data, place)))]

    def keep(scenario: Scenario, kept: Collection[Unit]) -> dict[str, Any]:
        data, wanted = copy.deepcopy(plain(scenario)), set(kept)
        for place in places(data):
            old = pieces(data, place)
            new = [piece for n, piece in enumerate(old) if (place, n) in wanted]
            if len(new) < len(old):
                _at(data, place[:-1])[place[-1]] = "".join(new).strip()
        if parts := data["content"].get("parts"):
            data["content"]["text"] = " ".join(parts)
        return data

    return Axis(name, units, keep)


AXES = (
    Axis("messages and world", _items, _without_items),
    Axis("padding", _padding, _with_padding),
    _text_axis("lines around", _text_places, _LINE),
    _text_axis("sentences around", _text_places, _SENTENCE),
    _text_axis("lines of the payload", _payload_places, _LINE),
    _text_axis("sentences of the payload", _payload_places, _SENTENCE),
)
"""From the coarse to the fine: what goes early need not be tried piece by piece."""
