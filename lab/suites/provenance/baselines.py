"""Extractors that know next to nothing: what any other one must be better than."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from lab.retrieval.testset import Author
from lab.suites.provenance.data import Labels, Message, Part, Person, Quote, Role, Voice

_T = TypeVar("_T")

_CAPITALISED = re.compile(r"(?<![.!?\n] )(?<!^)(?<![\w\"“«'])[A-ZÀ-Ý][\w'-]+(?: [A-ZÀ-Ý][\w'-]+)*", re.MULTILINE)
_MARKED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»")


class Extractor(Protocol):
    """Says of messages who said what."""

    @property
    def name(self) -> str:
        """Short name, the same in every run."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """All that decides its answers."""
        ...

    def extract(self, messages: Sequence[Message]) -> list[Labels]:
        """Labels of messages, in their order; it is shown text and sender, and no label.

        Raises:
            SystemFailed: It could not answer.
            EnvironmentUnusable: It lacks something on this machine.
        """
        ...


class Constant:
    """Says the same of everything: every capitalised name and everything in quotation marks gets one label.

    Args:
        name: Its name.
        author: Author of every message.
        role: Role of every name.
        speaker: Speaker of whatever stands in quotation marks.
        holder: Whose preference every message tells; None for nobody's.
    """

    def __init__(self, name: str, author: Author, role: Role, speaker: Author, holder: Author | None) -> None:
        self.name = name
        self._author, self._role, self._speaker, self._holder = author, role, speaker, holder

    def settings(self) -> Mapping[str, Any]:
        """The labels that it gives."""
        return {"author": self._author, "role": self._role, "speaker": self._speaker, "holder": self._holder}

    def extract(self, messages: Sequence[Message]) -> list[Labels]:
        """See ``Extractor.extract``."""
        return [self._labels(one.text) for one in messages]

    def _labels(self, text: str) -> Labels:
        names = dict.fromkeys(_CAPITALISED.findall(text))
        spans = [next(filter(None, found.groups())) for found in _MARKED.finditer(text)]
        return Labels(
            author=Voice(kind=self._author),
            persons=tuple(Person(name=name, role=self._role) for name in names),
            quotes=tuple(Quote(text=span, speaker=Voice(kind=self._speaker)) for span in spans),
            preferences=() if self._holder is None else (Voice(kind=self._holder),),
        )


def all_user() -> Constant:
    """Everything is the user's: every message, every quotation, and a preference in every message."""
    return Constant("all-user", Author.USER, Role.MENTIONED, Author.USER, Author.USER)


def majority(part: Part) -> Constant:
    """The most frequent label of each kind; where most messages hold no preference, it says none.

    Args:
        part: What it counts them on: the development part.
    """
    these = part.utterances
    holders: Counter[Author | None] = Counter(kind for one in these for kind in {v.kind for v in one.preferences})
    holders[None] = sum(not one.preferences for one in these)
    return Constant(
        "majority",
        _most(Counter(one.author.kind for one in these), Author.USER),
        _most(Counter(person.role for one in these for person in one.persons), Role.MENTIONED),
        _most(Counter(quote.speaker.kind for one in these for quote in one.quotes), Author.USER),
        holders.most_common(1)[0][0],
    )


def _most(counted: Counter[_T], otherwise: _T) -> _T:
    return counted.most_common(1)[0][0] if counted else otherwise
