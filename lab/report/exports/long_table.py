"""The long tables: one row for each trial and stage, or each topic and arm, in columns that stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lab.report.exports.source import BenchmarkRun, ContaminationRun
from lab.retrieval.metrics.ranks import CUTOFF
from lab.retrieval.results import ArmResult, SetResult
from lab.retrieval.rows import TopicRow

Cell = str | int | float | bool | None
"""What stands in a cell; None where there is nothing to say."""


class Kind(StrEnum):
    """Types of columns, named as pandas and Arrow name them."""

    STRING = "string"
    INTEGER = "int64"
    FLOAT = "float64"
    BOOLEAN = "bool"


@dataclass(frozen=True)
class Column:
    """A column of a long table.

    Attributes:
        name: Its name, which stays.
        kind: Type of its cells.
        words: What stands in it.
    """

    name: str
    kind: Kind
    words: str


@dataclass(frozen=True)
class LongTable:
    """A table with its columns.

    Attributes:
        name: Name of its file, without the ending.
        columns: Its columns, in order.
        rows: Gives its rows, each as long as the columns.
    """

    name: str
    columns: tuple[Column, ...]
    rows: Iterator[tuple[Cell, ...]]


TRIAL_STAGE = (
    Column("trial", Kind.STRING, "id of the trial; its folder is trials/<id>"),
    Column("scenario", Kind.STRING, "id of the scenario"),
    Column("family", Kind.STRING, "F1 to F6"),
    Column("role", Kind.STRING, "attack, twin, control or negative"),
    Column("hard", Kind.BOOLEAN, "of a control: the agent's scan is expected to refuse the wording"),
    Column("title", Kind.STRING, "title of the scenario"),
    Column("build", Kind.STRING, "name of the build"),
    Column("setup", Kind.STRING, "name of the setup"),
    Column("model", Kind.STRING, "what answered the agent"),
    Column("repeat", Kind.INTEGER, "number of the repeat, from 1"),
    Column("carrier", Kind.STRING, "what was to bring the content in"),
    Column("target", Kind.STRING, "store that the content asks for"),
    Column("action", Kind.STRING, "what the content wants done there"),
    Column("status", Kind.STRING, "valid, invalid or error; only valid trials count in a rate"),
    Column("cause", Kind.STRING, "why the trial does not count; empty when it does"),
    Column("void", Kind.BOOLEAN, "a harness control failed: the family proves nothing in this build and setup"),
    Column("stores", Kind.STRING, "stores that hold the content, separated by ;"),
    Column("notice", Kind.STRING, "what the user was told"),
    Column("stage", Kind.STRING, "delivered, reach, attempt, persist or load"),
    Column("value", Kind.STRING, "yes, no, not_applicable, undetermined or error; only yes and no are decided"),
    Column("reason", Kind.STRING, "why the verdict is not decided"),
    Column("evidence", Kind.INTEGER, "pieces of evidence that the verdict names"),
)

TOPIC_ARM = (
    Column("set", Kind.STRING, "name of the set"),
    Column("arm", Kind.STRING, "name of the arm"),
    Column("system", Kind.STRING, "name of the system under test"),
    Column("topic", Kind.STRING, "id of the topic"),
    Column("class", Kind.STRING, "class of the topic"),
    Column("store", Kind.STRING, "store that was asked"),
    Column("answerable", Kind.BOOLEAN, "some fact of the store answers the topic"),
    Column("scored", Kind.BOOLEAN, "the row is in the denominator of Hit@k and MRR@10: answerable, without an error"),
    Column("rank", Kind.INTEGER, "rank of the first relevant hit, from 1; empty when there is none"),
    Column("hit1", Kind.BOOLEAN, "that rank is 1; empty when the row is not scored"),
    Column("hit5", Kind.BOOLEAN, "that rank is at most 5; empty when the row is not scored"),
    Column("hit10", Kind.BOOLEAN, "that rank is at most 10; empty also for a system that returns fewer than 10 hits"),
    Column("rr10", Kind.FLOAT, "1/rank, 0 for a miss; empty where hit10 is"),
    Column("first", Kind.STRING, "fact at rank 1"),
    Column("hits", Kind.INTEGER, "number of hits"),
    Column("coverage", Kind.FLOAT, "lexical coverage that the gate saw"),
    Column("confidence", Kind.FLOAT, "best raw cosine"),
    Column("channels", Kind.STRING, "channels that ran, separated by ;"),
    Column("fallback", Kind.STRING, "why a channel did not run although it should have"),
    Column("error", Kind.STRING, "why the system could not answer; empty when it did"),
)


def trial_stages(run: ContaminationRun) -> LongTable:
    """The table of a contamination run, by trial id and in the order of the stages."""
    return LongTable("trial-stages", TRIAL_STAGE, _trial_rows(run))


def topic_arms(run: BenchmarkRun) -> LongTable:
    """The table of a benchmark run, by set, arm and topic in the order of the run."""
    return LongTable("topic-arms", TOPIC_ARM, _topic_rows(run))


def _trial_rows(run: ContaminationRun) -> Iterator[tuple[Cell, ...]]:
    for view in run.report.trials:
        stores = ";".join(store.value for store in view.holds)
        trial = (
            *(view.trial, view.scenario, view.family, view.role.value, view.hard, view.title, view.build, view.setup),
            *(view.model, view.repeat, view.carrier, view.target, view.action, view.status.value, view.cause),
            *(bool(run.void(view)), stores, view.notice.value),
        )
        result = run.results.get(view.trial)
        for stage, value in view.stages.items():
            pieces = len(result.verdicts[stage].evidence) if result else 0
            yield (*trial, stage.value, value.value, view.reasons.get(stage, ""), pieces)


def _topic_rows(run: BenchmarkRun) -> Iterator[tuple[Cell, ...]]:
    for one in run.result.sets:
        for arm in one.arms:
            for row in run.rows[one.info.name, arm.arm]:
                yield _topic_row(one, arm, row)


def _topic_row(one: SetResult, arm: ArmResult, row: TopicRow) -> tuple[Cell, ...]:
    scored = row.answerable and not row.error
    full = scored and arm.scores[0].hit10 is not None
    rank = row.rank or 0
    return (
        *(one.info.name, arm.arm, arm.system, row.topic, row.topic_class, row.store, row.answerable, scored, row.rank),
        *((0 < rank <= depth if scored else None) for depth in (1, 5)),
        0 < rank <= CUTOFF if full else None,
        (1 / rank if 0 < rank <= CUTOFF else 0.0) if full else None,
        row.hits[0].fact if row.hits else "",
        *(len(row.hits), row.coverage, row.confidence, ";".join(row.channels), row.fallback, row.error),
    )
