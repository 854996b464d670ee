"""All formats of an export in one table: which writer makes which from which kind of run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab.errors import InputError
from lab.report.exports.csv_table import render_csv
from lab.report.exports.format_names import Format
from lab.report.exports.inspect_log import render_inspect
from lab.report.exports.junit import render_junit
from lab.report.exports.long_table import topic_arms, trial_stages
from lab.report.exports.parquet import render_parquet
from lab.report.exports.sarif import render_sarif
from lab.report.exports.source import BenchmarkRun, ContaminationRun, Files
from lab.report.exports.summary import render_bench_summary, render_summary
from lab.report.exports.trec import render_trec

CHECKSUMS_NAME = "run.sha256"


@dataclass(frozen=True)
class Writers:
    """Who writes a format.

    Attributes:
        contamination: Writer for contamination runs; None where the format says nothing of them.
        benchmark: Writer for benchmark runs; None where the format says nothing of them.
    """

    contamination: Callable[[ContaminationRun], Files] | None = None
    benchmark: Callable[[BenchmarkRun], Files] | None = None


WRITERS = {
    Format.CSV: Writers(lambda run: render_csv(trial_stages(run)), lambda run: render_csv(topic_arms(run))),
    Format.PARQUET: Writers(lambda run: render_parquet(trial_stages(run)), lambda run: render_parquet(topic_arms(run))),
    Format.JUNIT: Writers(contamination=render_junit),
    Format.SARIF: Writers(contamination=render_sarif),
    Format.SUMMARY: Writers(render_summary, render_bench_summary),
    Format.TREC: Writers(benchmark=render_trec),
    Format.INSPECT: Writers(contamination=render_inspect),
    Format.SHA256: Writers(
        lambda run: {CHECKSUMS_NAME: run.checksums()}, lambda run: {CHECKSUMS_NAME: run.checksums()}
    ),
}


def export(run: ContaminationRun | BenchmarkRun, formats: Iterable[Format]) -> dict[str, bytes]:
    """The files of a run in some formats, all of them before any is written.

    Args:
        run: The run.
        formats: What is wanted.

    Raises:
        InputError: A format says nothing of such a run, or an id of the run does not fit in a format.
        EnvironmentUnusable: A format needs a package that is not installed.
    """
    files: dict[str, bytes] = {}
    for wanted in formats:
        if isinstance(run, ContaminationRun):
            made = WRITERS[wanted].contamination
            files |= made(run) if made else _refused(wanted, "contamination")
        else:
            writer = WRITERS[wanted].benchmark
            files |= writer(run) if writer else _refused(wanted, "benchmark")
    return files


def _refused(wanted: Format, kind: str) -> Files:
    fit = ", ".join(name for name, writers in WRITERS.items() if getattr(writers, kind))
    raise InputError(f"there is no {wanted} of a {kind} run", f"formats of such a run: {fit}")
