"""Reads a run folder of either kind for an export."""

from __future__ import annotations

from collections.abc import Callable

from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.report.build import build_report
from lab.report.exports.source import BenchmarkRun, ContaminationRun
from lab.retrieval.assemble import finished
from lab.retrieval.results import LOCK, SetInfo
from lab.retrieval.testset import TestSet
from lab.runs.folder import RunFolder

FindSet = Callable[[str], TestSet]
"""Gives a set by its name."""


def is_benchmark(folder: RunFolder) -> bool:
    """Whether the run in a folder is a benchmark."""
    return folder.read(LOCK).get("kind") == "bench"


def read_contamination(folder: RunFolder, error_budget: float) -> ContaminationRun:
    """Reads a contamination run.

    Args:
        folder: Its folder.
        error_budget: Share of the planned trials that may end in an infrastructure error.

    Raises:
        InputError: The folder is damaged.
    """
    suite = Suite(folder)
    results = suite.results()
    report = build_report(suite.lock, suite.plan, results, scenarios=suite.scenarios)
    return ContaminationRun(
        report=report,
        results={result.trial: result for result in results},
        scenarios=suite.scenarios,
        error_budget=error_budget,
        checksums=folder.checksums,
    )


def read_benchmark(folder: RunFolder, find_set: FindSet) -> BenchmarkRun:
    """Reads a benchmark run.

    Args:
        folder: Its folder.
        find_set: Gives a set by name, for the judgements: the folder keeps rankings, not what answers a topic.

    Raises:
        InputError: The folder is damaged, or the run is not finished.
    """
    run = finished(folder)
    rows = {(name, arm): found for name, arms in run.rows.items() for arm, found in arms.items()}

    def qrels(info: SetInfo) -> dict[str, frozenset[str]]:
        testset = find_set(info.name)
        if testset.digest() != info.digest:
            raise InputError(
                f"the set {info.name} is not the one that the run measured: its digest is another",
                "name the one that was: --topics",
            )
        return {topic: facts for topic, facts in testset.qrels.items() if facts}

    return BenchmarkRun(run_id=folder.run_id, result=run.result, rows=rows, qrels=qrels, checksums=folder.checksums)
