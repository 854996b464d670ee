"""Figures of a report as inline SVG; their colours are the style sheet's, so that they fit light, dark and print."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from lab.report.rate_model import Group, RateName
from lab.statistics.proportions import Proportion

_BAR, _FOREST, _EDGE = 240, 300, 6
_STAGES = ("valid", "reached", "attempted", "persisted", "loaded")


def bar(share: Proportion) -> Markup:
    """A bar with its interval as whiskers; hidden from screen readers because the same numbers stand beside it."""
    if share.value is None or share.low is None or share.high is None:
        return Markup("")
    at, low, high = (_place(n, _BAR, 2) for n in (share.value, share.low, share.high))
    return Markup(
        '<svg class="bar" viewBox="0 0 {w} 16" aria-hidden="true"><path class="track" d="M2 8H{end}"/>'
        '<path class="fill" d="M2 8H{at}"/><path class="whisker" d="M{l} 8H{h}M{l} 3v10M{h} 3v10"/></svg>'
    ).format(w=_BAR, end=_BAR - 2, at=at, l=low, h=high)


def forest(share: Proportion) -> Markup:
    """One line of a forest plot: the rate as a square, its interval as a line; the numbers stand beside it."""
    if share.value is None or share.low is None or share.high is None:
        return Markup("")
    at, low, high = (_place(n, _FOREST, _EDGE) for n in (share.value, share.low, share.high))
    return Markup(
        '<svg class="forest" viewBox="0 0 {w} 20" aria-hidden="true">'
        '<path class="whisker" d="M{l} 10H{h}M{l} 6v8M{h} 6v8"/><path class="point" d="M{at} 6v8"/></svg>'
    ).format(w=_FOREST, at=at, l=low, h=high)


def forest_beside(share: Proportion, other: Proportion | None) -> Markup:
    """Two lines of a forest plot, the second paler and below: a rate and what it is held against."""
    lines = Markup("")
    for y, one, name in ((9, share, ""), (23, other, " beside")):
        if one is None or one.value is None or one.low is None or one.high is None:
            continue
        at, low, high = (_place(n, _FOREST, _EDGE) for n in (one.value, one.low, one.high))
        lines += Markup(
            '<path class="whisker{n}" d="M{l} {y}H{h}M{l} {a}v6M{h} {a}v6"/><path class="point{n}" d="M{at} {a}v6"/>'
        ).format(n=name, l=low, h=high, at=at, y=y, a=y - 3)
    return Markup('<svg class="forest" viewBox="0 0 {} 32" aria-hidden="true">{}</svg>').format(_FOREST, lines)


def forest_axis() -> Markup:
    """The scale above a forest plot."""
    ticks = Markup("").join(
        Markup('<text x="{}" y="12">{}</text>').format(_place(share, _FOREST, _EDGE), f"{share:.0%}".replace("%", " %"))
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return Markup('<svg class="axis" viewBox="0 0 {} 16" aria-hidden="true">{}</svg>').format(_FOREST, ticks)


def funnel_counts(group: Group) -> tuple[tuple[str, int], ...]:
    """How many trials of a group came how far: valid, reached, attempted, persisted, loaded."""
    found = {rate.key: rate.proportion.numerator for rate in group.rates}
    reached, attempted = found[RateName.REACH_VALID], found[RateName.ATTEMPT_REACH]
    numbers = (group.accounting.valid, reached, attempted, group.persist.proportion.numerator)
    return tuple(zip(_STAGES, (*numbers, found[RateName.LOAD_PERSIST]), strict=True))


def funnel(group: Group) -> Markup:
    """A group's funnel: five bars, one below the other, each against the valid trials, with the counts as its text."""
    counts = funnel_counts(group)
    most = max(1, *(number for _, number in counts))
    bars = _bars([(number / most, name == "persisted") for name, number in counts])
    told = ", ".join(f"{number} {name}" for name, number in counts)
    return Markup('<svg class="funnel" viewBox="0 0 100 40" role="img"><title>{}</title>{}</svg>').format(
        f"{group.family}: {told}", bars
    )


def _bars(shares: Sequence[tuple[float, bool]]) -> Markup:
    parts = []
    for line, (share, chief) in enumerate(shares):
        width = round(96 * share, 1)
        if width:
            name = "fill" if chief else "step"
            parts.append(Markup('<path class="{}" d="M2 {}h{:g}"/>').format(name, 4 + 8 * line, width))
    return Markup("").join(parts)


def _place(share: float, width: int, edge: int) -> str:
    return f"{edge + share * (width - 2 * edge):.1f}".removesuffix(".0")
