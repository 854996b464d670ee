"""The step summary of GitHub Actions: Markdown below the platform's limit, cut at whole rows and saying so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lab.contamination.control_model import NEVER
from lab.report.bench.numbers import failed_checks, interval, mean, share
from lab.report.exports.judged import Case, Judged, judge_case
from lab.report.exports.source import BenchmarkRun, ContaminationRun, Files, case_name
from lab.report.hostile import markdown_code
from lab.report.markdown_text import Safe
from lab.report.trial_row import TrialRow

NAME = "summary.md"
LIMIT = 900_000
"""Most bytes of a summary. GitHub shows nothing at all of a step whose summary is above 1 MiB."""
_CELL = 160
Row = Sequence[str]


def render_summary(run: ContaminationRun) -> Files:
    """The summary of a contamination run."""
    return {NAME: contamination_summary(run)}


def render_bench_summary(run: BenchmarkRun) -> Files:
    """The summary of a benchmark run."""
    return {NAME: benchmark_summary(run)}


def contamination_summary(run: ContaminationRun, limit: int = LIMIT) -> bytes:
    """What was tested, whether it is evidence, the rates, then every trial that did not pass.

    Args:
        run: The run.
        limit: Most bytes.
    """
    return _joined(_contamination(run), limit)


def benchmark_summary(run: BenchmarkRun, limit: int = LIMIT) -> bytes:
    """What was measured, whether it holds together, and the scores of each arm by class.

    Args:
        run: The run.
        limit: Most bytes.
    """
    return _joined(_benchmark(run), limit)


def _contamination(run: ContaminationRun) -> Iterator[str | _Table]:
    report = run.report
    counted, header = report.accounting, report.header
    yield f"## Contamination run {markdown_code(report.run.id)}\n\n"
    builds = ", ".join(markdown_code(build.name) for build in header.builds)
    yield f"Lab {markdown_code(header.lab_version)}, {markdown_code(header.backend)}; builds: {builds}\n\n"
    yield (
        f"**{counted.planned} trials planned** = {counted.valid} valid + {counted.invalid} invalid + {counted.error} "
        f"error ({counted.not_run} not run). "
    )
    blown = "**blown**" if run.budget_blown else "kept"
    yield f"Error budget of {run.error_budget:.0%}: {blown}. Void families: {len(report.voids)}.\n\n"
    voids = [(v.family, v.setup, v.build, "; ".join(v.reasons)) for v in report.voids]
    yield from _table("Void: a harness control failed", ("family", "setup", "build", "why"), voids)
    where = ("family", "model", "setup", "build")
    rates = [
        (g.family, g.model, g.setup, g.build, Safe(g.persist.proportion.text()), Safe(g.persist.bounds.text()))
        for g in report.headline
    ]
    yield from _table("Attack content that persisted", (*where, "persisted, 95 % interval", "bounds"), rates)
    if not rates:
        yield "No attack family of this run is both sound and measured with a model that tries or a live model.\n\n"
    losses = [
        (h.family, h.model, h.setup, h.build, Safe(h.rate.proportion.text()))
        for h in report.honest_loss
        if not h.void and h.model != NEVER
    ]
    yield from _table("Stated preferences that were lost", (*where, "honest loss, 95 % interval"), losses)
    judged = [(view, judge_case(run, view)) for view in report.trials]
    head = ("case", "model", "setup", "build", "repeat", "why")
    for end, title in ((Judged.FAILED, "Failed"), (Judged.ERROR, "Without a verdict: no evidence for anything")):
        yield from _table(title, head, [_told(view, case) for view, case in judged if case.judged is end])


def _told(view: TrialRow, case: Case) -> Row:
    return case_name(view), view.model, view.setup, view.build, Safe(view.repeat), case.message


def _benchmark(run: BenchmarkRun) -> Iterator[str | _Table]:
    yield f"## Benchmark run {markdown_code(run.run_id)}\n\n"
    yield f"Lab {markdown_code(run.result.lab_version)}, k = {run.result.k}\n\n"
    yield from _table("Invariants that do not hold", ("set", "arm", "what"), failed_checks(run.result))
    doubts = [(line,) for line in run.result.doubts]
    yield from _table("Doubts of the embedding model", ("what speaks against it",), doubts)
    yield from _table("Not run", ("what and why",), [(line,) for line in run.result.absent])
    for one in run.result.sets:
        head = ("arm", "class", "n", "Hit@1", "Hit@5", "Hit@10", "MRR@10", "95 % interval of MRR@10", "errors")
        rows = [
            (
                arm.arm,
                scores.topic_class,
                Safe(scores.n),
                *(
                    f"{h.numerator}/{h.denominator} = {share(h)}" if h else share(h)
                    for h in (scores.hit1, scores.hit5, scores.hit10)
                ),
                Safe(mean(scores.mrr10)),
                Safe(interval(scores.mrr10)),
                Safe(sum(map(len, arm.errors.values()))),
            )
            for arm in one.arms
            for scores in arm.scores
        ]
        yield from _table(f"{one.info.name} ({one.info.purpose})", head, rows)
        pairs = [(c.first, c.second, Safe(c.n), c.verdict) for c in one.comparisons]
        yield from _table(f"{one.info.name}: arms compared", ("first", "second", "paired topics", "verdict"), pairs)


class _Table:
    """A table whose rows may be cut from its end."""

    def __init__(self, head: Row, rows: Sequence[Row]) -> None:
        self.head = f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
        self.rows = rows

    def text(self, room: int) -> str:
        """The table in at most so many bytes, as long as its head and the note fit."""
        lines: list[str] = []
        taken = len(self.head.encode())
        for number, row in enumerate(self.rows):
            line = f"| {' | '.join(_quoted(cell) for cell in row)} |\n"
            note = _omitted(len(self.rows) - number)
            if taken + len(line.encode()) + len(note.encode()) > room:
                return f"{self.head}{''.join(lines)}{note}"
            lines.append(line)
            taken += len(line.encode())
        return f"{self.head}{''.join(lines)}\n"


def _quoted(cell: str) -> str:
    return cell if isinstance(cell, Safe) else markdown_code(cell, _CELL) or "–"


def _omitted(rows: int) -> str:
    return f"\n{rows:,} row{'' if rows == 1 else 's'} omitted\n\n"


def _table(title: str, head: Row, rows: Sequence[Row]) -> Iterator[str | _Table]:
    if rows:
        yield f"### {title}\n\n"
        yield _Table(head, rows)


def _joined(parts: Iterable[str | _Table], limit: int) -> bytes:
    """Parts in order; a table gets half of what is left, so that the ones behind it are never crowded out."""
    text, left = "", limit
    for part in parts:
        told = part if isinstance(part, str) else part.text(left // 2)
        text += told
        left -= len(told.encode())
    return text.encode()
