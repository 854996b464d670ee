"""What a gate found: a judgement for each rule and number, and whether the run passes."""

from __future__ import annotations

from enum import StrEnum

from lab.errors import ExitCode
from lab.records import Record
from lab.report.measured import Measured, RunKind

FORMAT = "lab-gate/1"


class Verdict(StrEnum):
    """How a rule came out; all but the first fail the gate."""

    MET = "met"
    UNMET = "unmet"
    UNDECIDED = "undecided"


class Judgement(Record):
    """One rule held against one number.

    Attributes:
        rule: The rule in one line.
        line: Its line in the rules' file; 0 where not known.
        why: Why the rule is there, in its author's words.
        number: The number; None where the run has none that the rule is about.
        baseline: The number of the baseline run; None where nothing is compared.
        tested: What was held against the threshold; None where there is nothing.
        threshold: The threshold.
        verdict: How it came out.
        reason: Why it is not met; empty when it is.
    """

    rule: str
    line: int = 0
    why: str = ""
    number: Measured | None = None
    baseline: Measured | None = None
    tested: float | None = None
    threshold: float
    verdict: Verdict
    reason: str = ""


class GateResult(Record):
    """A run before its gate.

    Attributes:
        format: ``lab-gate/1``.
        run: Id of the run.
        kind: What it measured.
        rules_file: File that the rules stand in.
        baseline: Id of the baseline run; empty for none.
        planned: Planned trials; of a benchmark, topics asked of an arm.
        errors: Those that ended in an error or have not run.
        error_budget: Share of them that may.
        budget_blown: Whether more did: then the run is no evidence, whatever its numbers are.
        faults: What fails the gate beside the rules, one line each: broken invariants, or no rule that applies.
        judgements: Every rule on every number that it is about.
        not_applied: Rules about the other kind of run.
        passed: Whether all of it holds.
        exit_code: 0 passed, 1 failed, 3 error budget blown.
    """

    format: str = FORMAT
    run: str
    kind: RunKind
    rules_file: str
    baseline: str = ""
    planned: int
    errors: int
    error_budget: float
    budget_blown: bool
    faults: tuple[str, ...]
    judgements: tuple[Judgement, ...]
    not_applied: int
    passed: bool
    exit_code: ExitCode
