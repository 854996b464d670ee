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

_SHORT = 140
"""Characters that cannot be longer than that in HTML, whatever they are."""


def _finalize(value: Any) -> Any:
    # Every string that a template prints comes by here before it is escaped, so none can be forgotten.
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value if len(value) <= _SHORT else excerpt_text(cut(value, _LONGEST)))


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


@dataclass(frozen=True)
class Script:
    """The script of a page.

    Attributes:
        js: Its text, our own file and never hostile.
        source: Source expression of a content security policy that allows it by digest.
    """

    js: Markup
    source: str


def style_sheet(env: Environment, *names: str) -> Style:
    """The reports' style sheet, or the named parts of it."""
    return Style(*_own_files(env, *(names or ("base.css", "report.css"))))


def script(env: Environment) -> Script:
    """The reports' script, which filters and sorts what stands in the page."""
    return Script(*_own_files(env, "report.js"))


def _own_files(env: Environment, *names: str) -> tuple[Markup, str]:
    if env.loader is None:  # pragma: no cover - the environment above has one
        raise RuntimeError("no template loader")
    text = "".join(env.loader.get_source(env, name)[0] for name in names)
    checksum = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"'sha256-{checksum}'"  # noqa: S704 - our own files
