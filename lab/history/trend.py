"""The trend of a history: numbers of the same place in run after run, and where they cease to be comparable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lab.errors import InputError
from lab.history.rows import HistoryRow
from lab.records import Record
from lab.report.measured import NO_ANSWER, MeasureKey, RateKey
from lab.report.rate_model import Measures
from lab.report.tables import measures
from lab.retrieval.results import OVERALL

HEADLINES = (RateKey.PERSIST_VALID, RateKey.HONEST_LOSS, MeasureKey.HIT1, MeasureKey.MRR10, MeasureKey.NOISE)
"""Numbers that are shown where none is named."""

_TOTALS = ("", OVERALL, NO_ANSWER)


class Series(Record):
    """One number through all runs that have it.

    Attributes:
        name: Which number.
        subject: Family or set.
        label: The rest of its place.
        points: Its rows, by time.
    """

    name: str
    subject: str
    label: str
    points: tuple[HistoryRow, ...]

    def pieces(self) -> tuple[tuple[HistoryRow, ...], ...]:
        """Runs of points that may be compared: over the same inputs, decided, with nothing void."""
        pieces: list[list[HistoryRow]] = []
        before: HistoryRow | None = None
        for row in self.points:
            usable = row.value is not None and not row.void
            if usable and before is not None and before.inputs == row.inputs:
                pieces[-1].append(row)
            elif usable:
                pieces.append([row])
            before = row if usable else None
        return tuple(tuple(piece) for piece in pieces)


class Panel(Record):
    """The series of one number and one family or set.

    Attributes:
        name: Which number.
        subject: Family or set.
        series: The series.
    """

    name: str
    subject: str
    series: tuple[Series, ...]

    @property
    def title(self) -> str:
        """``persist/valid · F1``."""
        return f"{self.name} · {self.subject}"


def panels(rows: Sequence[HistoryRow], names: Iterable[str] = ()) -> tuple[Panel, ...]:
    """Puts the rows of a history together as series.

    Unless a number is named, of measures by class only all topics together are taken, and no rates of the models that
    are the harness's reference. A series goes on from build
    to build, as the question is what a new one changes; where a run has several builds, each has a series of its own.

    Args:
        rows: Rows of a history.
        names: Numbers to show; the headlines by default.

    Raises:
        InputError: A name is in no row, or there is nothing to show.
    """
    wanted = tuple(dict.fromkeys(names))
    known = {row.name for row in rows}
    for name in wanted:
        if name not in known:
            raise InputError(f"the history has no {name!r}", f"it has: {', '.join(sorted(known))}")
    found: dict[tuple[str, str, str], list[HistoryRow]] = defaultdict(list)
    for row in rows:
        if row.name in wanted or (not wanted and _is_headline(row)):
            found[row.name, row.family or row.set, _label(row)].append(row)
    if not found:
        raise InputError("the history has none of the headlines", f"--name, one of: {', '.join(sorted(known))}")
    series: dict[tuple[str, str], list[Series]] = defaultdict(list)
    order = {name: number for number, name in enumerate(wanted or HEADLINES)}
    for (name, subject, label), mine in sorted(found.items(), key=lambda item: (order[item[0][0]], item[0])):
        for words, points in _by_build(label, mine):
            series[name, subject].append(Series(name=name, subject=subject, label=words, points=tuple(points)))
    return tuple(Panel(name=name, subject=subject, series=tuple(lines)) for (name, subject), lines in series.items())


def _is_headline(row: HistoryRow) -> bool:
    return row.name in HEADLINES and row.topic_class in _TOTALS and measures(row.model) is not Measures.REFERENCE


def _label(row: HistoryRow) -> str:
    arm = f"{row.arm} − {row.against}" if row.against else row.arm
    topic_class = "" if row.topic_class in _TOTALS else row.topic_class
    return " · ".join(part for part in (row.setup, row.model, arm, topic_class) if part)


def _by_build(label: str, rows: Sequence[HistoryRow]) -> list[tuple[str, list[HistoryRow]]]:
    if len({row.run for row in rows}) == len(rows):
        return [(label, list(rows))]
    builds = sorted({row.build for row in rows})
    return [(f"{label} · {build}", [row for row in rows if row.build == build]) for build in builds]
