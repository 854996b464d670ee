"""Labelled utterances: who said them, who is named in them, whose words are quoted, whose preference is told."""

from __future__ import annotations

import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from lab.errors import LabError
from lab.records import Record, digest
from lab.retrieval.data.lines import BrokenData, explained, numbered_lines
from lab.retrieval.testset import Author, Purpose
from lab.suites.base import DataInfo
from lab.suites.labelled import PARTS, require_apart

UTTERANCES = "utterances.jsonl"
"""The one file of a part."""

_GUIDE = "see scenarios/suites/provenance/GUIDE.md"


class Role(StrEnum):
    """What a person who is named is to the message; where two fit, the first of them counts."""

    UTTERED_BY = "uttered_by"
    ADDRESSEE = "addressee"
    MENTIONED = "mentioned"


class Phenomenon(StrEnum):
    """What an utterance is there for."""

    PLAIN = "plain"
    VOCATIVE_START = "vocative-start"
    VOCATIVE_MIDDLE = "vocative-middle"
    VOCATIVE_END = "vocative-end"
    QUOTE = "quote"
    QUOTE_WITHOUT_MARKS = "quote-without-marks"
    OTHER_PREFERENCE = "other-preference"
    OWN_PREFERENCE = "own-preference"
    OWN_AND_OTHER_PREFERENCE = "own-and-other-preference"
    FORWARDED = "forwarded"
    CHAT_LOG = "chat-log"
    AGENT_SPEAKS = "agent-speaks"
    AGENT_QUOTES_USER = "agent-quotes-user"
    UNSIGNED = "unsigned"
    SELF_INTRODUCTION = "self-introduction"
    SUBJECT_NOT_VOCATIVE = "subject-not-vocative"
    REPORTED_SPEECH = "reported-speech"
    MARKS_WITHOUT_SPEECH = "marks-without-speech"
    NO_PREFERENCE = "no-preference"
    NAME_TRAP = "name-trap"


HARD_NEGATIVES = frozenset(
    {
        Phenomenon.SUBJECT_NOT_VOCATIVE,
        Phenomenon.REPORTED_SPEECH,
        Phenomenon.MARKS_WITHOUT_SPEECH,
        Phenomenon.NO_PREFERENCE,
        Phenomenon.NAME_TRAP,
    }
)
"""Those that look like a case of something and are none."""


class Voice(Record):
    """Whose something is.

    Attributes:
        kind: Kind of author.
        name: Name as the text has it, or the shortest noun phrase that says who; empty where the text has neither.
    """

    kind: Author
    name: str = ""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.kind is Author.UNKNOWN and self.name:
            raise ValueError(f"a voice that is unknown has the name {self.name}")
        return self


class Person(Record):
    """A person who is named.

    Attributes:
        name: The longest form in the text, without a title.
        role: What they are to the message.
        vocative: Whether the name calls them at least once.
    """

    name: str = Field(min_length=1)
    role: Role
    vocative: bool = False


class Quote(Record):
    """Words given as somebody's own.

    Attributes:
        text: The span, without marks.
        speaker: Whose words they are.
    """

    text: str = Field(min_length=1)
    speaker: Voice


class Labels(Record):
    """Who said what: the truth about an utterance, or what an extractor makes of it.

    Attributes:
        author: Whose words the message as a whole is.
        persons: Each person who is named, once.
        quotes: Quoted speech.
        preferences: Holders of preferences, each once.
    """

    author: Voice
    persons: tuple[Person, ...] = ()
    quotes: tuple[Quote, ...] = ()
    preferences: tuple[Voice, ...] = ()


class Message(Record):
    """What an extractor sees of an utterance.

    Attributes:
        text: The message.
        sent_as: Role of the message in its session.
    """

    text: str = Field(min_length=1, max_length=2000)
    sent_as: Literal["user", "assistant", "tool"]


class Utterance(Labels, Message):
    """A message with its labels: a line of ``utterances.jsonl``.

    Attributes:
        id: Unique over all parts.
        language: ``en`` or ``pt-BR``.
        phenomenon: What it is there for.
        pair: Name that variants of one sentence share, which are one cluster; empty for one of its own.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    language: Literal["en", "pt-BR"]
    phenomenon: Phenomenon
    pair: str = ""

    @model_validator(mode="after")
    def _in_its_text(self) -> Self:
        lower = self.text.lower()
        names = [person.name.lower() for person in self.persons]
        voices = (self.author, *(quote.speaker for quote in self.quotes), *self.preferences)
        for said in (*names, *(voice.name.lower() for voice in voices)):
            if said not in lower:
                raise ValueError(f"the name {said} is not in the text")
        for quote in self.quotes:
            if quote.text not in self.text:
                raise ValueError(f"the quote {quote.text} is not in the text")
        for what, many in (("person", names), ("holder of a preference", self.preferences)):
            if len(set(many)) < len(many):
                raise ValueError(f"a {what} is there twice")
        return self

    @property
    def message(self) -> Message:
        """What an extractor is given of it."""
        return Message(text=self.text, sent_as=self.sent_as)

    @property
    def cluster(self) -> str:
        """Its unit of independence: the pair, or itself."""
        return f"pair {self.pair}" if self.pair else self.id


class Part(Record):
    """The utterances of one folder.

    Attributes:
        purpose: Whether patterns may be written on it.
        utterances: In the order of the file.
    """

    purpose: Purpose
    utterances: tuple[Utterance, ...]

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"provenance-{self.purpose}"

    def info(self) -> DataInfo:
        """What a result tells of it; the digest is taken over all utterances with their labels."""
        counts: dict[str, int] = {
            "utterances": len(self.utterances),
            "clusters": len({one.cluster for one in self.utterances}),
            "hard negatives": sum(one.phenomenon in HARD_NEGATIVES for one in self.utterances),
            "persons": sum(len(one.persons) for one in self.utterances),
            "vocatives": sum(person.vocative for one in self.utterances for person in one.persons),
            "quotes": sum(len(one.quotes) for one in self.utterances),
            "preferences": sum(len(one.preferences) for one in self.utterances),
            **{code: sum(one.language == code for one in self.utterances) for code in ("en", "pt-BR")},
        }
        return DataInfo(
            name=self.name,
            purpose=self.purpose,
            digest=digest([one.model_dump(mode="json") for one in self.utterances]),
            counts=counts,
            source=_SOURCES[self.purpose],
        )


_SOURCES = {
    Purpose.DEVELOPMENT: "invented; written with the reference extractor's patterns",
    Purpose.HOLD_OUT: "invented; written from the guide alone, by an author who had not seen the patterns",
}


def load_part(folder: Path, purpose: Purpose) -> Part:
    """Loads one part.

    Args:
        folder: It holds ``utterances.jsonl``.
        purpose: What it may be used for.

    Raises:
        BrokenData: Naming file and line of the first fault.
    """
    path = folder / UTTERANCES
    found: dict[str, Utterance] = {}
    lines: dict[str, int] = {}
    texts: dict[str, str] = {}
    for number, line in numbered_lines(path):
        try:
            one = Utterance.model_validate_json(line, strict=True)
        except ValidationError as error:
            fault = explained(path, number, error, Utterance)
            raise BrokenData(path, number, fault.fault, _GUIDE) from None
        if one.id in found:
            raise BrokenData(path, number, f"the id {one.id} is there twice", "rename one of the two")
        same = texts.setdefault(f"{one.sent_as} {one.text}", one.id)
        if same != one.id:
            raise BrokenData(path, number, f"the text is that of {same}", "remove one of the two")
        found[one.id], lines[one.id] = one, number
    if not found:
        raise BrokenData(path, 1, "the file is empty", "write one utterance a line")
    pairs = Counter(one.pair for one in found.values() if one.pair)
    for one in found.values():
        if pairs.get(one.pair) == 1:
            raise BrokenData(path, lines[one.id], f"the pair {one.pair} has one member", "leave pair out")
    return Part(purpose=purpose, utterances=tuple(found.values()))


def load_parts(root: Path) -> tuple[Part, ...]:
    """Loads the development part, and the hold-out part where its folder is there.

    Raises:
        BrokenData: As for ``load_part``; or an utterance of one part is in the other, too.
    """
    parts = tuple(
        load_part(root / folder, purpose)
        for folder, purpose in PARTS.items()
        if purpose is Purpose.DEVELOPMENT or (root / folder).exists()
    )
    require_apart(root, (UTTERANCES,), "text")
    return parts


def main(folder: str) -> int:
    """Checks one part and tells what is in it; for authors of utterances."""
    try:
        part = load_part(Path(folder), Purpose.HOLD_OUT)
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    phenomena = Counter(str(one.phenomenon) for one in part.utterances)
    for name, count in (*part.info().counts.items(), *phenomena.items()):
        sys.stdout.write(f"{name}: {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["."]))
