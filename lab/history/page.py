"""The trend as one HTML file: figures, and below each the table of its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from lab.history.figure import panel_figure
from lab.history.trend import Panel
from lab.report.templating import html_environment, style_sheet


def render_page(panels: Sequence[Panel]) -> str:
    """The page; its policy allows its own style sheet and images that it carries itself.

    Args:
        panels: What it shows.

    Raises:
        EnvironmentUnusable: matplotlib is not installed.
    """
    env = html_environment()
    style = style_sheet(env)
    runs = sorted({(row.created, row.run) for panel in panels for series in panel.series for row in series.points})
    page = env.get_template("history.html.j2").render(
        panels=[(panel, panel_figure(panel)) for panel in panels],
        runs=runs,
        css=style.css,
        policy=f"default-src 'none'; style-src {style.source}; img-src data:; base-uri 'none'; form-action 'none'",
    )
    return page + "\n"
