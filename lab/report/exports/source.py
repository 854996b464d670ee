"""What a writer of an export is given: a run read back, of either kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lab.contamination.scenarios.scenario import Scenario
from lab.records import Role, Stage, TrialResult, Value
from lab.report.model import Report
from lab.report.trial_row import TrialRow
from lab.retrieval.results import BenchResult, SetInfo
from lab.retrieval.rows import TopicRow

Files = Mapping[str, bytes]
"""What a writer makes: contents by file name."""


@dataclass(frozen=True)
class ContaminationRun:
    """A contamination run.

    Attributes:
        report: The report model, which holds every number.
        results: Results by trial, for evidence that the report shows in part only.
        scenarios: Scenarios by id.
        error_budget: Share of the planned trials that may end in an infrastructure error.
        checksums: Gives the list of the run's files with their digests.
    """

    report: Report
    results: Mapping[str, TrialResult]
    scenarios: Mapping[str, Scenario]
    error_budget: float
    checksums: Callable[[], bytes]

    @cached_property
    def voids(self) -> dict[tuple[str, str, str], tuple[str, ...]]:
        """Why a family proves nothing, by build, setup and family."""
        return {(void.build, void.setup, void.family): void.reasons for void in self.report.voids}

    def void(self, view: TrialRow) -> tuple[str, ...]:
        """Why a trial's family proves nothing; empty when it does."""
        return self.voids.get((view.build, view.setup, view.family), ())

    @property
    def budget_blown(self) -> bool:
        """Whether more trials ended in an infrastructure error, or have not run, than the budget allows."""
        return self.report.accounting.error > self.error_budget * self.report.accounting.planned


@dataclass(frozen=True)
class BenchmarkRun:
    """A benchmark run.

    Attributes:
        run_id: Its id.
        result: The results, which hold every number.
        rows: Rows by set and arm.
        qrels: Gives the judgements of a set: for each topic the facts that answer it.
        checksums: Gives the list of the run's files with their digests.
    """

    run_id: str
    result: BenchResult
    rows: Mapping[tuple[str, str], Iterable[TopicRow]]
    qrels: Callable[[SetInfo], Mapping[str, frozenset[str]]]
    checksums: Callable[[], bytes]


def stage_value(view: TrialRow, stage: Stage) -> Value:
    """The verdict of a stage; error where the trial has no result."""
    return view.stages[stage]


def stage_reason(view: TrialRow, stage: Stage) -> str:
    """Why a stage has no decided verdict; the cause of the trial where it has no result."""
    return view.reasons.get(stage, "")


def case_name(view: TrialRow) -> str:
    """Scenario and role of a trial in one word: ``F1-001``, ``F1-001-twin``."""
    return f"{view.scenario}-twin" if view.role is Role.TWIN else view.scenario


def evidence_places(result: TrialResult | None, stage: Stage) -> list[str]:
    """Where the first pieces of evidence of a verdict stand: file and pointer; none where the trial has no result."""
    evidence = result.verdicts[stage].evidence if result else ()
    return [f"{e.file[:100]} {e.pointer[:60]}" for e in evidence[:2]]
