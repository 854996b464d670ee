"""The generator's words and sentences (``generate.yaml``) as checked records, and names that never repeat."""

from __future__ import annotations

import functools
from math import gcd, prod
from pathlib import Path
from random import Random
from typing import Final, Literal, Self

import yaml
from pydantic import Field, model_validator

from lab.records import Record

ENGLISH: Final = "en"
PORTUGUESE: Final = "pt-BR"
Language = Literal["en", "pt-BR"]


class Sentences(Record):
    """How one attribute is said and asked in one language; ``exact`` has the words of ``fact``, the last has others."""

    fact: str
    restated: str
    exact: str
    paraphrase: str


class Pattern(Record):
    """Values that are a number in a frame, ``{n}``."""

    pattern: str
    least: int
    most: int


class Attribute(Record):
    """What can be said of an entity, once at a time.

    Attributes:
        key: Its name; also the kind of the relation.
        category: Category of the fact.
        values: Values by language, in pairs; or a pattern.
        en: Sentences in English.
        pt: Sentences in Portuguese.
    """

    key: str
    category: str
    values: Pattern | dict[Language, tuple[str, ...]]
    en: Sentences
    pt: Sentences = Field(alias="pt-BR")

    def sentences(self, language: Language) -> Sentences:
        """The sentences of a language."""
        return self.en if language == ENGLISH else self.pt


class Numbered(Record):
    """Numbers that are the last part of a name."""

    least: int
    count: int = Field(ge=1)


class EntityKind(Record):
    """A kind of entity and how its names are made: one word of each part, and a number where it has one."""

    kind: str
    weight: int = Field(ge=1)
    join: str
    parts: tuple[tuple[str, ...], ...]
    numbered: Numbered | None = None
    attributes: tuple[Attribute, ...] = Field(min_length=2)

    def names(self) -> int:
        """How many names can be made without a letter that tells rounds apart."""
        return prod(map(len, self.parts)) * (self.numbered.count if self.numbered else 1)

    def name(self, number: int, order: tuple[int, int]) -> str:
        """Name of an entity: different for each number, without end.

        Args:
            number: Which, from 0.
            order: Step and offset; a step without a common factor with ``names`` visits each name once a round.
        """
        rounds, within = divmod(number, self.names())
        rest = (within * order[0] + order[1]) % self.names()
        words = []
        for part in self.parts:
            rest, index = divmod(rest, len(part))
            words.append(part[index])
        if self.numbered:
            words.append(str(self.numbered.least + rest))
        if rounds:
            words.insert(1, _letters(rounds))
        return self.join.join(words)

    def order(self, rng: Random) -> tuple[int, int]:
        """Draws step and offset."""
        step = 1 + int(rng.random() * self.names())
        while gcd(step, self.names()) != 1:
            step += 1
        return step, int(rng.random() * self.names())


class Wrapper(Record):
    """Sentences around a fact or a question in one language."""

    third_party: str
    superseded: str
    asked: str


class Shares(Record):
    """Shares of statements, 0 to 1; that of Portuguese is one of entities."""

    third_party: float
    agent: float
    unknown: float
    superseded: float
    restated: float
    portuguese: float


class Templates(Record):
    """The whole file."""

    classes: dict[str, int]
    shares: Shares
    wrappers: dict[Language, Wrapper]
    speakers: tuple[str, ...]
    kinds: tuple[EntityKind, ...]

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        for attribute in (attribute for kind in self.kinds for attribute in kind.attributes):
            if isinstance(attribute.values, dict) and len({len(set(v)) for v in attribute.values.values()}) != 1:
                raise ValueError(f"values of {attribute.key} do not stand in pairs")
        return self


@functools.cache
def templates() -> Templates:
    """Reads the file, which is part of the package."""
    path = Path(__file__).with_name("generate.yaml")
    return Templates.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def _letters(number: int) -> str:
    """1 is A., 26 is Z., 27 is AA."""
    text = ""
    while number:
        number, index = divmod(number - 1, 26)
        text = chr(ord("A") + index) + text
    return f"{text}."
