"""What the metrics cost: ours against pytrec_eval, over the same rankings in the same process.

A ratio of two times on one machine may be compared between machines, which times may not. Exit code 1 when it misses
its bound, or when the two do not agree. See README.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytrec_eval  # type: ignore[import-not-found, import-untyped, unused-ignore]

from lab.retrieval.metrics.ranks import CUTOFF, RankCounts, first_relevant_ranks

BOUND = 1.0
POOL = 5_000
SEED = 20260720
Figures = tuple[float, ...]
"""Hit@1, Hit@5, Hit@10, MRR@10."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints a line or JSON, returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--hits", type=int, default=100)
    parser.add_argument(
        "--rounds", type=int, default=9, help="pairs of measurements; the median of their ratios counts"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    rankings, relevant = made_up(options.topics, options.hits)
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(options.rounds + 1):
        steps: list[tuple[list[float], Callable[..., Figures]]] = [(ours, of_ours), (theirs, of_pytrec)]
        found = []
        # The order changes, so that a slow drift of the machine favours neither; the first pair fills the caches.
        for taken, measure in steps if turn % 2 else reversed(steps):
            seconds, figures = timed(measure, rankings, relevant)
            found.append(figures)
            if turn:
                taken.append(seconds)
        if any(abs(a - b) > 1e-12 for a, b in zip(*found, strict=True)):
            raise SystemExit(f"the two do not agree: {found}")
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    holds = ratio <= BOUND
    result = {
        "name": f"metrics / pytrec_eval, {options.topics} topics × {options.hits} hits",
        "value": ratio,
        "bound": BOUND,
        "holds": holds,
        "detail": f"median {1000 * statistics.median(ours):.0f} ms to {1000 * statistics.median(theirs):.0f} ms",
    }
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        verdict = "ok" if holds else "MISSED"
        print(f"{result['name']:<52} {ratio:6.2f}  bound {BOUND:4.2f}  {verdict:<6}  {result['detail']}")
    return 0 if holds else 1


def made_up(topics: int, hits: int) -> tuple[list[list[str]], list[frozenset[str]]]:
    """Rankings without ties, and one to three relevant facts for each topic, half of them among its hits."""
    draw = random.Random(SEED)
    facts = [f"fact-{number}" for number in range(POOL)]
    rankings = [draw.sample(facts, hits) for _ in range(topics)]
    relevant = [
        frozenset(
            draw.choice(ranking[: 2 * CUTOFF] if draw.random() < 0.5 else facts) for _ in range(draw.randint(1, 3))
        )
        for ranking in rankings
    ]
    return rankings, relevant


def timed(measure: Callable[..., Figures], *data: Any) -> tuple[float, Figures]:
    """Seconds of a call, without a collection of somebody else's garbage in them, and what it gave."""
    gc.collect()
    started = time.perf_counter()
    figures = measure(*data)
    return time.perf_counter() - started, figures


def of_ours(rankings: Sequence[Sequence[str]], relevant: Sequence[frozenset[str]]) -> Figures:
    """From rankings to figures by the lab."""
    counts = RankCounts.of(first_relevant_ranks(rankings, relevant))
    return (*(counts.hits(k) / counts.n for k in (1, 5, CUTOFF)), float(counts.reciprocal_sum / counts.n))


def of_pytrec(rankings: Sequence[Sequence[str]], relevant: Sequence[frozenset[str]]) -> Figures:
    """The same by pytrec_eval: its dictionaries are built and evaluated.

    Scores are minus the rank, so that its own order of ties decides nothing. Its reciprocal rank knows no cutoff: where
    there is no hit among the first ten it is taken as 0.
    """
    qrels = {str(topic): dict.fromkeys(ids, 1) for topic, ids in enumerate(relevant)}
    run = {
        str(topic): {fact: -float(rank) for rank, fact in enumerate(ranking)} for topic, ranking in enumerate(rankings)
    }
    evaluated = pytrec_eval.RelevanceEvaluator(qrels, {"success.1,5,10", "recip_rank"}).evaluate(run)
    names = ("success_1", "success_5", "success_10")
    found = [sum(topic[name] for topic in evaluated.values()) / len(qrels) for name in names]
    within = [topic["recip_rank"] for topic in evaluated.values() if topic["success_10"]]
    return (*found, sum(within) / len(qrels))


if __name__ == "__main__":
    sys.exit(main())
