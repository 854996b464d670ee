"""What the universal layer keeps: records of what happened and of what was learnt from it, and what they state."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from lab.records import Record, digest

SCHEMA_VERSION = 2
"""Layout of records and tables; every record carries the one it was written under."""

_HALF = re.compile("[\ud800-\udfff]")


def record_key(kind: str, agent_id: str, content: str, created_at: float | None, founder: int | None) -> str:
    """Digest of what makes two records the same one; a record that was read is held against it."""
    # SQLite gives a negative zero back as zero.
    return digest([kind, agent_id, content, None if created_at is None else created_at + 0.0, founder])


class RecordKind(StrEnum):
    """What a record is."""

    EPISODIC = "episodic"
    """Something that was said or happened."""
    SEMANTIC = "semantic"
    """What several episodes have in common; names them as its sources."""


class StatedRelation(Record):
    """A link between two entities that whoever wrote the record stated; none is guessed from the text.

    Attributes:
        subject: Name of the one.
        kind: ``works_at``, ``sibling_of``, …
        target: Name of the other.
    """

    subject: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    target: str = Field(min_length=1)


class Draft(Record):
    """A record before it is committed.

    Attributes:
        content: The text.
        agent_id: Whose memory it is.
        kind: Episodic or semantic.
        created_at: When, in seconds since 1970 (UTC); None where it is not known.
        trust: 0 to 1.
        ttl: Seconds after ``created_at`` at which it expires; None for never.
        tags: Words that are searched beside the content.
        entities: Names of whom and what it is about.
        relations: Links that it states.
        sources: Of a semantic record, the ids of the agent's episodes that it was distilled from, its founder first.
    """

    content: str = Field(min_length=1)
    agent_id: str = Field(min_length=1)
    kind: RecordKind = RecordKind.EPISODIC
    created_at: float | None = Field(default=None, allow_inf_nan=False)
    trust: float = Field(default=0.5, ge=0, le=1)
    ttl: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    relations: tuple[StatedRelation, ...] = ()
    sources: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _storable(self) -> Self:
        # SQLite takes no lone surrogates; refused here, a batch cannot break in the middle of its commit.
        links = [text for link in self.relations for text in (link.subject, link.kind, link.target)]
        if any(_HALF.search(text) for text in (self.content, self.agent_id, *self.tags, *self.entities, *links)):
            raise ValueError("a text holds half a character (a lone surrogate)")
        if (self.kind is RecordKind.SEMANTIC) != bool(self.sources):
            raise ValueError("a semantic record names its sources, an episodic one has none")
        if self.ttl is not None and self.created_at is None:
            raise ValueError("a record that expires needs the time of its creation")
        return self

    @property
    def founder(self) -> int | None:
        """The first source: tells records apart that say the same of episodes that contradict each other."""
        return self.sources[0] if self.sources else None

    @property
    def key(self) -> str:
        """Digest of what makes two records the same one; see ``record_key``."""
        return record_key(self.kind, self.agent_id, self.content, self.created_at, self.founder)


class MemoryRecord(Record):
    """A committed record.

    Attributes:
        record_id: Never given twice, also not after the record was archived.
        kind: Episodic or semantic.
        agent_id: Whose memory it is.
        content: The text.
        trust: 0 to 1.
        created_at: When, in seconds since 1970 (UTC); None where it is not known.
        last_used_at: When it was last used; None for never.
        ttl: Seconds after ``created_at`` at which it expires; None for never.
        access_count: How often it was used.
        founder: Of a semantic record, the source that belongs to what identifies it.
        schema_version: Layout under which it was written.
        archived: Whether it lies in the archive, where no search finds it.
    """

    record_id: int
    kind: RecordKind
    agent_id: str
    content: str
    trust: float
    created_at: float | None
    last_used_at: float | None
    ttl: float | None
    access_count: int
    founder: int | None
    schema_version: int
    archived: bool


class Scope(Record):
    """Which records an act is about.

    Attributes:
        now: The time, in seconds since 1970 (UTC): what has expired by then is out. Nothing here reads a clock.
        agent_id: Whose records; None for everyone's.
        min_trust: Least trust.
    """

    now: float = Field(allow_inf_nan=False)
    agent_id: str | None = None
    min_trust: float = 0.0
