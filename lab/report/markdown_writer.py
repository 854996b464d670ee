"""report.md: the numbers of the report for a pull request or a terminal; every foreign word in a code span."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lab.records import Role
from lab.report.hostile import markdown_code
from lab.report.model import Report
from lab.report.notes import MEASURES, RATES
from lab.report.rate_model import Rate
from lab.statistics.proportions import Proportion


class _Safe(str):
    """Markdown made by this writer, which is not to be quoted again."""

    __slots__ = ()


def _finalize(value: Any) -> Any:
    # Strings are foreign unless this writer made them: a field that a template forgets to mark is quoted, not trusted.
    return markdown_code(str(value)) if isinstance(value, str) and not isinstance(value, _Safe) else value


def _plain(text: str) -> _Safe:
    """Our own words, which hold nothing that Markdown would interpret across a table cell."""
    return _Safe(text.replace("|", "\\|").replace("<", "&lt;"))


def _rate(share: Proportion, void: bool = False) -> _Safe:
    text = f"{share.numerator}/{share.denominator} of {share.of}, {share.percent}"
    return _Safe(f"VOID ~~{text}~~" if void else text)


def _left(rate: Rate) -> _Safe:
    return _Safe("; ".join(f"{c.count} × {markdown_code(c.label)}" for c in rate.undecided) or "–")


def render_markdown(report: Report) -> str:
    """The report as Markdown; trials are listed, their evidence excerpts are left to the HTML report.

    Args:
        report: The report model.
    """
    # Markdown is made safe by the finalizer; HTML escaping would damage it.
    env = Environment(
        loader=PackageLoader("lab.report"),
        autoescape=False,  # noqa: S701
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters |= {"plain": _plain, "rate": _rate, "left": _left, "bounds": lambda b: _Safe(b.text())}
    return env.get_template("report.md.j2").render(r=report, rate_names=RATES, measures=MEASURES, roles=list(Role))
