"""Figures of a benchmark report as SVG: the same results give the same bytes."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from lab.retrieval.results import SetResult
from lab.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INKS = ("#1f7674", "#b3541e", "#5b4b8a", "#7a7a2f", "#a02162", "#3b6ea5", "#555b60")
_MARKS = "osD^vPX"


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        source: ``data:`` address of the SVG, in base 64, so that nothing in it can be markup.
        alt: What it shows, for those who do not see it.
    """

    source: Markup
    alt: str


def quality_figure(result: SetResult) -> Figure | None:
    """MRR@10 with its interval, by class of topics and arm; None where matplotlib is not installed."""
    classes = [score.topic_class for score in result.arms[0].scores]

    def draw(axes: Axes) -> None:
        height = 0.8 / len(result.arms)
        for number, arm in enumerate(result.arms):
            points = [(at, score.mrr10) for at, score in enumerate(arm.scores) if score.mrr10]
            known = [(at, m.value, m.low, m.high) for at, m in points if None not in (m.value, m.low, m.high)]
            ys = [at + (number - (len(result.arms) - 1) / 2) * height for at, *_ in known]
            values = [float(value or 0) for _, value, _, _ in known]
            lows = [max(0.0, value - float(low or 0)) for value, (_, _, low, _) in zip(values, known, strict=True)]
            highs = [max(0.0, float(high or 0) - value) for value, (_, _, _, high) in zip(values, known, strict=True)]
            axes.errorbar(
                values,
                ys,
                xerr=[lows, highs],
                fmt=_MARKS[number % len(_MARKS)],
                color=_INKS[number % len(_INKS)],
                markersize=5,
                linewidth=1.2,
                label=_label(arm.arm),
            )
        names = [f"{_label(c)} (n={s.n})" for c, s in zip(classes, result.arms[0].scores, strict=True)]
        axes.set_yticks(range(len(classes)), names)
        axes.invert_yaxis()
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("MRR@10, 95 % interval")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    height = 1.2 + 0.17 * len(classes) * len(result.arms)
    alt = f"MRR at 10 with its interval for each arm on {result.info.name}, by class; the tables below hold the numbers"
    return _figure(draw, (9.0, height), alt)


def noise_figure(result: SetResult) -> Figure | None:
    """Noise against what is kept, by threshold on the raw cosine; None where no arm has such a curve."""
    arms = [arm for arm in result.arms if arm.noise and arm.noise.curve]
    if not arms:
        return None

    def draw(axes: Axes) -> None:
        seen: set[tuple[tuple[float, float], ...]] = set()
        for number, arm in enumerate(arms):
            curve = arm.noise.curve if arm.noise else ()
            points = tuple((point.noise, point.hit5) for point in curve)
            if points in seen:  # two arms that share an embedder and its rankings would hide one another
                continue
            seen.add(points)
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                marker=".",
                markersize=4,
                linewidth=1.2,
                color=_INKS[number % len(_INKS)],
                label=_label(arm.arm),
            )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("no-answer topics that still get facts")
        axes.set_ylabel("Hit@5 over answerable topics")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    alt = f"What a threshold on the raw cosine costs and saves on {result.info.name}; the table below holds the numbers"
    return _figure(draw, (7.5, 3.4), alt)


def _label(text: str) -> str:
    # matplotlib takes $…$ for mathematics and leaves out labels that begin with an underscore.
    return printable(text, limit=40).replace("$", r"\$").lstrip("_")


def _figure(draw: Callable[[Axes], None], size: Sequence[float], alt: str) -> Figure | None:
    try:
        import matplotlib  # noqa: PLC0415 - an extra, and slow to load
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415
    except ImportError:
        return None
    with matplotlib.rc_context({"svg.hashsalt": "lab", "svg.fonttype": "none", "font.size": 9, "axes.grid": True}):
        canvas = Canvas(figsize=(size[0], size[1]), layout="constrained")
        axes = canvas.add_subplot()
        axes.set_axisbelow(True)
        axes.grid(color="#dddddd", linewidth=0.6)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        draw(axes)
        stream = io.BytesIO()
        with warnings.catch_warnings():
            # The browser draws the text with fonts of its own; that matplotlib's lacks a sign is of no concern.
            warnings.filterwarnings("ignore", message=r"Glyph \d+", category=UserWarning)
            canvas.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    encoded = base64.b64encode(stream.getvalue()).decode()
    return Figure(Markup(f"data:image/svg+xml;base64,{encoded}"), alt)  # noqa: S704 - base 64
