"""Figures drawn by matplotlib as SVG: the same numbers give the same bytes, and no text in them acts."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from markupsafe import Markup

from lab.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INKS = ("#1f7674", "#b3541e", "#5b4b8a", "#7a7a2f", "#a02162", "#3b6ea5", "#555b60")
MARKS = "osD^vPX"
_DARK = b"<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg) } }</style>\n"
"""An image knows the reader's colour scheme; black lines become white and hues stay."""


class HasInterval(Protocol):
    """A value with an interval; all three are None together."""

    @property
    def value(self) -> float | None:
        """The value."""
        ...

    @property
    def low(self) -> float | None:
        """Lower bound."""
        ...

    @property
    def high(self) -> float | None:
        """Upper bound."""
        ...


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        source: ``data:`` address of the SVG, in base 64, so that nothing in it can be markup.
        alt: What it shows, for those who do not see it.
    """

    source: Markup
    alt: str


def plain(text: str) -> str:
    """A text as a label: matplotlib takes $…$ for mathematics and leaves out labels that begin with an underscore."""
    return printable(text, limit=40).replace("$", r"\$").lstrip("_")


def draw_figure(draw: Callable[[Axes], None], size: tuple[float, float], alt: str) -> Figure | None:
    """A figure of one pair of axes for a page.

    Args:
        draw: Draws it.
        size: Width and height in inches.
        alt: What it shows, for those who do not see it.

    Returns:
        None where matplotlib is not installed.
    """
    drawn = draw_svg([draw], size)
    if drawn is None:
        return None
    encoded = base64.b64encode(drawn).decode()
    return Figure(Markup(f"data:image/svg+xml;base64,{encoded}"), alt)  # noqa: S704 - base 64


def draw_svg(draws: list[Callable[[Axes], None]], size: tuple[float, float]) -> bytes | None:
    """Axes below one another as one SVG file; None where matplotlib is not installed.

    Args:
        draws: Draws each pair of axes.
        size: Width and height of the whole in inches.
    """
    try:
        import matplotlib  # noqa: PLC0415 - an extra, and slow to load
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415
    except ImportError:
        return None
    with matplotlib.rc_context({"svg.hashsalt": "lab", "svg.fonttype": "none", "font.size": 9, "axes.grid": True}):
        canvas = Canvas(figsize=size, layout="constrained")
        for axes, draw in zip(canvas.subplots(len(draws), squeeze=False)[:, 0], draws, strict=True):
            axes.set_axisbelow(True)
            axes.grid(color="#dddddd", linewidth=0.6)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            draw(axes)
        stream = io.BytesIO()
        with warnings.catch_warnings():
            # The browser draws the text with fonts of its own; that matplotlib's lacks a sign is of no concern.
            warnings.filterwarnings("ignore", message=r"Glyph \d+", category=UserWarning)
            canvas.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    head, tag, rest = _slim(stream.getvalue()).partition(b"<defs>")
    return head + _DARK + tag + rest


def _slim(drawn: bytes) -> bytes:
    """Without indentation, and without decimals that no eye can see: figures are most of a page."""
    return re.sub(rb"(\.\d\d)\d+", rb"\1", re.sub(rb"\n\s+", rb"\n", drawn))


def draw_intervals(axes: Axes, series: int, offset: float, cells: Sequence[HasInterval | None], label: str) -> None:
    """Draws values with their intervals, one a row from the top; what has none is left out.

    Args:
        axes: Where.
        series: Number of the series, which decides colour and mark: after a round of colours the marks are others, so
            that no two series look the same.
        offset: How far below its row a value stands.
        cells: The values of the rows.
        label: Name of the series.
    """
    known = [(at, c.value, c.low, c.high) for at, c in enumerate(cells) if c and None not in (c.value, c.low, c.high)]
    values = [float(value or 0) for _, value, _, _ in known]
    lows = [max(0.0, value - float(low or 0)) for value, (_, _, low, _) in zip(values, known, strict=True)]
    highs = [max(0.0, float(high or 0) - value) for value, (_, _, _, high) in zip(values, known, strict=True)]
    axes.errorbar(
        values,
        [at + offset for at, *_ in known],
        xerr=[lows, highs],
        fmt=MARKS[(series + series // len(INKS)) % len(MARKS)],
        color=INKS[series % len(INKS)],
        markersize=5,
        linewidth=1.2,
        label=plain(label),
    )
