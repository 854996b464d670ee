"""The pages beside the report: one for each trial, and what is too long for the report itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lab.report.html_writer import counts_here, environment, evidence_link, list_pages, page_parts
from lab.report.model import Report
from lab.report.notes import STAGES
from lab.report.templating import script, style_sheet
from lab.report.trial_model import TrialView

PAGES = "pages"
"""Folder of the pages in the run folder. Their names are numbers: no text of a run names a file."""


def render_pages(report: Report, views: Iterable[TrialView]) -> Iterator[tuple[str, str]]:
    """File names and texts of all pages, one by one.

    Args:
        report: The report model.
        views: What the trials' pages show.
    """
    env = environment()
    style, own = style_sheet(env), script(env)
    template = env.get_template("list.html.j2")
    lists = list_pages(report)
    back = {row.number: name for name, rows in lists for row in rows}
    for name, rows in lists:
        yield name, template.render(r=report, rows=rows, name=name, lists=lists, **page_parts(style, own)) + "\n"
    if not counts_here(report):
        template = env.get_template("counts_page.html.j2")
        yield "counts.html", template.render(r=report, **page_parts(style, own)) + "\n"
    style, last = style_sheet(env, "base.css", "trial.css"), len(report.trials)
    template = env.get_template("trial.html.j2")
    for view in views:
        text = template.render(
            t=view,
            run=report.run.id,
            last=last,
            back=back.get(view.number, "../report.html"),
            link=evidence_link,
            stage_notes=STAGES,
            **page_parts(style),
        )
        yield f"{view.number}.html", text + "\n"
