"""The one report model that every writer reads: what a run says, in records, with nothing left to compute."""

from __future__ import annotations

from lab.contamination.asymmetry import Row as AsymmetryRow
from lab.contamination.controls import Control, Void
from lab.contamination.findings import Finding
from lab.contamination.predictions import Prediction
from lab.records import Record
from lab.report.header import Header, Run
from lab.report.rate_model import Accounting, FalseMemory, Group, HonestLoss, Overall, TwinRow
from lab.report.semantic import Meanings
from lab.report.susceptibility_model import Susceptibility
from lab.report.table_model import ScenarioRow, Tables
from lab.report.trial_row import TrialRow

REPORT_SCHEMA = 2


class Report(Record):
    """Everything a run says.

    Attributes:
        susceptibility: What it says of its live models; None, and absent from ``report.json``, where it has none.
        meanings: What the second detector says of writes without the canary; the same.
    """

    schema_version: int = REPORT_SCHEMA
    notes: tuple[str, ...]
    run: Run
    header: Header
    accounting: Accounting
    by_role: tuple[Accounting, ...]
    overall: tuple[Overall, ...]
    groups: tuple[Group, ...]
    honest_loss: tuple[HonestLoss, ...]
    false_memory: tuple[FalseMemory, ...]
    twins: tuple[TwinRow, ...]
    scenarios: tuple[ScenarioRow, ...]
    tables: Tables
    asymmetry: tuple[AsymmetryRow, ...]
    findings: tuple[Finding, ...]
    predictions: tuple[Prediction, ...]
    controls: tuple[Control, ...]
    voids: tuple[Void, ...]
    trials: tuple[TrialRow, ...]
    susceptibility: Susceptibility | None = None
    meanings: Meanings | None = None

    @property
    def finished(self) -> bool:
        """False when planned trials have no result yet."""
        return self.accounting.not_run == 0

    @property
    def headline(self) -> tuple[Group, ...]:
        """The groups whose headline rate stands at the top."""
        return tuple(group for group in self.groups if group.headline)
