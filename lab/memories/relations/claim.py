"""A claim: one stated relation with the time in which it is true and the moment at which it became known."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from pydantic import BeforeValidator, StringConstraints, model_validator

from lab.records import Record


def instant(value: object) -> datetime:
    """A moment in UTC.

    Another zone is refused and not converted: a memory that takes "10 o'clock" from two zones and keeps no word of it
    cannot be asked later what was meant.

    Args:
        value: ISO 8601 text with ``Z`` or ``+00:00``, or a ``datetime`` that is aware and at offset zero.

    Raises:
        ValueError: It is no moment, has no zone, or has another one than UTC.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is no moment; write ISO 8601 with Z: 2026-03-01T09:00:00Z") from None
    if not isinstance(value, datetime):
        raise ValueError("a moment is ISO 8601 text or a datetime")
    offset = value.utcoffset()
    if offset is None:
        raise ValueError(f"{value.isoformat()} has no time zone; write it in UTC, with Z at the end")
    if offset != timedelta(0):
        raise ValueError(f"{value.isoformat()} is not in UTC; convert it and write Z at the end")
    return value.astimezone(UTC)


def storable(value: object) -> object:
    """Text that a database can hold.

    Raises:
        ValueError: It has half a surrogate pair, which no encoding has a place for.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{value!r} holds half a surrogate pair; write the character itself") from None
    return value


def name(value: object) -> object:
    """A name in the one form in which names are compared: NFC, without space at its ends.

    Raises:
        ValueError: As ``storable``.
    """
    value = storable(value)
    return unicodedata.normalize("NFC", value).strip() if isinstance(value, str) else value


Instant = Annotated[datetime, BeforeValidator(instant)]
"""A moment in UTC, to the microsecond."""

Name = Annotated[str, BeforeValidator(name), StringConstraints(min_length=1)]
"""A name: of a person, a thing, a kind of relation. Two are one if their NFC forms are equal, case included."""

Id = Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1)]
"""Name of a claim."""


class Claim(Record):
    """One row of the graph. It is written once and never changed.

    Validity is half-open, ``[valid_from, valid_to)``: at the moment of a change the new claim holds and the old one
    does not. An empty interval (both ends equal) is a *retraction*: the claim that it supersedes was never true.

    Attributes:
        id: Unique; decides what ``supersedes`` means.
        subject: Of whom or what.
        kind: Which relation: ``works_at``.
        object: To whom or what.
        valid_from: When it begins to be true.
        valid_to: When it ceases to be true; None for an open end.
        ingested_at: When it became known.
        supersedes: Id of the claim that it takes the place of from ``ingested_at`` on; None for none. Several claims
            may supersede the same one: so an interval is cut in two.
    """

    id: Id
    subject: Name
    kind: Name
    object: Name
    valid_from: Instant
    valid_to: Instant | None = None
    ingested_at: Instant
    supersedes: Id | None = None

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.supersedes == self.id:
            raise ValueError(f"claim {self.id} supersedes itself")
        if self.valid_to is not None and self.valid_to < self.valid_from:
            raise ValueError(f"claim {self.id} ends before it begins")
        if self.valid_to == self.valid_from and self.supersedes is None:
            raise ValueError(f"claim {self.id} is never true and retracts nothing")
        return self

    def holds(self, valid: datetime) -> bool:
        """Whether it says something of a moment."""
        return self.valid_from <= valid and (self.valid_to is None or valid < self.valid_to)
