"""report.md of a benchmark run: the tables for a pull request or a terminal."""

from __future__ import annotations

from lab.report.bench.numbers import FILTERS, NOTES
from lab.report.markdown_text import markdown_environment
from lab.retrieval.results import BenchResult


def render_markdown(run_id: str, result: BenchResult) -> str:
    """The report as Markdown.

    Args:
        run_id: The run's id.
        result: The results.
    """
    env = markdown_environment()
    env.filters |= FILTERS
    return env.get_template("bench.md.j2").render(run_id=run_id, r=result, notes=NOTES)
