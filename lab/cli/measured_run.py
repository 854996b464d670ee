"""Opens a run folder of either kind for commands that look at its numbers; nothing is written into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli.bench_run import BENCH_DERIVED
from lab.cli.places import latest_run
from lab.cli.report import DERIVED
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.retrieval.results import LOCK
from lab.retrieval.rows import is_bench
from lab.runs.folder import RunFolder

if TYPE_CHECKING:
    from lab.report.measured import MeasuredRun


def measure_run(path: Path | None, reports: Path) -> MeasuredRun:
    """All numbers of a run, computed again from its evidence, which is checked against its seal first.

    Args:
        path: Its folder; None for the newest one.
        reports: Where the newest one is looked for.

    Raises:
        InputError: There is none, it is damaged or was changed, or a benchmark is not finished.
    """
    # pandas and scipy take a second to load, which only a report should pay.
    from lab.report.build import build_report  # noqa: PLC0415
    from lab.report.measured import measured_bench, measured_trials  # noqa: PLC0415
    from lab.retrieval.assemble import assemble  # noqa: PLC0415

    chosen = path or latest_run(reports)
    if chosen is None:
        raise InputError(f"no run folder under {reports}", "start one: lab run or lab bench")
    if is_bench(chosen):
        folder = RunFolder.open(chosen, (LOCK,))
        folder.check_seal(BENCH_DERIVED)
        return measured_bench(folder.run_id, str(folder.read(LOCK).get("created", "")), assemble(folder))
    folder = RunFolder.open(chosen)
    folder.check_seal(DERIVED)
    suite = Suite(folder)
    return measured_trials(build_report(suite.lock, suite.plan, suite.results(), scenarios=suite.scenarios))
