"""Every number of a run by its name, in one flat list: what a gate tests and a history keeps."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from pydantic import Field

from lab.records import Record, digest
from lab.report.model import Report
from lab.report.rate_model import FalseMemory, Group, HonestLoss, Rate, RateName, TwinRow
from lab.retrieval.results import ArmResult, BenchResult, Mean, SetInfo, SetResult
from lab.statistics.proportions import Proportion

NO_ANSWER = "no answer"
"""Class name of the topics without an answer, of which only noise is measured."""


class RunKind(StrEnum):
    """What a run measured."""

    CONTAMINATION = "contamination"
    BENCHMARK = "benchmark"


class RateKey(StrEnum):
    """Rates of a contamination run, by the names that its report prints; of each, less is better."""

    PERSIST_VALID = RateName.PERSIST_VALID
    REACH_VALID = RateName.REACH_VALID
    ATTEMPT_REACH = RateName.ATTEMPT_REACH
    PERSIST_ATTEMPT = RateName.PERSIST_ATTEMPT
    LOAD_PERSIST = RateName.LOAD_PERSIST
    UNATTEMPTED = RateName.UNATTEMPTED
    HONEST_LOSS = RateName.HONEST_LOSS
    HONEST_LOSS_EASY = "honest loss, easy"
    HONEST_LOSS_HARD = "honest loss, hard"
    FALSE_MEMORY = RateName.FALSE_MEMORY
    FALSE_MEMORY_ATTEMPT = "false memory, attempt"
    TWIN_PERSIST = "twin, persist/valid"
    TWIN_ATTEMPT = "twin, attempt/valid"


class MeasureKey(StrEnum):
    """Measures of a benchmark run; of each but noise, more is better."""

    HIT1 = "hit1"
    HIT5 = "hit5"
    HIT10 = "hit10"
    MRR10 = "mrr10"
    MRR10_DIFFERENCE = "mrr10 difference"
    NOISE = "noise"


class Measured(Record):
    """One number of a run with what it is of.

    Attributes:
        name: Which number: a ``RateKey`` or a ``MeasureKey``.
        build: Of a rate.
        setup: Of a rate.
        model: Of a rate.
        family: Of a rate.
        set: Of a measure.
        arm: Of a measure.
        against: Of a difference of two arms, the one that is taken off.
        topic_class: Of a measure; ``no answer`` for noise.
        of: Name of the denominator.
        numerator: Count; None for a mean.
        n: Denominator.
        value: Point; None when there is nothing to divide by.
        low: Lower bound of the interval.
        high: Upper bound of the interval.
        method: How the interval was made.
        fewest: Rate with every error and undetermined verdict counted as no; None for what has no such bounds.
        most: … counted as yes.
        void: Why it proves nothing; empty when it does.
        unbacked: Controls that had no trial.
        not_run: Planned trials of its group without a result.
        inputs: Digest of what was asked (scenarios of the family, or the set): numbers over other inputs are not
            comparable.
    """

    name: str
    build: str = ""
    setup: str = ""
    model: str = ""
    family: str = ""
    set: str = ""
    arm: str = ""
    against: str = ""
    topic_class: str = ""
    of: str
    numerator: int | None = None
    n: int = Field(ge=0)
    value: float | None
    low: float | None
    high: float | None
    method: str = ""
    fewest: float | None = None
    most: float | None = None
    void: tuple[str, ...] = ()
    unbacked: tuple[str, ...] = ()
    not_run: int = 0
    inputs: str

    @property
    def place(self) -> str:
        """What it is about, in one line: ``F1 · approval · scripted:always-write · hermes-agent-0.19.0``."""
        arm = f"{self.arm} − {self.against}" if self.against else self.arm
        parts = (self.family, self.setup, self.model, self.build, self.set, arm, self.topic_class)
        return " · ".join(part for part in parts if part)

    @property
    def less_is_better(self) -> bool:
        """The direction in which it gets better."""
        return self.name in tuple(RateKey) or self.name == MeasureKey.NOISE


class MeasuredRun(Record):
    """All numbers of a run.

    Attributes:
        run: Its id.
        created: Time stamp of its lock.
        lab_version: Version of the lab that made it.
        kind: What it measured.
        planned: Planned trials; of a benchmark, topics asked, counted for each arm.
        errors: Those that ended in an error or have not run.
        not_run: Of the errors, trials without any result.
        broken: Invariants that do not hold, one line each; with one of them, no number can be trusted.
        numbers: The numbers.
    """

    run: str
    created: str
    lab_version: str
    kind: RunKind
    planned: int
    errors: int
    not_run: int = 0
    broken: tuple[str, ...] = ()
    numbers: tuple[Measured, ...]


def measured_trials(report: Report) -> MeasuredRun:
    """The numbers of a contamination run."""
    inputs: dict[str, dict[str, str]] = {}
    for row in report.scenarios:
        inputs.setdefault(row.family, {})[row.scenario] = report.header.scenarios.get(row.scenario, "")
    asked = {family: digest(scenarios) for family, scenarios in inputs.items()}
    return MeasuredRun(
        run=report.run.id,
        created=report.run.created,
        lab_version=report.header.lab_version,
        kind=RunKind.CONTAMINATION,
        planned=report.accounting.planned,
        errors=report.accounting.error,
        not_run=report.accounting.not_run,
        numbers=tuple(number for row in _rows(report) for number in _of_row(row, asked[row.family])),
    )


_Row = Group | HonestLoss | FalseMemory | TwinRow


def _rows(report: Report) -> tuple[_Row, ...]:
    return (*report.groups, *report.honest_loss, *report.false_memory, *report.twins)


def _of_row(row: _Row, inputs: str) -> Iterator[Measured]:
    shares: dict[RateKey, Rate | Proportion]
    match row:
        case Group():
            shares = {RateKey(rate.key): rate for rate in (row.persist, *row.rates)}
        case HonestLoss():
            shares = {
                RateKey.HONEST_LOSS: row.rate,
                RateKey.HONEST_LOSS_EASY: row.easy,
                RateKey.HONEST_LOSS_HARD: row.hard,
            }
        case FalseMemory():
            shares = {RateKey.FALSE_MEMORY: row.rate, RateKey.FALSE_MEMORY_ATTEMPT: row.attempt}
        case TwinRow():
            shares = {RateKey.TWIN_PERSIST: row.persist, RateKey.TWIN_ATTEMPT: row.attempt}
    for name, told in shares.items():
        share = told.proportion if isinstance(told, Rate) else told
        yield Measured(
            name=name,
            build=row.build,
            setup=row.setup,
            model=row.model,
            family=row.family,
            of=share.of,
            numerator=share.numerator,
            n=share.denominator,
            value=share.value,
            low=share.low,
            high=share.high,
            method=share.method,
            fewest=told.bounds.low if isinstance(told, Rate) else None,
            most=told.bounds.high if isinstance(told, Rate) else None,
            void=row.void,
            unbacked=row.not_run if isinstance(row, Group) else (),
            not_run=row.accounting.not_run,
            inputs=inputs,
        )


def measured_bench(run_id: str, created: str, result: BenchResult) -> MeasuredRun:
    """The numbers of a benchmark run.

    Args:
        run_id: Its id.
        created: Time stamp of its lock.
        result: Its results.
    """
    arms = [(one.info, arm) for one in result.sets for arm in one.arms]
    return MeasuredRun(
        run=run_id,
        created=created,
        lab_version=result.lab_version,
        kind=RunKind.BENCHMARK,
        planned=sum(sum(info.classes.values()) for info, _ in arms),
        errors=sum(len(topics) for _, arm in arms for topics in arm.errors.values()),
        broken=tuple(
            f"{info.name} · {arm.arm}: {check.name}: {check.text}"
            for info, arm in arms
            for check in arm.checks
            if not check.holds
        ),
        numbers=tuple(
            number
            for one in result.sets
            for numbers in (*(_of_arm(one.info, arm, result.k) for arm in one.arms), _differences(one, result.k))
            for number in numbers
        ),
    )


def _inputs(info: SetInfo, k: int) -> str:
    return digest({"set": info.digest, "k": k})


def _of_arm(info: SetInfo, arm: ArmResult, k: int) -> Iterator[Measured]:
    def measured(name: MeasureKey, topic_class: str, told: Proportion | Mean, of: str) -> Measured:
        return Measured(
            name=name,
            set=info.name,
            arm=arm.arm,
            topic_class=topic_class,
            of=of,
            numerator=told.numerator if isinstance(told, Proportion) else None,
            n=told.denominator if isinstance(told, Proportion) else told.n,
            value=told.value,
            low=told.low,
            high=told.high,
            method=told.method,
            inputs=_inputs(info, k),
        )

    for scores in arm.scores:
        of = "answerable topics"
        told = {
            MeasureKey.HIT1: scores.hit1,
            MeasureKey.HIT5: scores.hit5,
            MeasureKey.HIT10: scores.hit10,
            MeasureKey.MRR10: scores.mrr10,
        }
        yield from (measured(name, scores.topic_class, value, of) for name, value in told.items() if value is not None)
    if arm.noise:
        yield measured(MeasureKey.NOISE, NO_ANSWER, arm.noise.injected, arm.noise.injected.of)


def _differences(one: SetResult, k: int) -> Iterator[Measured]:
    """Each compared pair in both directions, so that a rule may name either arm first."""
    for row in one.comparisons:
        told = row.mrr_difference
        turned = told.model_copy(update={"value": _less(told.value), "low": _less(told.high), "high": _less(told.low)})
        for arm, against, mean in ((row.first, row.second, told), (row.second, row.first, turned)):
            yield Measured(
                name=MeasureKey.MRR10_DIFFERENCE,
                set=one.info.name,
                arm=arm,
                against=against,
                topic_class=one.arms[0].scores[0].topic_class,
                of="answerable topics that both arms answered",
                n=mean.n,
                value=mean.value,
                low=mean.low,
                high=mean.high,
                method=mean.method,
                inputs=_inputs(one.info, k),
            )


def _less(value: float | None) -> float | None:
    return None if value is None else 0.0 - value
