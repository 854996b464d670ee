"""What all HTML reports share: an environment in which hostile text stays text, the style sheet and its policy."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lab.report.hostile import cut, excerpt_text, visible

_LONGEST = 2_000
"""Longest text outside of excerpts; what is longer has no business in a heading or a cell."""


def _finalize(value: Any) -> Any:
    # Every string that a template prints comes by here before it is escaped, so none can be forgotten.
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(excerpt_text(cut(str(value), _LONGEST)))


def html_environment() -> Environment:
    """A new template environment: autoescape always, undefined names are errors, all text made visible."""
    return Environment(
        loader=PackageLoader("lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@dataclass(frozen=True)
class Style:
    """The style sheet of a page.

    Attributes:
        css: Its text, our own file and never hostile.
        source: Source expression of a content security policy that allows it by digest.
    """

    css: Markup
    source: str


def style_sheet(env: Environment) -> Style:
    """The reports' style sheet."""
    if env.loader is None:  # pragma: no cover - the environment above has one
        raise RuntimeError("no template loader")
    css = env.loader.get_source(env, "report.css")[0]
    checksum = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return Style(Markup(css), f"'sha256-{checksum}'")  # noqa: S704 - our own file
