"""What an arm injects when nothing answers, and what its gate saw: tables beside the scores, never part of a mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from lab.retrieval.results import GateRow, Noise, NoisePoint
from lab.retrieval.rows import TopicRow
from lab.retrieval.systems.base import SCORE_DIGITS
from lab.statistics.proportions import PLACES, proportion

INJECTED = 5
"""Most facts injected for a query, as the agent's prefetch does."""

POINTS = 50
"""Most thresholds on the trade-off curve."""

DENSE = "dense"
"""Name of the embedding channel."""

NO_ANSWER = "no-answer"
"""Row of the topics without an answer in the gate's table."""


def noise(rows: Sequence[TopicRow], depth: int = INJECTED) -> Noise | None:
    """The table of noise of one arm.

    Abstention is judged on the raw cosine before fusion, because a fused score carries no absolute confidence. A topic
    for which no cosine was compared (the gate stayed shut, or the embedder was gone) cannot be held back by a
    threshold: it stays injected on the curve, and it is not in the AUROC.

    Args:
        rows: Rows of all topics, answerable or not; those with an error do not count.
        depth: Most facts injected for a query.

    Returns:
        None where no topic is without an answer.
    """
    valid = [row for row in rows if not row.error]
    silent = [row for row in valid if not row.answerable]
    if not silent:
        return None
    answerable = [row for row in valid if row.answerable]
    stores = {row.topic: row.store for row in silent}
    return Noise(
        injected=proportion(
            [row.topic for row in silent if row.hits],
            stores,
            name="got at least one fact",
            of="topics without an answer",
            clusters=stores if len({row.store for row in valid}) > 1 else None,
            unit="stores",
        ),
        mean_injected=round(sum(len(row.hits[:depth]) for row in silent) / len(silent), PLACES),
        depth=depth,
        auroc=_auroc(answerable, silent),
        auroc_n=(_compared(answerable), _compared(silent)),
        curve=_curve(answerable, silent),
    )


def gate_rows(rows: Sequence[TopicRow]) -> tuple[GateRow, ...]:
    """What the gate saw, by class in order of appearance; topics without an answer are a row of their own, the last.

    It was open where the embedding channel ran, or would have run had it not failed.

    Returns:
        Nothing for a system without a gate.
    """
    classes: dict[str, list[TopicRow]] = {}
    for row in sorted(rows, key=lambda row: not row.answerable):
        if row.coverage is not None and not row.error:
            classes.setdefault(row.topic_class if row.answerable else NO_ANSWER, []).append(row)
    return tuple(
        GateRow(
            topic_class=name,
            n=len(members),
            mean_coverage=round(float(np.mean([row.coverage for row in members if row.coverage is not None])), PLACES),
            opened=sum(DENSE in row.channels or bool(row.fallback) for row in members),
        )
        for name, members in classes.items()
    )


def _confidence(rows: Sequence[TopicRow]) -> NDArray[np.float64]:
    """Best raw cosine of each row; NaN where none was compared."""
    values = np.array([row.confidence for row in rows], dtype=np.float64)
    return values.round(SCORE_DIGITS)


def _compared(rows: Sequence[TopicRow]) -> int:
    return int(np.count_nonzero(~np.isnan(_confidence(rows))))


def _auroc(answerable: Sequence[TopicRow], silent: Sequence[TopicRow]) -> float | None:
    high, low = (values[~np.isnan(values)] for values in (_confidence(answerable), _confidence(silent)))
    if not (high.size and low.size):
        return None
    # U over the number of pairs is the area under the ROC curve; ties count half.
    return round(float(mannwhitneyu(high, low).statistic) / (high.size * low.size), PLACES)


def _curve(answerable: Sequence[TopicRow], silent: Sequence[TopicRow]) -> tuple[NoisePoint, ...]:
    wanted, unwanted = _confidence(answerable), _confidence(silent)
    seen = np.concatenate([wanted, unwanted])
    seen = np.unique(seen[~np.isnan(seen)])
    if not seen.size:
        return ()
    if seen.size > POINTS:
        # Observed values, never interpolated ones, so that each step is one that some topic makes.
        seen = np.unique(np.quantile(seen, np.linspace(0, 1, POINTS), method="nearest"))
    got = np.array([bool(row.hits) for row in answerable], dtype=bool)
    good = np.array([0 < (row.rank or 0) <= INJECTED for row in answerable], dtype=bool)
    noisy = np.array([bool(row.hits) for row in silent], dtype=bool)

    def share(rows: NDArray[np.bool_], confidence: NDArray[np.float64], threshold: float) -> float:
        passes = ~(confidence < threshold)  # true for NaN: what was not compared is not held back
        return round(float((rows & passes).sum() / max(len(rows), 1)), PLACES)

    return tuple(
        NoisePoint(
            threshold=float(threshold),
            noise=share(noisy, unwanted, threshold),
            kept=share(got, wanted, threshold),
            hit5=share(good, wanted, threshold),
        )
        for threshold in seen
    )
