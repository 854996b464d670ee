"""The trend drawn: a panel for each number and family or set, a line for each setup or arm, runs from left to right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lab.errors import EnvironmentUnusable
from lab.history.trend import Panel, Series
from lab.report.svg import INKS, MARKS, Figure, draw_figure, draw_svg, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEND = "pip install 'agent-memory-lab[bench]'"
_WIDTH, _HEIGHT = 9.0, 2.9
_MOST_LABELS = 7


def trend_svg(panels: Sequence[Panel]) -> bytes:
    """All panels below one another as one SVG file.

    Raises:
        EnvironmentUnusable: matplotlib is not installed.
    """
    drawn = draw_svg([_drawing(panel) for panel in panels], (_WIDTH, _HEIGHT * len(panels)))
    if drawn is None:
        raise EnvironmentUnusable("matplotlib is not installed", _MEND)
    return drawn


def panel_figure(panel: Panel) -> Figure:
    """One panel for a page.

    Raises:
        EnvironmentUnusable: matplotlib is not installed.
    """
    alt = f"{panel.title} in run after run, with intervals; the table below holds the numbers"
    figure = draw_figure(_drawing(panel), (_WIDTH, _HEIGHT), alt)
    if figure is None:
        raise EnvironmentUnusable("matplotlib is not installed", _MEND)
    return figure


def _drawing(panel: Panel) -> Callable[[Axes], None]:
    return partial(_draw, panel)


def _draw(panel: Panel, axes: Axes) -> None:
    runs = sorted({(row.created, row.run) for series in panel.series for row in series.points})
    places = {run: number for number, (_, run) in enumerate(runs)}
    for number, series in enumerate(panel.series):
        # Side by side, so that the intervals of one run do not hide one another.
        shift = (number - (len(panel.series) - 1) / 2) * min(0.12, 0.6 / len(panel.series))
        _draw_series(series, axes, {run: place + shift for run, place in places.items()}, number)
    step = -(-len(runs) // _MOST_LABELS)
    axes.set_xticks(range(0, len(runs), step), [plain(created[:10]) for created, _ in runs[::step]])
    axes.set_xlim(-0.5, len(runs) - 0.5)
    low = min((row.low or 0 for series in panel.series for row in series.points), default=0)
    axes.set_ylim(-0.03 if low >= 0 else -1.03, 1.03)
    axes.set_title(plain(panel.title), loc="left", fontsize=10)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _draw_series(series: Series, axes: Axes, places: dict[str, float], number: int) -> None:
    ink, mark = INKS[number % len(INKS)], MARKS[number % len(MARKS)]
    label = plain(series.label)
    for piece in series.pieces():
        values = [row.value or 0.0 for row in piece]
        ends = [[row.low, row.high] for row in piece]
        below = [max(0.0, v - (low if low is not None else v)) for v, (low, _) in zip(values, ends, strict=True)]
        above = [max(0.0, (high if high is not None else v) - v) for v, (_, high) in zip(values, ends, strict=True)]
        axes.errorbar(
            [places[row.run] for row in piece],
            values,
            yerr=[below, above],
            fmt=f"{mark}-",
            color=ink,
            markersize=4.5,
            linewidth=1.2,
            elinewidth=0.8,
            label=label,
        )
        label = ""  # one entry of the legend for all pieces
