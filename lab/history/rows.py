"""Rows of a history: one for each number of each run."""

from __future__ import annotations

from lab.errors import InputError
from lab.records import Record
from lab.report.measured import MeasuredRun, RunKind


class HistoryRow(Record):
    """One number of one run, with all that tells whether it may be compared with another.

    Attributes:
        run: Id of the run.
        created: When it was begun: the time stamp of its lock.
        kind: What it measured.
        lab_version: Version of the lab that made it.
        planned: Planned trials of the run; of a benchmark, topics asked of an arm.
        errors: Those that ended in an error.
        name: Which number.
        build: Of a rate.
        setup: Of a rate.
        model: Of a rate.
        family: Of a rate.
        set: Of a measure.
        arm: Of a measure.
        against: Of a difference of two arms, the one that is taken off.
        topic_class: Of a measure.
        of: Name of the denominator.
        numerator: Count; empty for a mean.
        n: Denominator.
        value: Point; empty when there is nothing to divide by.
        low: Lower bound of the interval.
        high: Upper bound of the interval.
        method: How the interval was made.
        void: A harness control failed: the number proves nothing.
        inputs: Digest of what was asked; numbers over other inputs are not comparable.
    """

    run: str
    created: str
    kind: RunKind
    lab_version: str
    planned: int
    errors: int
    name: str
    build: str
    setup: str
    model: str
    family: str
    set: str
    arm: str
    against: str
    topic_class: str
    of: str
    numerator: int | None
    n: int
    value: float | None
    low: float | None
    high: float | None
    method: str
    void: bool
    inputs: str


def rows_of(run: MeasuredRun) -> tuple[HistoryRow, ...]:
    """The rows of a finished run.

    Raises:
        InputError: It has not finished, or an invariant does not hold, so that its numbers are none to keep.
    """
    if run.not_run:
        raise InputError(f"the run {run.run} has not finished: {run.not_run} trials have not run", "lab resume RUN")
    if run.broken:
        raise InputError(f"the numbers of {run.run} cannot be true: {run.broken[0]}", "lab report shows all of them")
    common = {key: getattr(run, key) for key in ("run", "created", "kind", "lab_version", "planned", "errors")}
    own = HistoryRow.model_fields.keys() - common.keys() - {"void"}
    return tuple(
        HistoryRow(**common, **{key: getattr(number, key) for key in own}, void=bool(number.void))
        for number in run.numbers
    )
