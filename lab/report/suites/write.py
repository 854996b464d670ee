"""Writes the report of a run of suites: HTML, Markdown, CSV of all rates."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from lab.report.bench.numbers import decimal, interval
from lab.report.hostile import csv_cell
from lab.report.markdown_text import markdown_environment
from lab.report.suites.figures import curve_figure, rates_figure
from lab.report.suites.tables import tables
from lab.report.templating import html_environment, style_sheet
from lab.report.write import write_files
from lab.runs.folder import RunFolder
from lab.suites.registry import SuiteResults

_FIELDS = (
    *("suite", "measure", "system", "data", "group", "numerator", "denominator", "of"),
    *("value", "low", "high", "method", "better"),
)


def render_html(results: SuiteResults) -> str:
    """The report as one HTML file; its policy allows its own style sheet and images that it carries itself."""
    env = html_environment()
    env.filters |= {"decimal": decimal, "interval": interval}
    style = style_sheet(env)
    page = env.get_template("suites.html.j2").render(
        r=results,
        css=style.css,
        policy=f"default-src 'none'; style-src {style.source}; img-src data:; base-uri 'none'; form-action 'none'",
        tables={suite.suite: tables(suite) for suite in results.suites},
        rates_figure=rates_figure,
        curve_figure=curve_figure,
    )
    return page + "\n"


def render_markdown(results: SuiteResults) -> str:
    """The report as Markdown."""
    env = markdown_environment()
    return env.get_template("suites.md.j2").render(
        r=results, tables={suite.suite: tables(suite) for suite in results.suites}
    )


def render_csv(results: SuiteResults) -> str:
    """Every rate of every suite, a line each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_FIELDS)
    for suite in results.suites:
        for rate in suite.rates:
            p = rate.proportion
            group = "; ".join(f"{name}={value}" for name, value in rate.group.items())
            row = (
                *(suite.suite, rate.measure, rate.system, rate.data, group, p.numerator, p.denominator, p.of),
                *(p.value, p.low, p.high, p.method, rate.better),
            )
            writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return out.getvalue()


def write_suites(folder: RunFolder, results: SuiteResults) -> list[Path]:
    """Writes the report in every form.

    Args:
        folder: The run folder.
        results: What was found.

    Raises:
        OSError: A file cannot be written.
    """
    return write_files(
        folder.path,
        {
            "report.html": lambda: render_html(results),
            "report.md": lambda: render_markdown(results),
            "rates.csv": lambda: render_csv(results),
        },
    )
