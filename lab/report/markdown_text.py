"""What all Markdown reports share: an environment in which every foreign word stands in a code span."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lab.report.hostile import markdown_code


class Safe(str):
    """Markdown made by a writer, which is not to be quoted again."""

    __slots__ = ()


def _finalize(value: Any) -> Any:
    # Strings are foreign unless a writer made them: a field that a template forgets to mark is quoted, not trusted.
    return markdown_code(str(value)) if isinstance(value, str) and not isinstance(value, Safe) else value


def plain(text: str) -> Safe:
    """Our own words, which hold nothing that Markdown would interpret across a table cell."""
    return Safe(text.replace("|", "\\|").replace("<", "&lt;"))


def markdown_environment() -> Environment:
    """A new template environment for Markdown, with the filter ``plain``."""
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
    env.filters["plain"] = plain
    return env
