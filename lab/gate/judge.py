"""Holds the numbers of a run against the rules of a gate. What cannot be decided is never passed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lab.errors import ExitCode, InputError
from lab.gate.read import GateFile
from lab.gate.result import GateResult, Judgement, Verdict
from lab.gate.rules import AnyRule, Bound, RateRule
from lab.report.measured import Measured, MeasuredRun, RunKind
from lab.statistics.independent import Estimate, difference
from lab.statistics.proportions import PLACES


class Undecided(Exception):
    """A rule that cannot be decided on a number, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def needs_baseline(file: GateFile, kind: RunKind) -> bool:
    """Whether a rule that is about this kind of run compares with a baseline."""
    return any(rule.margin is not None for rule in file.gate.rule if _kind(rule) is kind)


def judge(
    run: MeasuredRun, file: GateFile, baseline: MeasuredRun | None = None, error_budget: float | None = None
) -> GateResult:
    """Holds a run against its gate.

    Args:
        run: The run.
        file: The rules.
        baseline: Run that rules with a margin compare with.
        error_budget: Wins over the file's.

    Returns:
        The judgements, with the exit code that follows from them. A blown error budget comes before everything else:
        with it, the numbers are no evidence in either direction.

    Raises:
        InputError: A rule compares with a baseline and there is none, or it is the run itself or of the other kind.
    """
    if needs_baseline(file, run.kind):
        _check_baseline(run, file, baseline)
    budget = file.gate.error_budget if error_budget is None else error_budget
    blown = run.errors > budget * run.planned
    about = [(rule, line) for rule, line in zip(file.gate.rule, file.lines, strict=True) if _kind(rule) is run.kind]
    judgements = tuple(judgement for rule, line in about for judgement in _judge_rule(rule, line, run, file, baseline))
    faults = tuple(f"invariant broken: {line}" for line in run.broken)
    if not about:
        faults += (f"no rule is about a {run.kind} run: nothing was checked",)
    passed = not blown and not faults and all(each.verdict is Verdict.MET for each in judgements)
    code = ExitCode.ERROR_BUDGET if blown else ExitCode.OK if passed else ExitCode.GATE_FAILED
    return GateResult(
        run=run.run,
        kind=run.kind,
        rules_file=str(file.path),
        baseline=baseline.run if baseline else "",
        planned=run.planned,
        errors=run.errors,
        error_budget=budget,
        budget_blown=blown,
        faults=faults,
        judgements=judgements,
        not_applied=len(file.gate.rule) - len(about),
        passed=passed,
        exit_code=code,
    )


def _kind(rule: AnyRule) -> RunKind:
    return RunKind.CONTAMINATION if isinstance(rule, RateRule) else RunKind.BENCHMARK


def _check_baseline(run: MeasuredRun, file: GateFile, baseline: MeasuredRun | None) -> None:
    if baseline is None:
        raise InputError(
            f"{file.path}: a rule has a margin, and no baseline is named", "name one: --baseline RUN, or in [gate]"
        )
    if baseline.run == run.run:
        raise InputError(f"the run {run.run} is its own baseline", "name an earlier run: --baseline RUN")
    if baseline.kind is not run.kind:
        raise InputError(
            f"the baseline {baseline.run} is a {baseline.kind} run, and {run.run} a {run.kind} run",
            "name one of the same kind: --baseline RUN",
        )


def _judge_rule(
    rule: AnyRule, line: int, run: MeasuredRun, file: GateFile, baseline: MeasuredRun | None
) -> Iterator[Judgement]:
    limit = next(value for value in (rule.at_most, rule.at_least, rule.margin) if value is not None)
    about = {"rule": rule.text(), "line": line, "why": rule.reason, "threshold": limit}
    found = [number for number in run.numbers if rule.selects(number)]
    if not found:
        yield Judgement(**about, verdict=Verdict.UNMET, reason=_nothing_found(rule, run))
    for number in found:
        before = _counterpart(number, baseline) if baseline and rule.margin is not None else None
        tested = None
        try:
            _check_decidable(rule, number, file.gate.controls_must_run)
            ends = _ends(rule, number, before)
            tested = round(ends.tested, PLACES)
            verdict, reason = ends.verdict(limit)
        except Undecided as undecided:
            verdict, reason = Verdict.UNDECIDED, undecided.reason
        yield Judgement(**about, number=number, baseline=before, tested=tested, verdict=verdict, reason=reason)


def _nothing_found(rule: AnyRule, run: MeasuredRun) -> str:
    """Why a rule is about nothing: the first of its words that the run does not have, with the nearest that it has."""
    named = [number for number in run.numbers if number.name == rule.name]
    if not named:
        return f"the run has no {rule.name}"
    for key, value in rule.selectors().items():
        known = sorted({getattr(number, key) for number in named} - {""})
        if value not in known:
            word = "class" if key == "topic_class" else key
            near = difflib.get_close_matches(value, known, n=1)
            told = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
            return f"the run has no {rule.name} of {word} {value!r}: {told}"
        named = [number for number in named if getattr(number, key) == value]
    raise AssertionError("a rule that is about nothing has a word that the run lacks")


def _check_decidable(rule: AnyRule, number: Measured, controls_must_run: bool) -> None:
    """Raises ``Undecided`` where the number proves nothing, whatever its value is."""
    if number.void:
        raise Undecided(f"void: {_some(number.void)}")
    if number.unbacked and controls_must_run:
        raise Undecided(f"controls have not run: {_some(number.unbacked)}")
    if number.not_run:
        raise Undecided(f"{number.not_run} planned trials have not run")
    if number.value is None:
        raise Undecided(f"n = 0: there are no {number.of}")
    if number.n < rule.min_n:
        raise Undecided(f"n = {number.n} is below the {rule.min_n} that the rule asks for")


def _some(reasons: Iterable[str]) -> str:
    first, *rest = reasons
    return f"{first} (and {len(rest)} more)" if rest else first


def _counterpart(number: Measured, baseline: MeasuredRun) -> Measured | None:
    """The baseline's number of the same name and place; another build is taken where it is the only one there."""
    parts = ("name", "family", "setup", "model", "set", "arm", "against", "topic_class")
    same = [other for other in baseline.numbers if all(getattr(other, p) == getattr(number, p) for p in parts)]
    exact = [other for other in same if other.build == number.build]
    candidates = exact or same
    return candidates[0] if len(candidates) == 1 else None


@dataclass(frozen=True)
class _Ends:
    """What is held against a threshold.

    Attributes:
        tested: The end that the rule names.
        other: The end that is kindest to the rule: where that is within the limit, data and rule do not contradict
            each other.
        sign: 1 where the limit is a ceiling, -1 where it is a floor.
        doubt: What lies between the two ends.
    """

    tested: float
    other: float
    sign: int
    doubt: str

    def verdict(self, limit: float) -> tuple[Verdict, str]:
        if self._within(self.tested, limit):
            return Verdict.MET, ""
        beyond = "above" if self.sign > 0 else "below"
        if self._within(self.other, limit):
            low, high = sorted((self.tested, self.other))
            return Verdict.UNDECIDED, f"cannot tell: {self.doubt}, {low:.3f} to {high:.3f}, holds {limit:g}"
        return Verdict.UNMET, f"{self.tested:.3f} is {beyond} {limit:g}"

    def _within(self, value: float, limit: float) -> bool:
        return self.sign * round(value, PLACES) <= self.sign * round(limit, PLACES)


def _ends(rule: AnyRule, number: Measured, before: Measured | None) -> _Ends:
    sign = -1 if rule.at_least is not None else 1
    if rule.bound is Bound.WORST:
        if number.fewest is None or number.most is None:
            raise Undecided(f"{number.name} has no worst case")
        against, kind = (number.most, number.fewest) if sign > 0 else (number.fewest, number.most)
        return _Ends(against, kind, sign, "the rate with every error and undetermined verdict counted for and against")
    estimate = _estimate(number)
    doubt = f"the interval of n = {number.n}"
    if rule.margin is not None:
        estimate = _worse_by(number, before)
        doubt = "the interval of the difference"
    ends = {Bound.LOW: estimate.low, Bound.POINT: estimate.value, Bound.HIGH: estimate.high}
    strict, lenient = (Bound.HIGH, Bound.LOW) if sign > 0 else (Bound.LOW, Bound.HIGH)
    # Only the strict end leaves a doubt: a rule on the point or on the lenient end is about what was measured.
    return _Ends(ends[rule.bound], ends[lenient if rule.bound is strict else rule.bound], sign, doubt)


def _estimate(number: Measured) -> Estimate:
    if number.value is None or number.low is None or number.high is None:
        raise Undecided(f"{number.name} has no interval: n = {number.n}")
    return Estimate(number.value, number.low, number.high)


def _worse_by(number: Measured, before: Measured | None) -> Estimate:
    """By how much a number is worse than the baseline's, with the interval of the difference.

    The two are taken as independent. Where the same scenarios or topics came out alike in both runs, a paired interval
    would be narrower, so this one may fail to decide.
    """
    if before is None:
        raise Undecided("the baseline has no such number, or several builds to choose from")
    if before.inputs != number.inputs:
        raise Undecided("the baseline was asked other scenarios or another set")
    if before.void:
        raise Undecided(f"void in the baseline: {_some(before.void)}")
    if before.value is None:
        raise Undecided(f"n = 0 in the baseline: there are no {before.of}")
    pair = (_estimate(number), _estimate(before))
    return difference(*(pair if number.less_is_better else reversed(pair)))
