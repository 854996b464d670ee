"""The file of results: a head that says what was measured under which terms, then a line for each measurement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.records import Record, first_fault

from .contestants import FLOORS, K, floors_of
from .data import NOISE, REAL, SEED, TOPICS

PROCESSOR = ("ingest_cpu_seconds", "query_cpu_ms")
"""Time of the processor, all threads: it hardly depends on what else the machine does."""

MEASURES = (
    *("ingest_seconds", "ingest_cpu_seconds", "p50_ms", "p95_ms", "query_cpu_ms", "odd_p50_ms"),
    *("disk_bytes", "memory_bytes"),
)
"""What is tabled and what growth is told of."""

WITHOUT_FLOOR = frozenset({"odd_p50_ms"})
"""Measures that no floor has: plain FTS5 has nothing to look for where no word is left."""


class Outcome(StrEnum):
    """How a measurement ended."""

    OK = "ok"
    TIME = "time limit"
    MEMORY = "memory limit"
    ERROR = "error"
    UNAVAILABLE = "unavailable"
    SKIPPED = "not tried"
    """Because the same system was stopped by a limit at a smaller size."""


class Terms(Record):
    """What must be the same for results to stand in one file.

    Attributes:
        layout: Version of the file.
        seed: Of the facts and the perturbation.
        real: Facts with a real vector.
        noise: Length of the perturbation.
        topics: Questions.
        k: Hits asked for.
        limit_seconds: Most time of a measurement.
        limit_megabytes: Most memory of one.
    """

    layout: int = 1
    seed: int = SEED
    real: int = REAL
    noise: float = NOISE
    topics: int = TOPICS
    k: int = K
    limit_seconds: float
    limit_megabytes: float


class Row(Record):
    """One system at one size.

    Attributes:
        run: Start of the call of the benchmark, ISO 8601 in UTC: ratios are taken within one.
        system: Its name.
        facts: The size.
        outcome: How it ended.
        phase: Where it ended: ``start``, ``ingest``, ``search``, ``odd``, ``end``.
        detail: What is to be said of that, in one line.
        load: Average number of runnable processes over the minute before and the one after; its mean.
        channels: The channels that ran.
        values: What was measured before it ended, by name.
    """

    run: str
    system: str
    facts: int
    outcome: Outcome
    phase: str = ""
    detail: str = ""
    load: float
    channels: tuple[str, ...] = ()
    values: Mapping[str, float] = {}

    @property
    def floors(self) -> tuple[str, ...]:
        """The floors that it is set against; none for a floor."""
        return () if self.system in FLOORS else floors_of(frozenset(self.channels))


@dataclass(frozen=True)
class Growth:
    """How a measure grows with the number of facts.

    Attributes:
        exponent: Least-squares slope of log(measure) on log(facts): 1 is in proportion, 0 not at all.
        last: Slope between the two largest sizes alone: the fixed cost of small sizes flattens the other.
        points: Sizes that it is taken over.
    """

    exponent: float
    last: float
    points: int


def ratio(row: Row, name: str, rows: Iterable[Row]) -> float | None:
    """A measure over that of the row's floors together, of the same size in the same run; None without one of them."""
    if name in WITHOUT_FLOOR:
        return None
    beside = {each.system: each for each in rows if (each.run, each.facts) == (row.run, row.facts)}
    below = [beside[floor].values.get(name) for floor in row.floors if floor in beside]
    measured = [value for value in below if value]
    value = row.values.get(name)
    if value is None or not measured or len(measured) < len(row.floors):
        return None
    return value / sum(measured)


def growth(rows: Iterable[Row], name: str) -> Growth | None:
    """Growth of a measure over one system's rows; None with fewer than two sizes.

    Args:
        rows: Of one system; of several of one size the last counts.
        name: The measure. Of ``memory_bytes`` what a process holds before it takes a fact in is taken off first.
    """
    found: dict[int, float] = {}
    for row in rows:
        value = row.values.get(name)
        if value is not None and name == "memory_bytes":
            value -= row.values.get("base_bytes", 0.0)
        if value is not None and value > 0:
            found[row.facts] = value
    if len(found) < 2:
        return None
    points = [(math.log(facts), math.log(value)) for facts, value in sorted(found.items())]
    return Growth(_slope(points), _slope(points[-2:]), len(points))


def _slope(points: Sequence[tuple[float, float]]) -> float:
    mean_x, mean_y = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return over / sum((x - mean_x) * (x - mean_x) for x, _ in points)


class Results:
    """The file; a call that was cut off goes on with it.

    Args:
        path: Made where it is not there.
        terms: Those of this call.

    Raises:
        InputError: It is something else, or was measured under other terms.
        EnvironmentUnusable: It cannot be written.
    """

    def __init__(self, path: Path, terms: Terms) -> None:
        self._path = path
        self.rows: list[Row] = []
        try:
            text = path.read_text("utf-8") if path.is_file() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read as results: {error}", "name another file") from error
        # A last line without an end was being written when the call was killed.
        whole = text[: text.rfind("\n") + 1]
        lines = whole.splitlines()
        if not lines:
            if text:
                raise InputError(f"{path} holds no results of this benchmark", "name another file")
            self._append(terms)
            return
        self._read(lines, terms)
        if whole != text:
            path.write_text(whole, "utf-8")

    def _read(self, lines: Sequence[str], terms: Terms) -> None:
        held, number = terms, 0
        try:
            for number, line in enumerate(lines, 1):
                if number == 1:
                    held = Terms.model_validate_json(line)
                else:
                    self.rows.append(Row.model_validate_json(line))
        except ValidationError as error:
            raise InputError(
                f"{self._path}, line {number}, is no result: {first_fault(error)}", "name another file"
            ) from error
        if held != terms:
            other = next(name for name in Terms.model_fields if getattr(held, name) != getattr(terms, name))
            raise InputError(
                f"{self._path} was measured with {other} {getattr(held, other)}, not {getattr(terms, other)}",
                "give the same options, or name another file",
            )

    def add(self, row: Row) -> None:
        """Notes a measurement, on disk first.

        Raises:
            EnvironmentUnusable: It cannot be written.
        """
        self._append(row)
        self.rows.append(row)

    def of(self, system: str) -> list[Row]:
        """The rows of a system in the order of their sizes."""
        return sorted((row for row in self.rows if row.system == system), key=lambda row: row.facts)

    def _append(self, record: Record) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(record.model_dump_json() + "\n")
        except OSError as error:
            raise EnvironmentUnusable(
                f"{self._path} cannot be written: {error.strerror}", "name another file"
            ) from error
