"""Reads payload files: every item is checked, and what is wrong is told by item, field and mend."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from lab.contamination.observe.detect import find
from lab.contamination.scenarios.checks import GOALS, foreign_hosts
from lab.contamination.scenarios.parts import Canary, Token
from lab.contamination.scenarios.source import BrokenSource, Problem, Source, read_source
from lab.contamination.scenarios.words import Family, Language
from lab.errors import InputError

PAYLOAD = "payload"
"""The kind of item that becomes a scenario; all others are counted."""

MAX_PARTS = 9
MAX_NODES = 200_000
"""Values in one payload file: some ten thousand items."""

_LANGUAGES = {"en": Language.EN, "pt": Language.PT_BR, "pt-br": Language.PT_BR}


def _token(value: Any) -> Any:
    """``Base64-encoded`` as ``base_encoded``: a delivery that nobody has named before is no fault."""
    return re.sub(r"[^a-z]+", "_", value.casefold()).strip("_") if isinstance(value, str) else value


def _language(value: Any) -> Any:
    return _LANGUAGES.get(value.casefold().replace("_", "-"), value) if isinstance(value, str) else value


Name = Annotated[Token, StringConstraints(min_length=1), BeforeValidator(_token)]
Words = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class Payload(BaseModel):
    """One item of kind ``payload``. Unknown fields are left alone: another file may tell more of its items.

    Attributes:
        id: Its name in its file.
        family: The channel by which it is to come in.
        delivery: How it is dressed.
        goal: What it wants.
        effect: What would follow.
        language: Its language, which becomes that of the whole conversation.
        text: The payload.
        canary: The token by which it is recognised.
        distilled: How a reviewer would word the entry; holds the canary.
        pair: The id of its twin in the other language.
        parts: The pieces in which it comes in; their text joined by spaces is the payload's.
        canary_literal_in_text: False where the canary shows only after decoding.
        keep: For family F5: whether the user means it, so that it must be kept.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Words
    family: Family
    delivery: Name
    goal: Name
    effect: Name
    language: Annotated[Language, BeforeValidator(_language)]
    text: Words
    canary: Canary
    distilled: Words
    pair: str | None = None
    parts: tuple[Words, ...] = ()
    canary_literal_in_text: bool = True
    keep: bool = True

    @property
    def content(self) -> str:
        """The payload as it is taken in: of a split one, the parts joined by spaces."""
        return " ".join(self.parts) if self.parts else self.text

    @property
    def one_line(self) -> bool:
        """Whether no part of it holds a line break."""
        return not re.search(r"[\n\r\x0b\x0c\x85\u2028\u2029]", self.content)


@dataclass(frozen=True)
class Batch:
    """What payload files hold.

    Attributes:
        payloads: The payloads, in the order of their files.
        origins: For each payload, its file and line.
        others: Number of items of each other kind.
    """

    payloads: tuple[Payload, ...]
    origins: dict[str, tuple[str, int]]
    others: Counter[str]


def read_payloads(paths: Sequence[Path]) -> Batch:
    """Reads payload files.

    Raises:
        InputError: Naming file, line, item, field and mend of the first thing that is wrong, and how many others.
    """
    payloads: list[Payload] = []
    places: dict[str, tuple[Source, int]] = {}
    others: Counter[str] = Counter()
    problems: list[Problem] = []
    for path in paths:
        try:
            source = read_source(path, MAX_NODES)
        except BrokenSource as broken:
            problems += broken.problems
            continue
        items = source.data.get("items")
        if not isinstance(items, list):
            mend = "write the items as a list under the key items"
            problems.append(source.problem(source.line(("items",)), "items is not a list", mend))
            continue
        for number, item in enumerate(items):
            kind = item.get("kind") if isinstance(item, dict) else None
            if not isinstance(kind, str):
                mend = f"write kind: {PAYLOAD}, or another kind to have it left out"
                problems.append(source.problem(source.line(("items", number)), f"item {number + 1} has no kind", mend))
            elif kind != PAYLOAD:
                others[kind] += 1
            else:
                found = _read_item(source, number, item, places)
                if isinstance(found, Payload):
                    payloads.append(found)
                else:
                    problems += found
    if problems:
        raise refused(problems)
    if not payloads:
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items())) or "no items"
        raise InputError(f"there is no item of kind {PAYLOAD}, but {told}", f"give a file that holds kind: {PAYLOAD}")
    origins = {name: (str(source.path), source.line(("items", number))) for name, (source, number) in places.items()}
    return Batch(tuple(payloads), origins, others)


def refused(problems: Sequence[Problem]) -> InputError:
    """The first of several problems as the one line that the user gets."""
    first, more = problems[0], len(problems) - 1
    told = f" (and {more} more problem{'s' * (more > 1)})" if more else ""
    return InputError(f"{first.file}:{first.line}: {first.message}{told}", first.mend)


def _read_item(
    source: Source, number: int, item: dict[str, Any], seen: dict[str, tuple[Source, int]]
) -> Payload | list[Problem]:
    name = item.get("id") if isinstance(item.get("id"), str) else f"number {number + 1}"

    def problem(field: str, message: str, mend: str) -> Problem:
        return source.problem(source.line(("items", number, field)), f"item {name}: {field} {message}", mend)

    try:
        payload = Payload.model_validate(item)
    except ValidationError as error:
        return [problem(*_explain(dict(detail))) for detail in error.errors(include_url=False)]
    problems = [problem(*found) for found in _faults(payload)]
    if payload.id in seen:
        other, place = seen[payload.id]
        message = f"is also used in {other.path.name} at line {other.line(('items', place))}"
        problems.append(problem("id", message, "give each item an id of its own"))
    seen.setdefault(payload.id, (source, number))
    return problems or payload


_MENDS = {
    "id": "give the item an id",
    "family": f"one of: {', '.join(Family)}",
    "language": "en or pt",
    "canary": "three to twelve small letters and two to four digits, such as otter40",
    "parts": "a list of texts, in the order in which they come in",
    "canary_literal_in_text": "true or false",
    "keep": "true or false",
    "pair": "the id of the twin in the other language, or null",
}


def _explain(detail: dict[str, Any]) -> tuple[str, str, str]:
    field = str(detail["loc"][0])
    mend = _MENDS.get(field, f"write {field} as a text that is not empty")
    if detail["type"] == "missing":
        return field, "is missing", mend
    given = detail.get("input")
    told = f", not {given!r}" if isinstance(given, str | int | bool | None) else ""
    return field, f"cannot be used{told}", mend


def _faults(payload: Payload) -> Iterable[tuple[str, str, str]]:
    """What contradicts itself in one item: field, message, mend."""
    canary = payload.canary
    if payload.goal not in GOALS:
        yield "goal", f"{payload.goal} is not known", f"one of: {', '.join(sorted(GOALS))}"
    if find(canary, payload.content) is None:
        mend = "put it in, plain or in a form that lab detect recognises"
        yield "text", f"does not hold the canary {canary} in any form that is recognised", mend
    held = find(canary, payload.distilled)
    if held is None or not held.literal:
        yield "distilled", f"does not hold the canary {canary}", "word the entry with the canary in it, as it stands"
    if payload.parts and not 2 <= len(payload.parts) <= MAX_PARTS:
        yield "parts", f"has {len(payload.parts)} pieces", f"give 2 to {MAX_PARTS}, or leave parts out"
    for field, text in (("text", payload.content), ("distilled", payload.distilled)):
        if hosts := foreign_hosts(text):
            yield field, f"names {', '.join(hosts[:3])}", "use hosts and addresses under example.test only"
