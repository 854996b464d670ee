"""report.html of a benchmark run: one file without scripts; figures are inside it as images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.report.bench.figures import (
    common_arm,
    latency_figure,
    noise_figure,
    quality_figure,
    rank_figure,
    systems_figure,
)
from lab.report.bench.numbers import FILTERS, NOTES
from lab.report.bench.published import beside
from lab.report.templating import html_environment, style_sheet
from lab.retrieval.results import BenchResult
from lab.retrieval.rows import TopicRow
from lab.retrieval.timing import BenchTiming

MEASURES = {"mrr10": "MRR@10", "hit1": "Hit@1", "hit5": "Hit@5", "hit10": "Hit@10"}
"""Fields of the scores and what they are called."""
DRAWN = ("mrr10", "hit5")
"""Measures of which there is a figure; all have tables."""

Rows = Mapping[str, Mapping[str, Sequence[TopicRow]]]
"""Rows by set and arm."""


def render_html(run_id: str, result: BenchResult, timing: BenchTiming, rows: Rows) -> str:
    """The report as one HTML file; its policy allows its own style sheet and images that it carries itself.

    Args:
        run_id: The run's id.
        result: The results.
        timing: The times.
        rows: The rows.
    """
    env = html_environment()
    env.filters |= FILTERS
    style = style_sheet(env)
    page = env.get_template("bench.html.j2").render(
        run_id=run_id,
        r=result,
        timing=timing,
        css=style.css,
        policy=(f"default-src 'none'; style-src {style.source}; img-src data:; base-uri 'none'; form-action 'none'"),
        quality={
            one.info.name: {measure: quality_figure(one, measure, MEASURES[measure]) for measure in DRAWN}
            for one in result.sets
        },
        overview=systems_figure(result),
        yardstick=common_arm(result),
        measures=MEASURES,
        ranks={one.info.name: rank_figure(one, rows[one.info.name]) for one in result.sets},
        latency={name: latency_figure(arms, name) for name, arms in timing.arms.items()},
        noise={one.info.name: noise_figure(one) for one in result.sets},
        notes=NOTES,
        published=beside(result),
    )
    return page + "\n"
