"""Figures of a suite as SVG: rates with their intervals, and trade-offs over a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.report.suites.tables import MeasureTable
from lab.report.svg import INKS, Figure, draw_figure, draw_intervals, plain
from lab.suites.base import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rates_figure(table: MeasureTable) -> Figure | None:
    """The rates of a measure with their intervals, by system and data set; None where there is nothing to draw.

    Args:
        table: The measure.
    """
    rows = [row for row in table.whole if any(cell and cell.value is not None for cell in row.cells)]
    if len(rows) < 2:
        return None

    def draw(axes: Axes) -> None:
        height = 0.5 / len(table.data)
        for number, name in enumerate(table.data):
            offset = (number - (len(table.data) - 1) / 2) * height
            draw_intervals(axes, number, offset, [row.cells[number] for row in rows], name)
        axes.set_yticks(range(len(rows)), [plain(row.system) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(f"{plain(table.measure)}, 95 % interval")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    alt = f"{table.measure} with its interval, by system; the table holds the numbers"
    return draw_figure(draw, (9.0, 1.1 + 0.32 * len(rows)), alt)


def curve_figure(curve: Curve) -> Figure | None:
    """A trade-off; None where matplotlib is not installed or there is no point."""
    lines = {name: points for name, points in curve.lines.items() if points}
    if not lines:
        return None

    def draw(axes: Axes) -> None:
        for number, (name, points) in enumerate(lines.items()):
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                marker=".",
                markersize=4,
                linewidth=1.2,
                color=INKS[number % len(INKS)],
                label=plain(name),
            )
        if curve.mark is not None:
            axes.axvline(curve.mark, color="#888888", linewidth=1, linestyle="--", label="the design's setting")
        axes.set_xlabel(plain(curve.x))
        axes.set_ylabel(plain(curve.y))
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    points = sum(map(len, lines.values()))
    return draw_figure(draw, (7.8, 3.4), f"{curve.title}: {', '.join(lines)}, {points} points; the table holds them")
