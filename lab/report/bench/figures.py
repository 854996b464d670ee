"""Figures of a benchmark report as SVG: the same results give the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lab.report.svg import INKS, MARKS, Figure, draw_figure, draw_intervals, plain
from lab.retrieval.metrics.compare import CANNOT_TELL
from lab.retrieval.results import BenchResult, SetResult
from lab.retrieval.rows import TopicRow
from lab.retrieval.timing import ArmTiming

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MISSED = 11
"""Where a topic without a relevant fact among the first ten is drawn."""


def quality_figure(result: SetResult, measure: str, name: str) -> Figure | None:
    """A measure with its interval, by class of topics and arm; None where matplotlib is not installed.

    Args:
        result: The set.
        measure: Field of the scores: ``mrr10``, ``hit1``, …
        name: What the measure is called.
    """
    classes = [score.topic_class for score in result.arms[0].scores]

    def draw(axes: Axes) -> None:
        height = 0.8 / len(result.arms)
        for number, arm in enumerate(result.arms):
            offset = (number - (len(result.arms) - 1) / 2) * height
            draw_intervals(axes, number, offset, [getattr(score, measure) for score in arm.scores], arm.arm)
        names = [f"{plain(c)} (n={s.n})" for c, s in zip(classes, result.arms[0].scores, strict=True)]
        axes.set_yticks(range(len(classes)), names)
        axes.invert_yaxis()
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(f"{name}, 95 % interval")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)

    height = 1.2 + 0.17 * len(classes) * len(result.arms)
    alt = f"{name} with its interval for each arm on {result.info.name}, by class; the tables hold the numbers"
    return draw_figure(draw, (9.0, height), alt)


def systems_figure(result: BenchResult) -> Figure | None:
    """MRR@10 with its interval of every arm on every set, best first; None for one set or without matplotlib.

    Where all comparisons of a set have one arm in common, that is the yardstick: its value is drawn as a dotted line,
    and a mark is filled only where the verdict says that the arm differs from it.
    """
    if len(result.sets) < 2:
        return None
    values = {
        one.info.name: {arm.arm: arm.scores[0].mrr10 for arm in one.arms if arm.scores[0].mrr10} for one in result.sets
    }
    names = [arm.arm for arm in result.sets[0].arms if all(known.get(arm.arm) for known in values.values())]
    if not names:
        return None
    names.sort(key=lambda name: -sum(values[one][name].value or 0.0 for one in values))
    yardstick = common_arm(result)

    def draw(axes: Axes) -> None:
        step = 0.66 / len(result.sets)
        for number, one in enumerate(result.sets):
            ink, known = INKS[number % len(INKS)], values[one.info.name]
            told = {row.first if row.second == yardstick else row.second: row.verdict for row in one.comparisons}
            for row, name in enumerate(names):
                mean = known[name]
                if mean.value is None or mean.low is None or mean.high is None:
                    continue
                differs = told.get(name, CANNOT_TELL) != CANNOT_TELL
                y = row + (number - (len(result.sets) - 1) / 2) * step
                axes.plot([mean.low, mean.high], [y, y], color=ink, linewidth=1.2)
                axes.plot(
                    [mean.value],
                    [y],
                    marker=MARKS[number % len(MARKS)],
                    color=ink,
                    markerfacecolor=ink if differs else "white",
                    markersize=5,
                    linestyle="none",
                )
            if yardstick in known and known[yardstick].value is not None:
                axes.axvline(float(known[yardstick].value or 0.0), color=ink, linewidth=0.9, linestyle=":")
            label = f"{plain(one.info.name)} (n={one.arms[0].scores[0].n})"
            axes.plot([], [], color=ink, marker=MARKS[number % len(MARKS)], markersize=5, linewidth=1.2, label=label)
        axes.set_yticks(range(len(names)), [plain(name) for name in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("MRR@10, 95 % interval")
        axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(result.sets), frameon=False)

    alt = f"MRR@10 with its interval of {len(names)} systems on {len(values)} sets; the tables hold the numbers"
    return draw_figure(draw, (8.6, 1.2 + 0.17 * len(names) * len(result.sets)), alt)


def common_arm(result: BenchResult) -> str:
    """The one arm that all comparisons have in common; empty where there is none or more than one."""
    pairs = [{row.first, row.second} for one in result.sets for row in one.comparisons]
    common = set.intersection(*pairs) if pairs else set()
    return common.pop() if len(common) == 1 else ""


def rank_figure(result: SetResult, rows: Mapping[str, Sequence[TopicRow]]) -> Figure | None:
    """Where two arms put the first relevant fact of each topic: the first arm against the best of the others.

    Args:
        result: The set.
        rows: Rows by arm.
    """
    if len(result.arms) < 2:
        return None
    first, *others = result.arms
    second = max(others, key=lambda arm: (arm.scores[0].mrr10.value if arm.scores[0].mrr10 else None) or 0.0)
    by_first, by_second = (_ranks(rows[arm.arm]) for arm in (first, second))
    both = Counter((by_first[topic], by_second[topic]) for topic in by_first if topic in by_second)
    if not both:
        return None

    def draw(axes: Axes) -> None:
        points = sorted(both.items())
        most = max(both.values())
        axes.scatter(
            [x for (x, _), _ in points],
            [y for (_, y), _ in points],
            s=[30 + 550 * count / most for _, count in points],
            c=[INKS[0] if y < x else INKS[1] if y > x else INKS[6] for (x, y), _ in points],
            alpha=0.85,
        )
        for place, count in points:
            axes.annotate(str(count), place, xytext=(7, 5), textcoords="offset points", fontsize=7)
        places = [*range(1, _MISSED)]
        for set_ticks, set_limits in ((axes.set_xticks, axes.set_xlim), (axes.set_yticks, axes.set_ylim)):
            set_ticks([*places, _MISSED], [*map(str, places), "none"])
            set_limits(0.2, _MISSED + 0.9)
        axes.invert_yaxis()
        axes.set_xlabel(f"rank by {plain(first.arm)}")
        axes.set_ylabel(f"rank by {plain(second.arm)}")

    better = sum(count for (x, y), count in both.items() if y < x)
    worse = sum(count for (x, y), count in both.items() if y > x)
    alt = (
        f"Rank of the first relevant fact by {first.arm} and by {second.arm} on {result.info.name}, n={both.total()}: "
        f"{better} topics are better by the second, {worse} worse, {both.total() - better - worse} the same"
    )
    return draw_figure(draw, (6.0, 4.6), alt)


def _ranks(rows: Sequence[TopicRow]) -> dict[str, int]:
    """Rank of the first relevant fact by topic; one that is not among the first ten is drawn as missed."""
    return {row.topic: min(row.rank or _MISSED, _MISSED) for row in rows if row.answerable and not row.error}


def latency_figure(arms: Mapping[str, ArmTiming], name: str) -> Figure | None:
    """Median and 95th percentile of a query, by arm, on a logarithmic scale."""
    known = [(arm, timing.p50["total"], timing.p95["total"]) for arm, timing in arms.items() if "total" in timing.p50]
    if not known:
        return None

    def draw(axes: Axes) -> None:
        for row, (_, middle, high) in enumerate(known):
            axes.plot([middle, high], [row, row], color=INKS[0], linewidth=1.4)
            axes.plot([middle], [row], marker="o", color=INKS[0], markersize=5)
            axes.plot([high], [row], marker="|", color=INKS[0], markersize=9)
        axes.set_xscale("log")
        axes.set_yticks(range(len(known)), [plain(arm) for arm, *_ in known])
        axes.invert_yaxis()
        axes.set_xlabel("milliseconds a query: median and 95th percentile")

    alt = f"Latency of a query on {name}, median and 95th percentile by arm; the table below holds the numbers"
    return draw_figure(draw, (7.5, 0.9 + 0.28 * len(known)), alt)


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
