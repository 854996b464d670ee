"""Results as Markdown: a table of each size, with ratios to the floors, and one of growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .results import MEASURES, Growth, Outcome, Row, growth, ratio

_HEADS = (
    *("ingest s", "ingest cpu s", "p50 ms", "p95 ms", "mean cpu ms", "no word: p50 ms"),
    *("disk MB", "memory MB"),
)
_SCALE = {"disk_bytes": 1e-6, "memory_bytes": 1e-6}


def markdown(rows: Sequence[Row]) -> str:
    """All of it."""
    return "\n".join([*_sizes(rows), *_growth(rows)])


def latest(rows: Sequence[Row]) -> list[Row]:
    """The last row of each system and size, in the order in which they first came."""
    return list({(row.system, row.facts): row for row in rows}.values())


def _sizes(rows: Sequence[Row]) -> Iterator[str]:
    for size in sorted({row.facts for row in rows}):
        yield f"\n### {size:,} facts\n"
        yield f"| system | {' | '.join(_HEADS)} | load |"
        yield "|---|" + "---|" * (len(_HEADS) + 1)
        for row in latest(rows):
            if row.facts == size:
                yield f"| `{row.system}` | {' | '.join(_cells(row, rows))} | {row.load:.1f} |"


def _cells(row: Row, rows: Sequence[Row]) -> Iterator[str]:
    ended = False
    for name in MEASURES:
        value = row.values.get(name)
        if value is not None:
            value *= _SCALE.get(name, 1.0)
            over = ratio(row, name, rows)
            yield _number(value) + (f" ({_number(over)}×)" if over is not None else "")
        elif row.outcome is Outcome.OK or ended:
            yield "–"
        else:
            ended = True
            yield f"{row.outcome}: {row.detail}" if row.detail else str(row.outcome)


def _growth(rows: Sequence[Row]) -> Iterator[str]:
    yield "\n### Growth: exponent over all sizes, and between the two largest (number of sizes)\n"
    yield f"| system | {' | '.join(head.rsplit(' ', 1)[0] for head in _HEADS)} |"
    yield "|---|" + "---|" * len(_HEADS)
    for system in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == system]
        yield f"| `{system}` | {' | '.join(_slope(growth(own, name)) for name in MEASURES)} |"


def _slope(found: Growth | None) -> str:
    return "–" if found is None else f"{found.exponent:.2f}, {found.last:.2f} ({found.points})"


def _number(value: float) -> str:
    """Three figures, and no more digits than they need."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
