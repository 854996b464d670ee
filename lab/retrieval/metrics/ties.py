"""The one order of hits: by rounded score, then by fact id. Every system ranks with it, every ranking is held to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab.errors import InputError, SystemFailed
from lab.retrieval.systems.base import SCORE_DIGITS, Hit


def ranked(ids: ArrayLike, scores: ArrayLike, k: int) -> NDArray[np.int64]:
    """Positions of the k best facts, best first.

    Scores are rounded *before* they are compared: products of the same matrix in another order differ around the
    seventh decimal. Equal ones are ordered by ascending id, so the order of arrival changes nothing.

    Args:
        ids: Fact ids, shape (n,).
        scores: Their scores, shape (n,).
        k: Most facts wanted.

    Returns:
        At most k positions in ``ids``.

    Raises:
        SystemFailed: A score is not a finite number.
    """
    keys = np.asarray(ids, dtype=np.int64)
    values = np.round(np.asarray(scores, dtype=np.float64), SCORE_DIGITS)
    bad = ~np.isfinite(values)
    if bad.any():
        raise SystemFailed(f"the score of fact {keys[bad][0]} is {values[bad][0]}", "no ranking can be made of it")
    chosen = np.arange(len(keys))
    if k < len(keys):
        # Only facts at least as good as the k-th best have to be sorted; all that are equal to it are among them.
        chosen = np.flatnonzero(values >= np.partition(values, -k)[-k])
    return chosen[np.lexsort((keys[chosen], -values[chosen]))][:k]


def admit(topic: str, hits: Sequence[Hit], k: int) -> None:
    """Refuses a ranking that breaks the protocol; measures of it would mean nothing.

    This is no error of a topic, which would be left out, but one of the system or the importer: the run is refused.

    Args:
        topic: Id of the topic, for the message.
        hits: The ranking.
        k: Hits that were asked for.

    Raises:
        InputError: It has more than k hits, a fact twice, a score that is no finite number, or another order.
    """
    fault = _fault(hits, k)
    if fault:
        raise InputError(f"topic {topic}: {fault}", "the run is refused: mend the system or the run's file")


def _fault(hits: Sequence[Hit], k: int) -> str:
    if len(hits) > k:
        return f"{len(hits)} hits where {k} were asked for"
    ids, scores = [hit.fact_id for hit in hits], [hit.score for hit in hits]
    for rank, (fact, score) in enumerate(zip(ids, scores, strict=True), 1):
        if not math.isfinite(score):
            return f"fact {fact} at rank {rank} has the score {score}"
    if len(set(ids)) < len(ids):
        twice = next(fact for fact, times in Counter(ids).items() if times > 1)
        return f"fact {twice} is there twice"
    order = ranked(ids, scores, len(ids))
    wrong = np.flatnonzero(order != np.arange(len(ids)))
    if wrong.size:
        return f"fact {ids[wrong[0]]} at rank {wrong[0] + 1} is not in the order by score, then by id"
    return ""
