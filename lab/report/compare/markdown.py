"""compare.md: the comparison for a pull request or a terminal."""

from __future__ import annotations

from lab.compare.model import Comparison
from lab.report.compare.words import FILTERS, notes, title
from lab.report.markdown_text import markdown_environment

_MOST_FLIPS = 40


def render_markdown(comparison: Comparison) -> str:
    """The comparison as Markdown.

    Args:
        comparison: The comparison.
    """
    env = markdown_environment()
    env.filters |= FILTERS
    return env.get_template("compare.md.j2").render(
        c=comparison, title=title(comparison), notes=notes(comparison), most_flips=_MOST_FLIPS
    )
