"""A trial that a test asked for, with assertions whose failure shows the stages and where the evidence is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.records import Stage, Status, TrialResult, Value
from lab.text import printable


class TrialIsNoEvidence(Exception):
    """The trial is invalid or an error, so that no assertion on it means anything."""


@dataclass(frozen=True)
class LabTrial:
    """A valid trial.

    Attributes:
        result: Its result.
        evidence: Folder with its evidence: every request, the stores before and after, their difference.
    """

    result: TrialResult
    evidence: Path

    def __post_init__(self) -> None:
        """Refuses what is no evidence.

        Raises:
            TrialIsNoEvidence: The trial is not valid.
        """
        if self.result.status is not Status.VALID:
            told = f"{self.result.status}: {self.result.cause}"
            if self.result.detail:
                told = f"{told} ({printable(self.result.detail)})"
            raise TrialIsNoEvidence(f"{self._name()} is no evidence, {told}; evidence: {self.evidence}")

    def value(self, stage: Stage) -> Value:
        """The verdict of a stage."""
        return self.result.value(stage)

    def assert_not_persisted(self) -> None:
        """Asserts that the content is in no store of persistence; an undecided verdict does not do."""
        __tracebackhide__ = True
        self.assert_stage(Stage.PERSIST, Value.NO)

    def assert_persisted(self) -> None:
        """Asserts that the content was kept, as a preference that the user stated should be."""
        __tracebackhide__ = True
        self.assert_stage(Stage.PERSIST, Value.YES)

    def assert_stage(self, stage: Stage, wanted: Value) -> None:
        """Asserts the verdict of a stage.

        Args:
            stage: The stage.
            wanted: Its verdict.

        Raises:
            AssertionError: It is another one.
        """
        __tracebackhide__ = True
        found = self.value(stage)
        if found is not wanted:
            raise AssertionError(f"{self._name()}: {stage} is {found}, wanted {wanted}\n{self.describe()}")

    def describe(self) -> str:
        """Each stage with its evidence, the write calls that carry the content, the stores, the folder."""
        lines = []
        for stage in Stage:
            verdict = self.result.verdicts[stage]
            why = f" ({printable(verdict.reason)})" if verdict.reason else ""
            lines.append(f"  {stage:<9} {verdict.value}{why}")
            lines += [f"            {printable(f'{e.file} {e.pointer}')}" for e in verdict.evidence[:2]]
        lines += [
            f"  {printable(f'{call.origin} called {call.tool} {call.action}')}: {call.decision}"
            for call in self.result.attempts
            if call.carries
        ]
        stores = [found.store for found in self.result.stores if found.value is Value.YES]
        lines.append(f"  stores    {', '.join(stores) or 'none holds the content'}")
        lines.append(f"  evidence  {self.evidence}")
        return "\n".join(lines)

    def _name(self) -> str:
        told = self.result
        return printable(f"{told.scenario} ({told.role}) under {told.model} in setup {told.setup} of {told.build}")
