"""Records of what the clock decides in a benchmark run: latencies by stage, kept apart from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lab.records import Record

TIMING = "timing.json"
"""The file in a bench's run folder."""


class ArmTiming(Record):
    """Latency of one arm on one set, in milliseconds, by stage; ``total`` is the wall time of a whole query.

    Attributes:
        p50: Median.
        p95: 95th percentile.
        n: Queries in which the stage ran.
        timeouts: Queries in which the embedder's time limit passed.
    """

    p50: Mapping[str, float]
    p95: Mapping[str, float]
    n: Mapping[str, int]
    timeouts: int = 0


class BenchTiming(Record):
    """``timing.json``: everything that the clock decides.

    Attributes:
        started: UTC, ISO 8601.
        seconds: Wall time of the whole run.
        arms: By set and arm.
    """

    started: str
    seconds: float
    arms: Mapping[str, Mapping[str, ArmTiming]]


def arm_timing(seconds: Mapping[str, Sequence[float]], timeouts: int) -> ArmTiming:
    """Latencies of an arm.

    Args:
        seconds: Seconds of every query in which a stage ran, by stage.
        timeouts: Queries in which the embedder's time limit passed.
    """
    quantiles = {stage: np.percentile(spent, (50, 95)) * 1000 for stage, spent in sorted(seconds.items()) if spent}
    return ArmTiming(
        p50={stage: round(float(pair[0]), 3) for stage, pair in quantiles.items()},
        p95={stage: round(float(pair[1]), 3) for stage, pair in quantiles.items()},
        n={stage: len(spent) for stage, spent in sorted(seconds.items()) if spent},
        timeouts=timeouts,
    )
