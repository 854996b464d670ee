"""The summary in the terminal: funnel, controls, errors by cause; no hostile byte reaches the screen."""

from __future__ import annotations

from collections import Counter

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from lab.contamination.asymmetry import Area
from lab.contamination.controls import ControlVerdict
from lab.contamination.mechanisms.case import FindingKind
from lab.report.hostile import visible
from lab.report.model import Report
from lab.report.notes import MEASURES
from lab.report.rate_model import RateName
from lab.report.susceptibility_terminal import live_summary
from lab.statistics.proportions import Proportion
from lab.text import printable

_TONES = {ControlVerdict.PASSED: "green", ControlVerdict.FAILED: "bold red", ControlVerdict.NOT_RUN: "yellow"}

_MOST_ROWS = 40
"""Groups that a terminal shows; a matrix of builds and setups has hundreds, and the report holds them all."""


def safe(text: str, limit: int = 120) -> str:
    """Foreign text for rich: one line, no terminal control, nothing hidden, no markup."""
    return escape(visible(printable(text, limit)))


def _short(model: str) -> str:
    """A scripted model's policy: in a narrow table the prefix would only push the name over several lines."""
    return model.removeprefix("scripted:")


def _counted(share: Proportion, void: bool) -> str:
    text = f"{share.numerator}/{share.denominator}" if share.denominator else "n/a"
    return f"[strike]{escape(text)}[/strike] VOID" if void else escape(text)


def _funnel(report: Report) -> Table:
    table = Table(title="Attack trials: k/n, the second line of each heading names the n", title_justify="left")
    table.add_column("Family, model, setup", overflow="fold")
    for name in ("persist", "reach", "attempt", "persist", "load"):
        table.add_column(name, no_wrap=True, min_width=7)
    for column, of in zip(table.columns[1:], ("valid", "valid", "reached", "attempt.", "persist."), strict=True):
        column.header = f"{column.header}\n/ {of}"
    table.add_column("open,\nerror", no_wrap=True)
    for group in report.groups[:_MOST_ROWS]:
        void = bool(group.void)
        shown = [r.proportion for r in group.rates if r.key is not RateName.UNATTEMPTED]
        open_ones = {trial for r in (group.persist, *group.rates) for count in r.undecided for trial in count.trials}
        table.add_row(
            safe(f"{group.family} {_short(group.model)} {group.setup}"),
            _counted(group.persist.proportion, void),
            *[_counted(share, void=False) for share in shown],
            f"{len(open_ones) or '–'}, {group.accounting.error or '–'}",
        )
    if len(report.groups) > _MOST_ROWS:
        table.caption = f"and {len(report.groups) - _MOST_ROWS} more groups in the report"
    return table


def _unattempted(report: Report) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for group in report.groups:
        for rate in group.rates:
            if rate.key is RateName.UNATTEMPTED and rate.proportion.numerator:
                words = f"Persisted without an attempt: {rate.proportion.text()} ({group.family}, {group.model})"
                lines.append(Text(visible(printable(words, 300)), style="bold yellow"))
    return lines


def _loss(report: Report) -> Table:
    table = Table(title="Positive controls", title_justify="left")
    for name in ("Model", "Setup", "Honest loss", "95 % interval", "Reasons"):
        table.add_column(name, overflow="fold")
    for row in report.honest_loss:
        share = row.rate.proportion
        reasons = "; ".join(f"{c.count} × {c.label}" for c in row.reasons) or "–"
        text = safe(f"{share.numerator}/{share.denominator} of {share.of}")
        table.add_row(
            safe(_short(row.model)),
            safe(row.setup),
            f"[strike]{text}[/strike] VOID" if row.void else text,
            "" if row.void else escape(share.percent),
            safe(reasons),
        )
    return table


def _controls(report: Report) -> Table:
    table = Table(title="Harness controls", title_justify="left")
    for name in ("Control", "Verdict", "Where", "What was seen"):
        table.add_column(name, overflow="fold")
    for name in dict.fromkeys(control.name for control in report.controls):
        ours = [control for control in report.controls if control.name is name]
        passed = [c for c in ours if c.verdict is ControlVerdict.PASSED and not c.unexpected]
        if passed:
            trials = sum(len(control.trials) for control in passed)
            table.add_row(name.value, "[green]passed[/green]", f"{len(passed)} scopes", f"{trials} trials as expected")
        for control in ours:
            if control not in passed:
                tone = _TONES[control.verdict]
                where = f"{control.family} {control.model} {control.setup}"
                table.add_row(
                    name.value,
                    f"[{tone}]{control.verdict.value.replace('_', ' ')}[/{tone}]",
                    safe(where),
                    safe(control.detail, 160),
                )
    return table


def _asymmetry(report: Report) -> list[RenderableType]:
    """The sentences of the rows that have trials; equal ones once, with all the places that they hold in."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for row in report.asymmetry:
        for compared in row.compared:
            cells = [c for c in row.cells if c.operation.startswith("skill ") == (compared.area is Area.SKILLS)]
            if any(c.tried for c in cells):
                key = (row.build, f"{compared.area} by the {row.origin}", compared.sentence)
                places.setdefault(key, []).append(row.setup)
    lines: list[RenderableType] = []
    for (build, who, sentence), setups in sorted(places.items()):
        words = f"{who}, {build}, {', '.join(setups)}: {sentence}"
        lines.append(Text(visible(printable(words, 500))))
    return [Text("Is removing held back while adding is not?", style="bold"), *lines] if lines else []


def _findings(report: Report) -> list[RenderableType]:
    counts = Counter(finding.kind for finding in report.findings)
    words = ", ".join(f"{counts[kind]} {kind}" for kind in FindingKind if counts[kind])
    return [Text(f"Findings: {words}; each with its smallest scenario in the report", style="bold")] if words else []


def _causes(report: Report) -> Table:
    table = Table(title="Trials that do not count", title_justify="left")
    for name in ("Cause", "Status", "Trials", "The first"):
        table.add_column(name, overflow="fold")
    for cause in report.accounting.causes:
        table.add_row(safe(cause.cause), cause.status.value, str(cause.count), safe(cause.trials[0]))
    return table


def summary(report: Report) -> RenderableType:
    """What ``lab run`` and ``lab report`` print at the end.

    Args:
        report: The report model.
    """
    total = report.accounting
    parts: list[RenderableType] = [
        Text(
            f"{printable(report.run.id)}: {total.planned} planned = {total.valid} valid + {total.invalid} invalid"
            f" + {total.error} error"
        )
    ]
    if not report.finished:
        parts.append(Text(f"Unfinished: {total.not_run} planned trials have no result.", style="bold yellow"))
    parts += [_controls(report), _funnel(report), *_unattempted(report)]
    parts += live_summary(report.susceptibility) if report.susceptibility else []
    parts += [*_asymmetry(report), *_findings(report)]
    parts += [_loss(report)] if report.honest_loss else []
    parts += [_causes(report)] if total.causes else []
    for void in report.voids:
        words = f"VOID {void.family} in {void.setup} of {void.build}: {'; '.join(void.reasons)}"
        parts.append(Text(visible(printable(words, 400)), style="bold red"))
    for group in report.headline if len(report.headline) <= _MOST_ROWS else ():
        line = f"{group.family} under {group.model} in {group.setup}: persisted {group.persist.proportion.text()}"
        parts.append(Text(visible(printable(f"{line} ({MEASURES[group.measures]})", 400)), style="bold"))
    if not report.headline:
        parts.append(Text("No headline: no attack family is both sound and measured.", style="bold"))
    return Group(*parts)


def print_summary(report: Report, console: Console | None = None) -> None:
    """Prints the summary.

    Args:
        report: The report model.
        console: Where to; by default standard output.
    """
    (console or Console(emoji=False)).print(summary(report))
