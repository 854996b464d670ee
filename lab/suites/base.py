"""What every suite takes and gives: data, rates with denominators, planted faults, curves, published numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import Field

from lab.records import Record
from lab.retrieval.arms import Tools
from lab.retrieval.testset import Purpose
from lab.statistics.proportions import Proportion


class DataInfo(Record):
    """One labelled data set of a suite.

    Attributes:
        name: Its name, the same in every run.
        purpose: Whether anything was chosen on it.
        digest: SHA-256 over its canonical form.
        counts: How much of what it holds: ``utterances``, ``topics``, …
        source: Who made it and how, one line.
    """

    name: str
    purpose: Purpose
    digest: str
    counts: dict[str, int]
    source: str


class Rate(Record):
    """One measured share.

    Attributes:
        measure: What is measured, the same for every system: ``false fallback``.
        system: Whose it is.
        data: Name of the data set.
        group: What it is split by, name to value; empty for all of it.
        proportion: The share, with its denominator and interval.
        better: ``high`` or ``low``: which way is good; empty where neither is.
    """

    measure: str
    system: str
    data: str
    group: dict[str, str] = Field(default_factory=dict)
    proportion: Proportion
    better: str = ""


class Number(Record):
    """One measured quantity that is no share: seconds, bytes, an exponent.

    Attributes:
        measure: What is measured.
        system: Whose it is.
        data: Name of the data set; empty where there is none.
        value: The quantity; None where it could not be had.
        unit: Its unit.
        detail: What a reader must know of it.
    """

    measure: str
    system: str
    data: str = ""
    value: float | None
    unit: str
    detail: str = ""


class Plant(Record):
    """A planted fault that the suite must catch, or a matched clean case on which it must stay silent.

    Attributes:
        fault: What was planted; of a clean case, what it is the twin of.
        clean: Whether it is the clean twin.
        reported: Whether the suite said that something is wrong.
        detail: By what it was, or was not, seen.
    """

    fault: str
    clean: bool = False
    reported: bool
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the suite did what it must."""
        return self.reported is not self.clean


class Curve(Record):
    """A trade-off to be drawn.

    Attributes:
        title: What is seen.
        x: Name of the horizontal axis, with its unit.
        y: Name of the vertical axis.
        lines: Points ``(x, y)`` by the name of their line.
        mark: Where the design's own setting stands on the horizontal axis; None for nowhere.
    """

    title: str
    x: str
    y: str
    lines: dict[str, tuple[tuple[float, float], ...]]
    mark: float | None = None


class Published(Record):
    """A number that a design was published with, beside what was measured here.

    Attributes:
        claim: What is claimed, in words.
        published: The number as published.
        measured: What was measured here, with n and interval.
        same_task: Whether it is the same task; where not, ``note`` says what differs.
        same_data: Whether it is the same data.
        note: What a reader must know before comparing the two.
    """

    claim: str
    published: str
    measured: str
    same_task: bool
    same_data: bool
    note: str


class SuiteResult(Record):
    """All that a suite found.

    Attributes:
        suite: Its name.
        title: One line.
        question: The question that it answers.
        data: The labelled data.
        rates: Shares, in the order in which they are to be read.
        numbers: Other quantities.
        plants: Planted faults and their clean twins.
        curves: Figures.
        published: Published numbers beside ours.
        errors: Cases that ended in an error, by cause; they are in no rate.
        notes: What a reader must know, one line each.
        settings: All that decides the results beside the data: thresholds, versions, digests of models.
    """

    suite: str
    title: str
    question: str
    data: tuple[DataInfo, ...]
    rates: tuple[Rate, ...] = ()
    numbers: tuple[Number, ...] = ()
    plants: tuple[Plant, ...] = ()
    curves: tuple[Curve, ...] = ()
    published: tuple[Published, ...] = ()
    errors: dict[str, int] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: dict[str, object] = Field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether every planted fault was caught and no clean twin accused; otherwise its rates prove nothing."""
        return all(plant.holds for plant in self.plants)


@dataclass(frozen=True)
class SuiteContext:
    """What a suite works with.

    Attributes:
        tools: Embedder and sandboxed systems, made when first asked for.
        data: Folder ``scenarios/suites``, with a folder for each suite.
        work: A private, empty folder that is removed afterwards.
        progress: Told of each case that is done: how many so far, of how many.
    """

    tools: Tools
    data: Path
    work: Path
    progress: Callable[[int, int], None] = lambda _done, _total: None


class Suite(Protocol):
    """A suite; a module-level function ``run`` with this signature, beside ``NAME``, ``TITLE`` and ``QUESTION``."""

    def __call__(self, context: SuiteContext) -> SuiteResult:
        """Runs it.

        Raises:
            InputError: Its data is broken; the file and line are named.
            EnvironmentUnusable: Something that it needs is not on this machine.
        """
        ...
