"""What a benchmark is run on: facts in stores, topics, and which facts answer which topic."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from lab.records import Record, digest

MAIN_STORE = "main"
"""Name of the only store of a set that has one."""


class Author(StrEnum):
    """Who said a fact."""

    USER = "user"
    AGENT = "agent"
    THIRD_PARTY = "third_party"
    UNKNOWN = "unknown"


class Relation(Record):
    """A typed link from a fact's subject to something else.

    Attributes:
        kind: ``works_at``, ``sibling_of``, …
        target: The other end, in words.
    """

    kind: str = Field(pattern=r"\S")
    target: str = Field(pattern=r"\S")


class Fact(Record):
    """One memory: a document of the collection.

    Attributes:
        id: Unique in its set; stable. Never shown to a system under test.
        text: The content.
        language: ``en``, ``pt-BR`` or another BCP 47 tag; empty where it is not known.
        author: Who said it.
        created_at: When, ISO 8601 in UTC; empty where it is not known.
        category: The store's category (``user_pref``, ``project``, ``tool``, ``general``).
        entities: Names of whom and what it is about.
        relations: Links between them.
        tags: Tags that it had from the start.
        keywords: Words that the keyword rule added; empty for facts that the rule leaves alone.
        supersedes: Id of an older fact that this one replaces.
        trust: Trust of the store in the fact, 0 to 1.
    """

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    language: str = ""
    author: Author = Author.UNKNOWN
    created_at: str = ""
    category: str = "general"
    entities: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    supersedes: str | None = None
    trust: float = Field(default=0.5, ge=0, le=1)


class Topic(Record):
    """One query (a *topic* in the words of TREC).

    Attributes:
        id: Unique in its set.
        text: The query as a user would type it.
        topic_class: What it probes: ``exact``, ``paraphrase``, ``third-party``, ``no-answer``, or an imported class.
        language: As for facts.
        store: The store that it is asked of.
    """

    id: str = Field(min_length=1)
    text: str
    topic_class: str = Field(default="all", min_length=1)
    language: str = ""
    store: str = MAIN_STORE


class Purpose(StrEnum):
    """What a set may be used for."""

    DEVELOPMENT = "development"
    """Weights, thresholds and keywords may be chosen on it."""
    HOLD_OUT = "hold-out"
    """Nothing may be chosen on it."""
    EXTERNAL = "external"
    """Somebody else's, imported."""


class TestSet(Record):
    """Facts, topics and relevance judgements (*qrels*) that belong together.

    Attributes:
        name: Short name, fit for a file name.
        title: One line for reports.
        purpose: What it may be used for.
        licence: Licence of the data, or ``synthetic``.
        source: Where it comes from.
        stores: Facts by store; topics of one store are never answered from another.
        topics: All queries.
        qrels: For each topic the ids of the facts that answer it. A topic without an entry, or with an empty one, has
            no answer in its store: it counts in the table of noise and in no mean.
        notes: What an importer repaired or left out, one line each.
    """

    # pytest would otherwise take the name for a test case.
    __test__ = False

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    title: str = ""
    purpose: Purpose = Purpose.EXTERNAL
    licence: str = ""
    source: str = ""
    stores: Mapping[str, tuple[Fact, ...]]
    topics: tuple[Topic, ...]
    qrels: Mapping[str, frozenset[str]]
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        places: dict[str, str] = {}
        for store, facts in self.stores.items():
            for fact in facts:
                if fact.id in places:
                    raise ValueError(f"fact {fact.id} is there twice")
                places[fact.id] = store
        stores_of = {topic.id: topic.store for topic in self.topics}
        if len(stores_of) != len(self.topics):
            raise ValueError("two topics have the same id")
        for topic in self.topics:
            if topic.store not in self.stores:
                raise ValueError(f"topic {topic.id} asks store {topic.store}, which there is not")
        for topic_id, relevant in self.qrels.items():
            if topic_id not in stores_of:
                raise ValueError(f"relevance is judged for topic {topic_id}, which there is not")
            for fact_id in sorted(relevant):
                if places.get(fact_id) != stores_of[topic_id]:
                    raise ValueError(f"topic {topic_id} is answered by fact {fact_id}, which is not in its store")
        return self

    def answerable(self, topic: Topic) -> bool:
        """Whether some fact of its store answers a topic."""
        return bool(self.qrels.get(topic.id))

    def digest(self) -> str:
        """Digest of all that decides a result: facts, topics and judgements, in a defined order."""
        return digest(
            {
                "stores": {s: [f.model_dump(mode="json") for f in facts] for s, facts in sorted(self.stores.items())},
                "topics": [t.model_dump(mode="json") for t in self.topics],
                "qrels": {t: sorted(r) for t, r in sorted(self.qrels.items()) if r},
            }
        )
