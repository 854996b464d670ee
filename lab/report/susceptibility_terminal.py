"""Live models in the terminal: what they tried, beside the ceiling; what limits that; the verdicts of the pairs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lab.report.hostile import visible
from lab.report.susceptibility_model import LiveRow, Susceptibility
from lab.statistics.proportions import Proportion
from lab.text import printable

_MOST_ROWS = 20
"""Models by setup and build that a terminal shows; the report holds them all."""


def live_summary(part: Susceptibility) -> Iterator[RenderableType]:
    """What ``lab run`` and ``lab report`` print of live models.

    Args:
        part: The susceptibility part of the report.
    """
    yield _table(part)
    for row in part.rows[:_MOST_ROWS]:
        yield _line(f"{row.model} in {row.setup} of {row.build}: {row.reading[0]}", bold=True)
        for words in row.reading[1:]:
            yield _line(f"  {words}")
    for pair in part.between.pairs[:_MOST_ROWS]:
        verdict = pair.row.verdict or "not tested"
        yield _line(f"{pair.second} against {pair.first} in {pair.setup} of {pair.build}, attempt: {verdict}")
    more = max(len(part.rows), len(part.between.pairs)) - _MOST_ROWS
    if more > 0:
        yield _line("and more rows or pairs of live models in the report")


def _line(words: str, *, bold: bool = False, limit: int = 500) -> Text:
    return Text(visible(printable(words, limit)), style="bold" if bold else "")


def _table(part: Susceptibility) -> Table:
    title = "Live models, attack trials of sound families: k/n, in brackets the ceiling's; below each heading its n"
    table = Table(title=title, title_justify="left")
    table.add_column("Setup, model", overflow="fold", min_width=12)
    for name, of in (
        ("tried", "reached"),
        ("persisted", "tried"),
        ("twins", "valid"),
        ("controls", "valid"),
    ):
        table.add_column(f"{name}\n/ {of}", no_wrap=True)
    table.add_column("error", no_wrap=True)
    for row in part.rows[:_MOST_ROWS]:
        table.add_row(
            _line(f"{row.setup} {row.model}", limit=160),  # no markup: the name of a model may look like some
            *_cells(row),
            str(row.whole.accounting.error or "–"),
        )
    return table


def _cells(row: LiveRow) -> Iterator[str]:
    whole, ceiling = row.whole, row.whole.ceiling
    for share, beside in (
        (whole.attempt, ceiling.attempt if ceiling else None),
        (whole.persist, ceiling.persist if ceiling else None),
    ):
        yield f"{_counted(share.proportion)} ({_counted(beside.proportion) if beside else 'not run'})"
    for part in (row.twins.attempt.proportion, row.controls.attempt.proportion):
        yield _counted(part)


def _counted(share: Proportion) -> str:
    return f"{share.numerator}/{share.denominator}" if share.denominator else "n/a"
