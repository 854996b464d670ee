"""The hosts of imported payloads: the texts around them, as data in ``lab/contamination/scenarios/hosts``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from lab.contamination.scenarios.words import Carrier, Language
from lab.records import Record

FOLDER = Path(__file__).parents[1] / "hosts"


T = TypeVar("T")


class Bilingual(Record, Generic[T]):
    """Something in both languages."""

    en: T
    pt: T

    def of(self, language: Language) -> T:
        """What it is in a language."""
        return self.en if language is Language.EN else self.pt


Both = Bilingual[str]


class HostText(Record):
    """A host in one language; what a carrier has no use for is empty.

    Attributes:
        question: What the user asks.
        answer: What the scripted model answers.
        text: The text that holds the slot of the content.
        path: Of a file, below the working directory.
        pattern: What a search looks for.
        description: Of a skill, for the index.
        goal: What a child agent is to do.
        context: What it is told besides.
        title: Of a task on the board.
        author: Who comments on it.
    """

    question: str
    answer: str
    text: str
    path: str = ""
    pattern: str = ""
    description: str = ""
    goal: str = ""
    context: str = ""
    title: str = ""
    author: str = ""


class Host(Bilingual[HostText]):
    """Neutral text around a payload.

    Attributes:
        id: Its name; of a skill, the skill's.
        what: What it is, for titles and cards.
        suits: Deliveries it is made for; empty for any other.
    """

    id: str
    what: str
    suits: tuple[str, ...] = ()


class SeedText(Record):
    """A skill that a payload wants changed; see ``hosts/skills.yaml``."""

    description: str
    line: str
    body: str


class SeedHost(Bilingual[SeedText]):
    """A skill that a payload wants changed, in both languages."""

    id: str


class CompressionText(Record):
    """The end of a long conversation; see ``hosts/conversations.yaml``."""

    path: str
    file: str
    question: str
    answer: str
    summary: str
    kept: str


class CompressionHost(Bilingual[CompressionText]):
    """The end of a long conversation in both languages."""

    id: str


class WorldText(Record):
    """Entries of the memory and the user profile."""

    memory: tuple[str, ...]
    user: tuple[str, ...]


class WorldHost(Bilingual[WorldText]):
    """What the agent remembers before, in both languages."""

    id: str


class Safety(Bilingual[str]):
    """A safety rule, and beginnings of words by which a payload is seen to mean it."""

    words: tuple[str, ...]


class Statement(Record):
    """What the user asks besides a statement of his own, and the answer."""

    ask: str
    answer: str


class TagSet(Record):
    """Tags of the OWASP lists and of MITRE ATLAS."""

    owasp: tuple[str, ...] = ()
    atlas: tuple[str, ...] = ()


class Tags(Record):
    """Tags by what they follow from."""

    all: TagSet
    targets: dict[str, TagSet]
    families: dict[str, TagSet]
    effects: dict[str, TagSet]
    deliveries: dict[str, TagSet]
    goals: dict[str, TagSet]


class Rules(Record):
    """Old entries of the memory; see ``hosts/rules.yaml``."""

    handbook: Both
    replaced: dict[str, Both]
    safety: tuple[Safety, ...]


class Words(Record):
    """Words around contents; see ``hosts/words.yaml``."""

    twins: dict[str, Bilingual[tuple[str, ...]]]
    paraphrase: Both
    steps: dict[Carrier, dict[str, str]]
    asks: dict[Carrier, Both]
    carriers: dict[Carrier, str]
    goals: dict[str, str]
    places: dict[str, str]
    tags: Tags


class Hosts(Record):
    """All hosts.

    Attributes:
        documents: For pastes, files and long conversations.
        searches: Files for a search.
        views: Skills that bring the content when opened.
        seeds: Skills that a payload wants changed.
        reports: Words of child agents.
        boards: Comments on the shared board.
        compressions: Ends of long conversations.
        statement: What stands beside a statement of the user.
        worlds: What is remembered before.
        rules: Old entries.
        words: Words around contents.
    """

    documents: tuple[Host, ...]
    searches: tuple[Host, ...]
    views: tuple[Host, ...]
    seeds: tuple[SeedHost, ...]
    reports: tuple[Host, ...]
    boards: tuple[Host, ...]
    compressions: tuple[CompressionHost, ...]
    statement: Bilingual[Statement]
    worlds: tuple[WorldHost, ...]
    rules: Rules
    words: Words

    def bringing(self, carrier: Carrier, delivery: str) -> tuple[Host, ...]:
        """Hosts for a carrier: those made for the delivery, or else those for any."""
        hosts = {
            Carrier.SEARCH_FILES: self.searches,
            Carrier.SKILL_VIEW: self.views,
            Carrier.DELEGATE: self.reports,
            Carrier.DELEGATION_NOTICE: self.reports,
            Carrier.KANBAN: self.boards,
        }.get(carrier, self.documents)
        made_for = tuple(host for host in hosts if delivery in host.suits)
        return made_for or tuple(host for host in hosts if not host.suits)


@functools.cache
def load_hosts() -> Hosts:
    """Reads the hosts that come with the lab."""

    def read(name: str) -> Any:
        return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))

    return Hosts.model_validate(
        {
            **{name: read(name) for name in ("documents", "searches", "worlds", "rules", "words")},
            **read("skills"),
            **read("agents"),
            **read("conversations"),
        }
    )
