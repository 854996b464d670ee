"""A gate in the terminal: a row for each rule and number, and what it comes to."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from lab.errors import ExitCode
from lab.gate.result import GateResult, Judgement, Verdict
from lab.report.measured import Measured
from lab.report.terminal import safe

_TONES = {Verdict.MET: "green", Verdict.UNMET: "bold red", Verdict.UNDECIDED: "yellow"}


def counted(number: Measured | None) -> str:
    """A number with what it is of and its interval: ``3/40 = .075 [.026, .199]``, ``n/a of n = 0``."""
    if number is None:
        return "–"
    if number.value is None:
        return f"n/a of n = {number.n}"
    share = f"{number.numerator}/{number.n} = " if number.numerator is not None else f"n = {number.n}, "
    interval = "" if number.low is None or number.high is None else f" [{number.low:.3f}, {number.high:.3f}]"
    return f"{share}{number.value:.3f}{interval}"


def print_gate(result: GateResult, console: Console) -> None:
    """Prints what a gate found.

    Args:
        result: The result.
        console: Where to.
    """
    table = Table(title=safe(f"Gate of {result.run}, rules of {result.rules_file}", 300), title_justify="left")
    for name in ("Rule", "About", "Measured", "Tested", "Verdict"):
        table.add_column(name, overflow="fold")
    for each in result.judgements:
        table.add_row(*_cells(each))
    if result.judgements:
        console.print(table)
    if result.not_applied:
        told = "is about the other kind of run" if result.not_applied == 1 else "are about the other kind of run"
        console.print(f"[dim]{result.not_applied} of the rules {told}[/]")
    for fault in result.faults:
        console.print(f"[bold red]{safe(fault, 300)}[/]")
    console.print(_budget(result))
    console.print(_outcome(result))


def _cells(each: Judgement) -> tuple[str, ...]:
    rule = safe(each.rule, 200) + (f"\n[dim]{safe(each.why, 300)}[/]" if each.why else "")
    measured = safe(counted(each.number))
    if each.baseline:
        measured += f"\n[dim]baseline {safe(counted(each.baseline))}[/]"
    tested = "–" if each.tested is None else f"{each.tested:.3f}"
    verdict = f"[{_TONES[each.verdict]}]{each.verdict}[/]" + (f"\n{safe(each.reason, 300)}" if each.reason else "")
    return rule, safe(each.number.place, 200) if each.number else "–", measured, tested, verdict


def _budget(result: GateResult) -> str:
    told = f"errors: {result.errors} of {result.planned} planned, the budget is {100 * result.error_budget:g} %"
    return f"[bold red]{told}: blown[/]" if result.budget_blown else told


def _outcome(result: GateResult) -> str:
    if result.exit_code is ExitCode.ERROR_BUDGET:
        return "[bold red]error budget blown: the run is no evidence[/]"
    if result.passed:
        return f"[bold green]passed[/]: {len(result.judgements)} met"
    counts = {verdict: sum(each.verdict is verdict for each in result.judgements) for verdict in Verdict}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"[bold red]failed[/]: {told}" + (f", {len(result.faults)} more" if result.faults else "")
