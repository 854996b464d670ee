"""compare.html: one file without scripts, with links to the evidence of what flipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from lab.compare.model import Comparison, Difference
from lab.report.compare.words import FILTERS, notes, title
from lab.report.templating import html_environment, style_sheet

_WIDTH, _HEIGHT = 220, 22
_MOST_FLIPS = 400
"""Flips that the page shows for one contrast; ``compare.json`` holds them all."""

Link = Callable[[str, str], str]


def linker(folder: Path, runs: Mapping[str, Path]) -> Link:
    """Gives links from a folder to what is in the run folders; an empty one where there is no such thing.

    Args:
        folder: Where the page will stand.
        runs: Run folder of each side, by letter.
    """

    def link(letter: str, path: str) -> str:
        run = runs[letter].resolve()
        target = run / path
        # Names come from locks and plans, which can be edited: no link may lead out of its run folder.
        if not target.exists() or not target.resolve().is_relative_to(run):
            return ""
        return quote(Path(os.path.relpath(target, folder.resolve())).as_posix())

    return link


def _interval_figure(difference: Difference, *, most: float, margin: float) -> Markup:
    """The interval on an axis with zero and the margin; hidden from screen readers, as the numbers stand beside it."""
    if difference.value is None or difference.low is None or difference.high is None:
        return Markup("")

    def x(value: float) -> float:
        return round(_WIDTH / 2 + value / most * (_WIDTH / 2 - 4), 1)

    return Markup(
        '<svg class="bar" viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-hidden="true" focusable="false">'
        '<rect class="track" x="{left}" y="1" width="{band}" height="20" rx="2"></rect>'
        '<path class="whisker" opacity=".35" d="M{zero} 0V{h}"></path>'
        '<path class="whisker" d="M{low} 11H{high}M{low} 7v8M{high} 7v8"></path>'
        '<circle class="fill" cx="{value}" cy="11" r="4.5"></circle></svg>'
    ).format(
        w=_WIDTH,
        h=_HEIGHT,
        left=x(-margin),
        band=round(x(margin) - x(-margin), 1),
        zero=x(0),
        low=x(difference.low),
        high=x(difference.high),
        value=x(difference.value),
    )


def _reach(comparison: Comparison) -> float:
    """Half the width of the axis: all intervals have to fit on it."""
    found = [row.difference for contrast in comparison.contrasts for row in contrast.rows]
    found += [mean.difference for contrast in comparison.contrasts for mean in contrast.means]
    bounds = [abs(bound) for told in found for bound in (told.low, told.high) if bound is not None]
    return max([2 * comparison.margin, *bounds])


def render_html(comparison: Comparison, link: Link) -> str:
    """The comparison as one HTML file.

    Args:
        comparison: The comparison.
        link: Gives the link to a file of a side, or nothing.
    """
    env = html_environment()
    env.filters |= FILTERS
    env.filters["figure"] = partial(_interval_figure, most=_reach(comparison), margin=comparison.margin)
    style = style_sheet(env)
    page = env.get_template("compare.html.j2").render(
        c=comparison,
        title=title(comparison),
        notes=notes(comparison),
        link=link,
        most_flips=_MOST_FLIPS,
        tones={"better": "passed", "worse": "failed", "no difference shown": "plain", "cannot tell": "warn"},
        css=style.css,
        policy=f"default-src 'none'; style-src {style.source}; img-src data:; base-uri 'none'; form-action 'none'",
    )
    return page + "\n"
