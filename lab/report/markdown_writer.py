"""report.md: the numbers of the report for a pull request or a terminal; every foreign word in a code span."""

from __future__ import annotations

from lab.records import Role
from lab.report.hostile import markdown_code
from lab.report.markdown_text import Safe, markdown_environment
from lab.report.model import Report
from lab.report.notes import MEASURES, RATES
from lab.report.rate_model import Rate
from lab.statistics.proportions import Proportion


def _rate(share: Proportion, void: bool = False) -> Safe:
    text = f"{share.numerator}/{share.denominator} of {share.of}, {share.percent}"
    return Safe(f"VOID ~~{text}~~" if void else text)


def _left(rate: Rate) -> Safe:
    return Safe("; ".join(f"{c.count} × {markdown_code(c.label)}" for c in rate.undecided) or "–")


def render_markdown(report: Report) -> str:
    """The report as Markdown; trials are listed, their evidence excerpts are left to the HTML report.

    Args:
        report: The report model.
    """
    env = markdown_environment()
    env.filters |= {"rate": _rate, "left": _left, "bounds": lambda b: Safe(b.text())}
    return env.get_template("report.md.j2").render(r=report, rate_names=RATES, measures=MEASURES, roles=list(Role))
