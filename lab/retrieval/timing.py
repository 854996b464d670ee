"""Records of what the clock decides in a benchmark run: latencies by stage, kept apart from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from pydantic import ValidationError, model_validator

from lab.errors import InputError
from lab.records import Record, first_fault

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

    @model_validator(mode="after")
    def _of_the_same_stages(self) -> Self:
        if not self.p50.keys() == self.p95.keys() == self.n.keys():
            raise ValueError("p50, p95 and n are not of the same stages")
        return self


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


_Times = TypeVar("_Times", ArmTiming, BenchTiming)


def read_times(path: Path, form: type[_Times]) -> _Times:
    """Reads a file of times.

    Args:
        path: The file.
        form: What it holds.

    Raises:
        InputError: It is missing or damaged.
    """
    try:
        return form.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "run the benchmark again: lab bench") from error
    except ValidationError as error:
        told = first_fault(error)
        raise InputError(f"{path} is damaged: {told}", "run the benchmark again: lab bench") from error


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
