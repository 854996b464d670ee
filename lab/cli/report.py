"""``lab report`` and ``lab rescore``: rebuild what can be rebuilt from a run's evidence, without running anything."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli.bench_run import BENCH_DERIVED, report_on_bench
from lab.cli.meanings import judge_meanings
from lab.cli.output import console, print_json, safe
from lab.cli.places import DEFAULT_REPORTS, JsonOption, ReportsOption, latest_run
from lab.cli.rescored import print_rescored
from lab.contamination.semantic.records import SEMANTIC
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.retrieval.results import LOCK
from lab.retrieval.rows import is_bench
from lab.runs.folder import RESULT, RunFolder

if TYPE_CHECKING:
    from lab.report.model import Report

DERIVED = frozenset({"report.html", "report.md", "report.json", "trials.csv", "pages/", SEMANTIC})
"""Files and folders of a run that are written again from its evidence."""

RunArgument = Annotated[Path | None, typer.Argument(metavar="RUN", help="Run folder; the newest one by default.")]


def report_on(suite: Suite, *, json: bool) -> None:
    """Writes all reports of a run, seals its folder and prints the summary."""
    from lab.report.terminal import print_summary  # noqa: PLC0415

    model = write_report(suite)
    if json:
        print_json(model.model_dump(mode="json"))
    else:
        print_summary(model, console)


def write_report(suite: Suite) -> Report:
    """Writes all reports of a run, seals its folder and says where they are."""
    # pandas and scipy take a second to load, which only a report should pay.
    from lab.report.build import build_report  # noqa: PLC0415
    from lab.report.evidence import trial_views  # noqa: PLC0415
    from lab.report.write import write_reports  # noqa: PLC0415

    semantics = judge_meanings(suite)
    model = build_report(suite.lock, suite.plan, suite.each_result(), scenarios=suite.scenarios, semantics=semantics)
    gc.freeze()  # its rows live to the end; each collection while the pages are written would walk through all of them
    views = trial_views(model.trials, suite.result, suite.folder.path, suite.scenarios)
    written = write_reports(suite.folder.path, model, views)
    suite.folder.seal()
    for path in written:
        if path.suffix == ".html":
            console.print(f"report: {safe(path.resolve().as_uri())}", soft_wrap=True)
    return model


def _chosen(path: Path | None, reports: Path) -> Path:
    chosen = path or latest_run(reports)
    if chosen is None:
        raise InputError(f"no run folder under {reports}", "start one: lab run or lab bench")
    return chosen


@contextmanager
def open_run(path: Path | None, reports: Path) -> Iterator[Suite]:
    """Opens a run folder, the newest one by default, and keeps other labs out of it.

    Raises:
        InputError: There is none, it is damaged, or another lab is at work in it.
    """
    chosen = _chosen(path, reports)
    if is_bench(chosen):
        raise InputError(
            f"{chosen} is a benchmark run, which has no trials",
            "lab report computes its results again; lab bench --resume goes on with it",
        )
    folder = RunFolder.open(chosen)
    with folder.lock():
        yield Suite(folder)


def report(path: RunArgument = None, reports: ReportsOption = DEFAULT_REPORTS, json: JsonOption = False) -> None:
    """Write the reports of a run again from its results."""
    chosen = _chosen(path, reports)
    if is_bench(chosen):
        folder = RunFolder.open(chosen, (LOCK,))
        with folder.lock():
            folder.check_seal(BENCH_DERIVED)
            report_on_bench(folder, json=json)
        return
    with open_run(chosen, reports) as suite:
        suite.folder.check_seal(DERIVED)
        report_on(suite, json=json)


def rescore(path: RunArgument = None, reports: ReportsOption = DEFAULT_REPORTS, json: JsonOption = False) -> None:
    """Judge every trial of a run again from its evidence, keep the earlier judgements, and say what changed."""
    with open_run(path, reports) as suite:
        suite.folder.check_seal({*DERIVED, RESULT})
        done = suite.rescore()
        write_report(suite)
        if json:
            print_json(done.model_dump(mode="json"))
        else:
            print_rescored(done)
