"""Figures of a benchmark report as SVG: the same results give the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.report.svg import INKS, MARKS, Figure, draw_figure, plain
from lab.retrieval.results import SetResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
                fmt=MARKS[number % len(MARKS)],
                color=INKS[number % len(INKS)],
                markersize=5,
                linewidth=1.2,
                label=plain(arm.arm),
            )
        names = [f"{plain(c)} (n={s.n})" for c, s in zip(classes, result.arms[0].scores, strict=True)]
        axes.set_yticks(range(len(classes)), names)
        axes.invert_yaxis()
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("MRR@10, 95 % interval")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    height = 1.2 + 0.17 * len(classes) * len(result.arms)
    alt = f"MRR at 10 with its interval for each arm on {result.info.name}, by class; the tables below hold the numbers"
    return draw_figure(draw, (9.0, height), alt)


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
                color=INKS[number % len(INKS)],
                label=plain(arm.arm),
            )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("no-answer topics that still get facts")
        axes.set_ylabel("Hit@5 over answerable topics")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    alt = f"What a threshold on the raw cosine costs and saves on {result.info.name}; the table below holds the numbers"
    return draw_figure(draw, (7.5, 3.4), alt)
