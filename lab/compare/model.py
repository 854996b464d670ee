"""The comparison that every writer reads: sides, paired tables, differences, verdicts, and the cells that flipped."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from lab.records import Record
from lab.statistics.proportions import Proportion

COMPARE_FORMAT = "lab-compare/1"


class Dimension(StrEnum):
    """In what two sides differ."""

    BUILD = "build"
    SETUP = "setup"
    MODEL = "model"
    RUN = "run"
    """In nothing that decides a result, beyond what is named as differing anyway."""


class Verdict(StrEnum):
    """What a comparison says of one measure. None of them is "equal"."""

    BETTER = "better"
    WORSE = "worse"
    NONE_SHOWN = "no difference shown"
    CANNOT_TELL = "cannot tell"


class Count(Record):
    """How many, of what."""

    label: str
    count: int


class Side(Record):
    """One of the sides that are compared.

    Attributes:
        letter: By which it is named; the baseline is A.
        run: Id of the run.
        name: What is special about it: build, setup or model, or the run's id.
    """

    letter: str
    run: str
    name: str


class Noise(Record):
    """How often repeats of one cell disagree within one side: what differs without any cause.

    Attributes:
        cells: Cells with the verdict of two repeats at least.
        disagreeing: Those of them whose repeats do not all say the same.
        rate: Share of all pairs of repeats of a cell that disagree; None without such a cell.
    """

    cells: int
    disagreeing: int
    rate: float | None


class Difference(Record):
    """A difference, B minus A, with its interval; None where there is nothing to take it of.

    Attributes:
        value: In the measure's own unit.
        low: Lower bound.
        high: Upper bound.
        method: How the interval was made.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""


class Row(Record):
    """One measure over all pairs in which it is decided on both sides.

    Attributes:
        group: Model, or set and arm.
        measure: What is counted.
        fewer_is_better: Which way is better.
        declared: Whether it is among the measures that are tested; others only show that the harness is sound.
        unit: What the units are, in the plural.
        n: Pairs.
        units: Units that the pairs are nested in.
        both: Pairs that count on both sides.
        only_first: Pairs that count on the first alone.
        only_second: … on the second alone.
        neither: … on none.
        first: Rate of the first side over these pairs.
        second: Rate of the second.
        p: Exact McNemar; over units, where one has several pairs. None where it is not tested.
        p_holm: The same after Holm over all declared measures of the comparison.
        difference: Difference of the rates.
        design_effect: By how much the pairs tell less than as many independent ones.
        noise: Of the first side and of the second.
        verdict: What it says of the second side; None where it is not tested.
        needed: Pairs that a verdict needs, where it is "cannot tell" and there is a pair.
        needed_units: The same in units, with as many pairs each as there are.
        left_out: Pairs that are not in it, by cause.
    """

    group: str
    measure: str
    fewer_is_better: bool
    declared: bool
    unit: str
    n: int
    units: int
    both: int
    only_first: int
    only_second: int
    neither: int
    first: Proportion
    second: Proportion
    p: float | None
    p_holm: float | None
    difference: Difference
    design_effect: float
    noise: tuple[Noise, Noise] | None
    verdict: Verdict | None
    needed: int | None = None
    needed_units: int | None = None
    left_out: tuple[Count, ...] = ()


class MeanRow(Record):
    """A mean of each topic's value, paired by topic.

    Attributes:
        group: Set and arm.
        measure: What is averaged.
        n: Topics.
        first: Mean of the first side; None without a topic.
        second: Mean of the second.
        difference: Their difference, with a paired bootstrap interval.
        verdict: By the rule of the benchmark: Hit@1 and this mean have to agree.
    """

    group: str
    measure: str
    n: int
    first: float | None
    second: float | None
    difference: Difference
    verdict: Verdict


class Part(Record):
    """What a row is made of: pairs of one family in one setup of one build. Not tested."""

    group: str
    measure: str
    build: str
    setup: str
    family: str
    n: int
    first: int
    second: int
    only_first: int
    only_second: int


class Place(Record):
    """Where the evidence of one side of a pair is.

    Attributes:
        letter: The side.
        label: Trial id, or name of the rows file.
        path: Relative to the run folder.
    """

    letter: str
    label: str
    path: str


class Change(Record):
    """How one measure of a pair changed."""

    measure: str
    before: str
    after: str


class Flip(Record):
    """A pair that does not say the same on both sides.

    Attributes:
        what: Scenario or topic.
        role: Role of the trial, or class of the topic.
        where: What else names the cell.
        changes: What changed.
        first: Evidence of the first side.
        second: Evidence of the second.
    """

    what: str
    role: str
    where: str
    changes: tuple[Change, ...]
    first: Place
    second: Place


class Contrast(Record):
    """One side against the baseline.

    Attributes:
        first: The baseline.
        second: The other side.
        dimension: In what they differ.
        compared: The difference of the locks in that dimension, line by line.
        remaining: Further differences, which were put up with.
        pairs: Pairs of trials or topics.
        alone: What has no partner, by cause.
        rows: Measures with their tests.
        means: Means with their intervals.
        parts: What the rows are made of.
        flips: The pairs that changed.
    """

    first: Side
    second: Side
    dimension: Dimension
    compared: tuple[str, ...]
    remaining: tuple[str, ...]
    pairs: int
    alone: tuple[Count, ...] = ()
    rows: tuple[Row, ...] = ()
    means: tuple[MeanRow, ...] = ()
    parts: tuple[Part, ...] = ()
    flips: tuple[Flip, ...] = ()


class Comparison(Record):
    """A whole comparison.

    Attributes:
        format: ``lab-compare/1``.
        lab_version: Version of the lab.
        kind: ``contamination`` or ``bench``.
        margin: Largest difference that is taken for none, from 0 to 1.
        level: Confidence level of the intervals.
        alpha: Family-wise error rate of the tests.
        tests: How many tests Holm's correction is over.
        sides: The sides; the first is the baseline.
        contrasts: Each other side against it.
    """

    format: str = COMPARE_FORMAT
    lab_version: str
    kind: str
    margin: float = Field(gt=0, lt=1)
    level: float
    alpha: float
    tests: int
    sides: tuple[Side, ...]
    contrasts: tuple[Contrast, ...]
