"""Records of a benchmark run: what ``results.json`` holds, from which every report can be made again.

Nothing in them depends on the clock: times stand in a file of their own (``lab.retrieval.timing``), so that the same
run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lab.records import Record
from lab.statistics.proportions import Proportion

FORMAT = "lab-bench/1"
RESULTS, LOCK = "results.json", "lock.json"
"""Files of a bench's run folder, beside the rows."""

TIE_RULE = "scores are rounded to 6 decimals; equal scores are ordered by fact id, ascending"
OVERALL = "overall"
"""Class name of all answerable topics together."""


class Mean(Record):
    """A mean with its interval: ``value`` and bounds are None when there is nothing to divide by."""

    n: int = Field(ge=0)
    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""


class ClassScores(Record):
    """Metrics of one class of answerable topics; ``n`` is the denominator of each but ``mrr_conditional``.

    Attributes:
        topic_class: Class, or ``overall``.
        n: Answerable topics of the class.
        hit1: Topics with a relevant fact at rank 1.
        hit5: … among the first 5.
        hit10: … among the first 10; None for a system that returns fewer (it is not defined then).
        mrr10: Mean reciprocal rank of the first relevant fact, 0 where it is not among the first 10.
        mrr_conditional: The same mean over hits only, which is no measure of quality.
    """

    topic_class: str
    n: int
    hit1: Proportion
    hit5: Proportion
    hit10: Proportion | None
    mrr10: Mean | None
    mrr_conditional: Mean


class NoisePoint(Record):
    """One threshold on the raw cosine: what is still injected with it.

    Attributes:
        threshold: Queries whose best raw cosine is below get nothing.
        noise: Share of no-answer topics that still get something.
        kept: Share of answerable topics that still get something.
        hit5: Hit@5 over answerable topics with that threshold.
    """

    threshold: float
    noise: float
    kept: float
    hit5: float


class Noise(Record):
    """What an arm injects when nothing answers.

    Attributes:
        injected: No-answer topics that got at least one fact.
        mean_injected: Facts injected in the mean, of at most ``depth``.
        depth: Most facts injected for a query.
        auroc: Probability that the best raw cosine of an answerable topic is above that of a no-answer one; None
            without an embedding.
        auroc_n: Answerable and no-answer topics of which a cosine is known; a gate that stays shut compares none.
        curve: The trade-off, by rising threshold; empty without an embedding.
    """

    injected: Proportion
    mean_injected: float | None
    depth: int
    auroc: float | None = None
    auroc_n: tuple[int, int] = (0, 0)
    curve: tuple[NoisePoint, ...] = ()


class GateRow(Record):
    """What the gate saw in one class of topics.

    Attributes:
        topic_class: Class; no-answer topics have their own row.
        n: Topics of the class for which a coverage was seen.
        mean_coverage: Mean of what it saw.
        opened: Topics for which it opened.
    """

    topic_class: str
    n: int
    mean_coverage: float | None
    opened: int


class Check(Record):
    """An invariant that was looked at.

    Attributes:
        name: Short name.
        holds: Whether it holds.
        text: The two sides in numbers.
    """

    name: str
    holds: bool
    text: str


class ArmResult(Record):
    """One arm on one set.

    Attributes:
        arm: Name of the arm.
        system: Name of the system under test.
        label: One line for reports.
        settings: All that decides its results.
        rows_file: File with a row for each topic, relative to the run folder.
        rows_digest: Its SHA-256.
        scores: ``overall`` first, then the classes in their order.
        noise: What it injects when nothing answers; None for a set without such topics.
        gate: By class; empty for a system without a gate.
        fallbacks: Topics by cause for which a channel did not run although it should have.
        errors: Topics by cause that the system could not answer.
        asked_again: Topics that were asked a second time on the same copy.
        changed_again: Those of them whose ranking was another then; the arm was run again on a fresh copy a topic.
        fresh: Whether every topic had a fresh copy of its store.
        checks: The invariants.
    """

    arm: str
    system: str
    label: str
    settings: Mapping[str, Any]
    rows_file: str
    rows_digest: str
    scores: tuple[ClassScores, ...]
    noise: Noise | None = None
    gate: tuple[GateRow, ...] = ()
    fallbacks: Mapping[str, tuple[str, ...]] = {}
    errors: Mapping[str, tuple[str, ...]] = {}
    asked_again: int = 0
    changed_again: int = 0
    fresh: bool = False
    checks: tuple[Check, ...] = ()


class Baseline(Record):
    """A ranking without any retrieval: what a number must be read against.

    Attributes:
        name: ``random ranker`` (expectation, exact) or ``constant answer`` (best ranking that ignores the query).
        hit1: Hit@1.
        hit5: Hit@5.
        hit10: Hit@10.
        mrr10: MRR@10.
    """

    name: str
    hit1: float
    hit5: float
    hit10: float
    mrr10: float


class ComparisonRow(Record):
    """Two arms, paired by topic.

    Attributes:
        first: Arm.
        second: Arm.
        n: Topics that both answered without an error.
        only_first: Topics with Hit@1 for the first alone.
        only_second: … for the second alone.
        p_hit1: Exact McNemar.
        p_hit1_holm: The same after Holm over the declared pairs.
        mrr_difference: Mean of first minus second, with a paired bootstrap interval.
        verdict: ``first``, ``second`` or ``cannot tell``.
    """

    first: str
    second: str
    n: int
    only_first: int
    only_second: int
    p_hit1: float
    p_hit1_holm: float
    mrr_difference: Mean
    verdict: str


class StoreInfo(Record):
    """The frozen database of one store.

    Attributes:
        store: Name.
        snapshot: Name of the snapshot.
        content: Digest of its logical content.
        facts: Rows in ``facts``.
        topics: Topics asked of it.
    """

    store: str
    snapshot: str
    content: str
    facts: int
    topics: int


class SetInfo(Record):
    """What was measured on: settled before the first query and kept in the lock.

    Attributes:
        name: Name.
        title: One line.
        purpose: Development, hold-out or external.
        licence: Licence of the data.
        digest: Digest of facts, topics and judgements.
        stores: Its stores.
        classes: Topics by class, those without an answer among them.
        answerable: Topics with an answer, by class; classes without any are left out.
        k_of_pool: k divided by the facts of the smallest store: near 1 every ranking is perfect.
        baselines: Rankings without retrieval.
        notes: What the reader must know of it.
    """

    name: str
    title: str
    purpose: str
    licence: str
    digest: str
    stores: tuple[StoreInfo, ...]
    classes: Mapping[str, int]
    answerable: Mapping[str, int]
    k_of_pool: float
    baselines: tuple[Baseline, ...]
    notes: tuple[str, ...] = ()


class SetResult(Record):
    """One set.

    Attributes:
        info: What was measured on.
        arms: The arms, in the order asked for.
        comparisons: Declared pairs.
    """

    info: SetInfo
    arms: tuple[ArmResult, ...]
    comparisons: tuple[ComparisonRow, ...] = ()


class GapRow(Record):
    """How far an arm's quality on the hold-out is from that on the development set.

    Attributes:
        arm: Name of the arm.
        development: MRR@10 on the development set.
        hold_out: … on the hold-out.
        difference: Hold-out minus development. The sets differ in their topics as well, so it bounds what choosing
            weights on one of them can have gained, and does not measure it.
    """

    arm: str
    development: Mean
    hold_out: Mean
    difference: Mean


class BenchResult(Record):
    """A whole benchmark run.

    Attributes:
        format: ``lab-bench/1``.
        lab_version: Version of the lab.
        k: Depth of the rankings.
        tie_rule: How ties were broken.
        sets: The sets.
        gaps: Development against hold-out, where both were run.
        doubts: What speaks against the embedding model as it was asked, one line each.
        absent: What could not be run here and why, one line each.
    """

    format: str = FORMAT
    lab_version: str
    k: int
    tie_rule: str = TIE_RULE
    sets: tuple[SetResult, ...]
    gaps: tuple[GapRow, ...] = ()
    doubts: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
