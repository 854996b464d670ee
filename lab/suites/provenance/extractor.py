"""The reference extractor: patterns of form, written on the development part only; no model and no list of names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.records import digest
from lab.retrieval.testset import Author
from lab.suites.provenance.data import Labels, Message, Person, Quote, Role, Voice
from lab.suites.provenance.frame import UNKNOWN, Frame, frame_of
from lab.suites.provenance.likes import find_holders
from lab.suites.provenance.names import Named, find_names
from lab.suites.provenance.scoring import same_name, same_span
from lab.suites.provenance.speech import PERSON, Talk, blank, find_quotes, spans

_SOURCES = ("extractor.py", "frame.py", "likes.py", "names.py", "speech.py", "words.py")
_NAME = re.compile(PERSON)


class ReferenceExtractor:
    """Says who said what by the form of messages and sentences."""

    name = "reference"

    def settings(self) -> Mapping[str, Any]:
        """Digest of its patterns, so that a change after the hold-out was seen shows."""
        folder = Path(__file__).parent
        return {"patterns": digest({name: (folder / name).read_text(encoding="utf-8") for name in _SOURCES})}

    def extract(self, messages: Sequence[Message]) -> list[Labels]:
        """See ``Extractor.extract``; one message knows nothing of another."""
        return [_labels(one.text, frame_of(one)) for one in messages]


def _labels(text: str, frame: Frame) -> Labels:
    if frame.lines:
        quotes = list(frame.lines)
        speakers = [quote.speaker.name for quote in quotes if quote.speaker.name]
        named = [one for quote in quotes for one in (*find_names(quote.text), *_line_calls(quote.text, speakers))]
        stretches = [(quote.text, Talk(quote.speaker, UNKNOWN)) for quote in quotes]
    else:
        quotes = find_quotes(text, frame.talk)
        speakers = [quote.speaker.name for quote in quotes if _NAME.fullmatch(quote.speaker.name)]
        named = find_names(_blanked(text, quotes, speech=False))
        stretches = [(_blanked(text, quotes, speech=True), frame.talk)]
        stretches += [(quote.text, Talk(quote.speaker, _other(quote.speaker, frame.talk))) for quote in quotes]
    holders: dict[tuple[Author, str], Voice] = {}
    for stretch, talk in stretches:
        for voice in find_holders(stretch, talk):
            holders.setdefault((voice.kind, same_name(voice.name)), voice)
    persons = _persons(named, [*frame.uttered, *speakers], frame.addressed)
    return Labels(author=frame.author, persons=persons, quotes=tuple(quotes), preferences=tuple(holders.values()))


def _line_calls(line: str, speakers: Sequence[str]) -> list[Named]:
    """A line of a log that begins with the label of another one calls them, in small letters, too."""
    return [Named(name, True) for name in set(speakers) if line.lower().startswith(f"{name.lower()},")]


def _other(speaker: Voice, talk: Talk) -> Voice:
    return talk.you if speaker == talk.me else UNKNOWN


def _blanked(text: str, quotes: Sequence[Quote], *, speech: bool) -> str:
    """The text with blanks for all quoted speech, or for all that stands in marks and is no speech."""
    spoken = {same_span(quote.text) for quote in quotes}
    for start, end in spans(text):
        if speech or same_span(text[start:end]) not in spoken:
            text = blank(text, start, end)
    for quote in quotes if speech else ():
        text = text.replace(quote.text, "_")
    return text


def _persons(named: Sequence[Named], uttered: Sequence[str], addressed: Sequence[str]) -> tuple[Person, ...]:
    """Each person once, in the longest form; the first role that fits counts."""
    every = [*uttered, *addressed, *(one.name for one in named)]
    forms = {name: max((other for other in every if _part_of(name, other)), key=len) for name in every}
    found: dict[str, Person] = {}
    for name in every:
        whole = forms[name]
        called = any(one.called and forms[one.name] == whole for one in named)
        role = Role.MENTIONED
        if any(forms[one] == whole for one in uttered):
            role = Role.UTTERED_BY
        elif called or any(forms[one] == whole for one in addressed):
            role = Role.ADDRESSEE
        found.setdefault(same_name(whole), Person(name=whole, role=role, vocative=called))
    return tuple(found.values())


def _part_of(name: str, other: str) -> bool:
    return f" {same_name(name)} " in f" {same_name(other)} "
