"""``lab export report``: a run in the formats of other tools: tables, test reports, code scanning, evaluation logs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli.bench_run import BENCH_DERIVED, frozen_sets, load_named
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import (
    DEFAULT_REPORTS,
    DEFAULT_SCENARIOS,
    DEFAULT_SNAPSHOTS,
    JsonOption,
    ReportsOption,
    ScenariosOption,
    SnapshotsOption,
    latest_run,
)
from lab.cli.report import DERIVED, RunArgument
from lab.errors import EnvironmentUnusable, InputError
from lab.report.exports.format_names import Format
from lab.runs.folder import RunFolder, write_atomic
from lab.runs.runner import ERROR_BUDGET

if TYPE_CHECKING:
    from lab.report.exports.read import FindSet
    from lab.report.exports.source import BenchmarkRun, ContaminationRun
    from lab.retrieval.testset import TestSet

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"

FormatOption = Annotated[
    list[str],
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="csv, parquet, junit, sarif, summary, trec, inspect or sha256; repeatable. See docs/exports.md.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Folder, or file where one file is written; by default export-<run> here.",
        show_default=False,
    ),
]
StepOption = Annotated[
    bool, typer.Option("--step-summary", help=f"Append the summary to the file named by ${STEP_SUMMARY}.")
]
BudgetOption = Annotated[
    float,
    typer.Option("--error-budget", min=0, max=1, help="Share of planned trials that may end in an error, for junit."),
]
SetOption = Annotated[
    list[str],
    typer.Option(
        "--topics",
        "-t",
        metavar="SET",
        help="For trec: set that was measured on, as lab bench took it, where it is not under scenarios/retrieval.",
        show_default=False,
    ),
]
OwnSnapshotOption = Annotated[
    str,
    typer.Option(
        "--snapshot",
        metavar="NAME",
        help="For trec: frozen snapshot of your own that was measured, together with --topics.",
        show_default=False,
    ),
]


def export_report(
    path: RunArgument = None,
    formats: FormatOption = [],  # noqa: B006 - typer takes no other empty list
    output: OutputOption = None,
    step_summary: StepOption = False,
    error_budget: BudgetOption = ERROR_BUDGET,
    topics: SetOption = [],  # noqa: B006
    snapshot: OwnSnapshotOption = "",
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Write a contamination run or a benchmark run in the formats of other tools; nothing is run again."""
    from lab.report.exports.formats import export  # noqa: PLC0415 - pandas and scipy take a second to load

    chosen = path or latest_run(reports)
    if chosen is None:
        raise InputError(f"no run folder under {reports}", "start one: lab run")
    wanted = [_format(name) for name in dict.fromkeys(formats)]
    if not wanted and not step_summary:
        raise InputError("no format is named", f"--format, one or more of {', '.join(Format)}")
    step_file = _step_file() if step_summary else None

    def find_set(name: str) -> TestSet:
        return _measured(name, topics, snapshot, scenarios, snapshots)

    run = _read(RunFolder.open(chosen, ("lock.json",)), error_budget, find_set)
    files = export(run, wanted)
    written = _write(files, _place(output, chosen, files)) if files else []
    if step_file:
        _append(step_file, run)
        written.append(step_file)
    if json:
        print_json({"run": str(chosen), "files": [str(file) for file in written]})
        return
    for file in written:
        stdout.print(safe(str(file), 4096), soft_wrap=True)


def _format(name: str) -> Format:
    try:
        return Format(name)
    except ValueError:
        raise InputError(f"there is no format {name!r}", f"one of {', '.join(Format)}") from None


def _read(folder: RunFolder, error_budget: float, find_set: FindSet) -> ContaminationRun | BenchmarkRun:
    from lab.report.exports.read import is_benchmark, read_benchmark, read_contamination  # noqa: PLC0415

    if is_benchmark(folder):
        folder.check_seal(BENCH_DERIVED)
        return read_benchmark(folder, find_set)
    folder.check_seal(DERIVED)
    return read_contamination(folder, error_budget)


def _measured(name: str, topics: list[str], snapshot: str, scenarios: Path, snapshots: Path) -> TestSet:
    """The set of a name, as ``lab bench`` read it."""
    if snapshot:
        return frozen_sets(topics, scenarios, snapshots, snapshot)[0][0]
    for spec in topics:
        if (testset := load_named(spec, scenarios)).name == name:
            return testset
    if not (scenarios / "retrieval" / name).is_dir():
        raise InputError(
            f"the set {name} is not in {scenarios / 'retrieval'}", "name it as lab bench took it: --topics"
        )
    return load_named(name, scenarios)


def _place(output: Path | None, run: Path, files: Mapping[str, bytes]) -> dict[str, Path]:
    """Where each file goes: a name with an ending that is no folder is taken as the one file's own.

    Raises:
        InputError: Several files cannot be written as one, or the place lies in the run folder, which is sealed.
    """
    place = output or Path(f"export-{run.resolve().name}")
    if place.resolve().is_relative_to(run.resolve()):
        raise InputError(f"{place} lies in the run folder, whose files are sealed", "write elsewhere: --output")
    if place.is_dir() or not place.suffix or output is None:
        return {name: place / name for name in files}
    if len(files) > 1:
        raise InputError(f"{place} cannot be {len(files)} files: {', '.join(files)}", "name a folder: --output")
    return dict.fromkeys(files, place)


def _write(files: Mapping[str, bytes], places: Mapping[str, Path]) -> list[Path]:
    for name, place in places.items():
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(place, files[name])
        except OSError as error:
            raise EnvironmentUnusable(
                f"{place} cannot be written: {error.strerror}", "check the disk and the permissions"
            ) from error
    return list(places.values())


def _step_file() -> Path:
    named = os.environ.get(STEP_SUMMARY, "")
    if not named:
        raise InputError(f"${STEP_SUMMARY} is not set", "outside of GitHub Actions: --format summary")
    return Path(named)


def _append(file: Path, run: ContaminationRun | BenchmarkRun) -> None:
    """Appends the summary, in what room earlier commands of the same step have left."""
    from lab.report.exports.source import ContaminationRun  # noqa: PLC0415
    from lab.report.exports.summary import LIMIT, benchmark_summary, contamination_summary  # noqa: PLC0415

    try:
        room = LIMIT - (file.stat().st_size if file.is_file() else 0)
        text = contamination_summary(run, room) if isinstance(run, ContaminationRun) else benchmark_summary(run, room)
        with file.open("ab") as stream:
            stream.write(text)
    except OSError as error:
        raise EnvironmentUnusable(f"{file} cannot be written: {error.strerror}", f"see ${STEP_SUMMARY}") from error
