"""The bitemporal relation graph: claims are only ever added, and any past state of knowledge can be asked."""

from __future__ import annotations

from datetime import datetime
from itertools import combinations, groupby
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from lab.errors import InputError
from lab.memories.relations.claim import Claim, instant, name
from lab.memories.relations.database import connect, told, transaction

_COLUMNS = ("id", "subject", "kind", "object", "valid_from", "valid_to", "ingested_at", "supersedes")
_ORDER = "subject, kind, valid_from, ingested_at, id"

_BELIEVED = (
    "ingested_at <= :known AND NOT EXISTS "
    "(SELECT 1 FROM claims later WHERE later.supersedes = claims.id AND later.ingested_at <= :known)"
)


class Overlap(NamedTuple):
    """Two claims that give one subject different objects of one kind at the same time.

    Whether that is a contradiction depends on the kind (one can have two siblings, but not two birthdays); the graph
    shows it and leaves both.

    Attributes:
        first: The claim that begins first.
        second: The other.
        begin: From when both hold.
        end: Until when, exclusive; None for an open end.
    """

    first: Claim
    second: Claim
    begin: datetime
    end: datetime | None


class Step(NamedTuple):
    """A claim that was reached from a name.

    Attributes:
        hops: Claims from the name up to and with this one, from 1.
        claim: The claim.
    """

    hops: int
    claim: Claim


class RelationGraph:
    """Claims on two time axes: when something is true (*valid*), and when it was known (*known*).

    A claim is *believed* at a moment of knowledge if it was ingested by then and no claim ingested by then supersedes
    it. A correction that is itself corrected stays in force against what it had corrected. Answers depend on the set
    of claims alone, never on the order in which they were appended; a correction may arrive before its target.

    Source of the two axes: R. T. Snodgrass, *Developing Time-Oriented Database Applications in SQL*, 1999, ch. 10.

    Args:
        path: File of the graph, made when it is not there; None for one in memory.

    Raises:
        InputError: The file is damaged, or is something else.
        EnvironmentUnusable: It cannot be opened or made.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._connection = connect(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file; may be called twice."""
        self._connection.close()

    def append(self, *claims: Claim) -> int:
        """Adds claims, all or none.

        A claim that is there already, word for word, is passed over: the same log may be read twice.

        Returns:
            How many were new.

        Raises:
            InputError: An id is there with other words, or a claim became known no later than the one it supersedes.
            EnvironmentUnusable: The file cannot be written.
        """
        with told(self._path), transaction(self._connection):
            return sum(self._add(claim) for claim in claims)

    def as_of(
        self,
        valid: datetime | str,
        known: datetime | str,
        *,
        subject: str | None = None,
        kind: str | None = None,
        object: str | None = None,
    ) -> tuple[Claim, ...]:
        """Claims that hold at ``valid`` by what was known at ``known``.

        Args:
            valid: Moment that is asked about.
            known: Moment of knowledge: claims ingested later do not count, nor do their corrections.
            subject: Only claims of this subject.
            kind: Only claims of this kind.
            object: Only claims with this object.

        Returns:
            All of them, contradicting ones included, by subject, kind, begin, ingestion and id.

        Raises:
            InputError: A moment is none or not in UTC; the file is damaged.
        """
        condition = f"{_BELIEVED} AND valid_from <= :valid AND (valid_to IS NULL OR :valid < valid_to)"
        moments = {"valid": _text(_moment(valid)), "known": _text(_moment(known))}
        return self._rows(condition, moments, subject, kind, object)

    def believed(
        self,
        known: datetime | str,
        *,
        subject: str | None = None,
        kind: str | None = None,
        object: str | None = None,
    ) -> tuple[Claim, ...]:
        """All claims believed at a moment of knowledge, of whichever time they speak; see ``as_of``.

        Retractions are left out: they are true at no time.
        """
        condition = f"{_BELIEVED} AND (valid_to IS NULL OR valid_from < valid_to)"
        return self._rows(condition, {"known": _text(_moment(known))}, subject, kind, object)

    def history(
        self,
        *,
        subject: str | None = None,
        kind: str | None = None,
        object: str | None = None,
    ) -> tuple[Claim, ...]:
        """Every claim that was ever appended, superseded ones and retractions included; see ``as_of``."""
        return self._rows("TRUE", {}, subject, kind, object)

    def overlaps(
        self, known: datetime | str, *, subject: str | None = None, kind: str | None = None
    ) -> tuple[Overlap, ...]:
        """Pairs of believed claims with different objects for one subject and kind at the same time; see ``as_of``."""
        found = []
        for _, group in groupby(
            self.believed(known, subject=subject, kind=kind), lambda claim: (claim.subject, claim.kind)
        ):
            for first, second in combinations(group, 2):
                ends = [claim.valid_to for claim in (first, second) if claim.valid_to is not None]
                begin, end = max(first.valid_from, second.valid_from), min(ends, default=None)
                if first.object != second.object and (end is None or begin < end):
                    found.append(Overlap(first, second, begin, end))
        return tuple(found)

    def walk(self, start: str, valid: datetime | str, known: datetime | str, *, hops: int) -> tuple[Step, ...]:
        """Claims within some hops of a name, from subject to object and back, on both axes as ``as_of``.

        Args:
            start: A subject or object.
            valid: Moment that is asked about.
            known: Moment of knowledge.
            hops: Longest way, in claims.

        Returns:
            Each claim once with its shortest way; nearest first.
        """
        reached: dict[str, Step] = {}
        seen = frontier = {_name(start)}
        for distance in range(1, hops + 1):
            ends: set[str] = set()
            for node in sorted(frontier):
                around = (*self.as_of(valid, known, subject=node), *self.as_of(valid, known, object=node))
                for claim in around:
                    reached.setdefault(claim.id, Step(distance, claim))
                    ends |= {claim.subject, claim.object}
            frontier = ends - seen
            seen = seen | ends
        return tuple(reached.values())

    def _add(self, claim: Claim) -> bool:
        there = self._rows("id = :id", {"id": claim.id})
        if there and there[0] != claim:
            raise InputError(
                f"claim {claim.id} is there with other words", "append a claim of its own id that supersedes it"
            )
        if there:
            return False
        older = self._rows("id = :id", {"id": claim.supersedes}) if claim.supersedes else ()
        later = self._rows("supersedes = :id", {"id": claim.id})
        pairs = [(old, claim) for old in older] + [(claim, new) for new in later]
        for old, new in pairs:
            # Were equal times allowed, two claims could supersede each other and neither would ever be believed.
            if new.ingested_at <= old.ingested_at:
                raise InputError(
                    f"claim {new.id} supersedes {old.id}, which became known no earlier", "look at their ingested_at"
                )
        row = claim.model_dump()
        values = [_text(row[column]) if isinstance(row[column], datetime) else row[column] for column in _COLUMNS]
        marks = ", ".join("?" * len(_COLUMNS))
        self._connection.execute(f"INSERT INTO claims VALUES ({marks})", values)  # noqa: S608
        return True

    def _rows(
        self,
        condition: str,
        values: dict[str, str],
        subject: str | None = None,
        kind: str | None = None,
        object: str | None = None,
    ) -> tuple[Claim, ...]:
        wanted = {"subject": subject, "kind": kind, "object": object}
        names = {column: _name(value) for column, value in wanted.items() if value is not None}
        condition = " AND ".join([condition, *(f"{column} = :{column}" for column in names)])
        query = f"SELECT {', '.join(_COLUMNS)} FROM claims WHERE {condition} ORDER BY {_ORDER}"  # noqa: S608
        with told(self._path):
            rows = self._connection.execute(query, {**values, **names}).fetchall()
            return tuple(Claim.model_validate(dict(zip(_COLUMNS, row, strict=True))) for row in rows)


def _moment(value: datetime | str) -> datetime:
    try:
        return instant(value)
    except ValueError as error:
        raise InputError(str(error), "ask in UTC: 2026-03-01T09:00:00Z") from None


def _name(value: str) -> str:
    try:
        return str(name(value))
    except ValueError as error:
        raise InputError(str(error), "ask for another name") from None


def _text(moment: datetime) -> str:
    """Always with microseconds, so that the order of texts is the order of moments."""
    return moment.isoformat(timespec="microseconds")
