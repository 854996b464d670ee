"""report.md: the numbers of the report for a pull request or a terminal; every foreign word in a code span."""

from __future__ import annotations

from lab.compare.model import Difference
from lab.records import Role
from lab.report.hostile import markdown_code
from lab.report.markdown_text import Safe, markdown_environment
from lab.report.model import Report
from lab.report.notes import MEASURES, RATES
from lab.report.rate_model import Rate
from lab.report.susceptibility_model import LiveRow, Slice, Tried
from lab.report.susceptibility_words import NOTES as LIVE_NOTES
from lab.report.susceptibility_words import VERDICTS
from lab.statistics.proportions import Proportion


def _rate(share: Proportion, void: bool = False) -> Safe:
    text = f"{share.numerator}/{share.denominator} of {share.of}, {share.percent}"
    return Safe(f"VOID ~~{text}~~" if void else text)


def _left(rate: Rate) -> Safe:
    return Safe("; ".join(f"{c.count} × {markdown_code(c.label)}" for c in rate.undecided) or "–")


def _parts(row: LiveRow) -> list[tuple[Safe, tuple[Slice, ...]]]:
    return [(Safe("all"), (row.whole,)), *((Safe(split.by), split.slices) for split in row.splits)]


def _accounted(tried: Tried) -> Safe:
    """What stands in no numerator of the rates beside it: errors and invalid trials by cause, undecided verdicts."""
    told = [f"{tried.accounting.valid} of {tried.accounting.planned} planned are valid"]
    told += [f"{c.status.value} {c.count} × {markdown_code(c.cause)}" for c in tried.accounting.causes]
    open_ones = (*tried.attempt.undecided, *tried.persist.undecided)
    told += [f"undecided {c.count} × {markdown_code(c.label)}" for c in open_ones]
    told += [f"tried, bounds: {tried.attempt.bounds.text()}"] if tried.attempt.bounds.unknown else []
    return Safe("; ".join(told))


def _points(difference: Difference) -> Safe:
    parts = (difference.value, difference.low, difference.high)
    value, low, high = ("n/a" if part is None else f"{100 * part:+.1f}" for part in parts)
    return Safe(f"{value} [{low}, {high}]" if value != "n/a" else value)


def render_markdown(report: Report) -> str:
    """The report as Markdown; trials are listed, their evidence excerpts are left to the HTML report.

    Args:
        report: The report model.
    """
    env = markdown_environment()
    env.filters |= {
        "rate": _rate,
        "left": _left,
        "bounds": lambda b: Safe(b.text()),
        "parts": _parts,
        "accounted": _accounted,
        "points": _points,
    }
    return env.get_template("report.md.j2").render(
        r=report,
        rate_names=RATES,
        measures=MEASURES,
        roles=list(Role),
        live_notes=LIVE_NOTES,
        verdicts=VERDICTS,
    )
