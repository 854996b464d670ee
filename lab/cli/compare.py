"""``lab compare``: runs held against a baseline, or the builds, setups or models of one run."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli.bench_run import BENCH_DERIVED
from lab.cli.output import console, print_json, safe
from lab.cli.places import DEFAULT_REPORTS, JsonOption, ReportsOption
from lab.cli.report import DERIVED
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.records import digest
from lab.retrieval.results import LOCK
from lab.retrieval.rows import is_bench
from lab.runs.folder import RunFolder

if TYPE_CHECKING:
    from lab.compare.model import Comparison


class By(StrEnum):
    """What may be compared within one run."""

    BUILD = "build"
    SETUP = "setup"
    MODEL = "model"


def compare_command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN…", help="Run folders; the first is the baseline. One with --by.")
    ],
    by: Annotated[
        By | None, typer.Option("--by", help="Compare the builds, setups or models of one run.", show_default=False)
    ] = None,
    baseline: Annotated[
        str, typer.Option("--baseline", help="With --by: what the others are held against. The first by default.")
    ] = "",
    margin: Annotated[
        float, typer.Option("--margin", help="Largest difference that is taken for none, in percentage points.")
    ] = 5.0,
    common: Annotated[
        bool, typer.Option("--common", help="Compare what both have, and tell what is left out or differs as well.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the report; compare-… under --reports by default."),
    ] = None,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Compare runs on the same scenarios or snapshots, paired: what is better, worse, or cannot be told."""
    from lab.compare.locks import Incomparable  # noqa: PLC0415
    from lab.report.compare.terminal import print_comparison, print_lines  # noqa: PLC0415
    from lab.report.compare.write import write_comparison  # noqa: PLC0415

    if not 0 < margin < 100:
        raise InputError(f"a margin of {margin} points is none", "give one between 0 and 100, e.g. --margin 5")
    try:
        comparison = _compared(runs, by, baseline, margin / 100, common=common)
    except Incomparable as error:
        print_lines(error.differences, console, most=40)
        raise
    folder = output or reports / _name(runs, by, baseline)
    paths = runs * len(comparison.sides) if by else runs
    places = {side.letter: path for side, path in zip(comparison.sides, paths, strict=True)}
    written = write_comparison(comparison, folder, places)
    if json:
        print_json(comparison.model_dump(mode="json"))
    else:
        print_comparison(comparison, console, places)
    console.print(f"report: {safe(written[0].resolve().as_uri())}", soft_wrap=True)


def _compared(runs: Sequence[Path], by: By | None, baseline: str, margin: float, *, common: bool) -> Comparison:
    # scipy takes most of a second to load, which other commands should not pay.
    from lab.compare.bench import compare_benches  # noqa: PLC0415
    from lab.compare.contamination import compare_runs, compare_within  # noqa: PLC0415
    from lab.compare.model import Dimension  # noqa: PLC0415

    benches = [is_bench(run) for run in runs]
    if any(benches) and not all(benches):
        raise InputError("a benchmark run and a contamination run have nothing to compare", "name runs of one kind")
    if by is None and baseline:
        raise InputError("--baseline goes with --by", "of several runs the first is the baseline")
    if by is None:
        if benches[0]:
            return compare_benches([_sealed_bench(run) for run in runs], margin=margin, common=common)
        return compare_runs([_sealed_suite(run) for run in runs], margin=margin, common=common)
    if benches[0]:
        raise InputError("a benchmark run has no builds, setups or models to compare", "its report compares its arms")
    if len(runs) > 1 or common:
        raise InputError("--by looks into one run, of which all is common", f"lab compare RUN --by {by}")
    return compare_within(_sealed_suite(runs[0]), Dimension(by.value), baseline=baseline, margin=margin)


def _sealed_suite(path: Path) -> Suite:
    folder = RunFolder.open(path)
    folder.check_seal(DERIVED)
    return Suite(folder)


def _sealed_bench(path: Path) -> RunFolder:
    folder = RunFolder.open(path, (LOCK,))
    folder.check_seal(BENCH_DERIVED)
    return folder


def _name(runs: Sequence[Path], by: By | None, baseline: str) -> str:
    """Name of the folder of a comparison: the same for the same comparison, and fit for a file system."""
    names = [run.resolve().name for run in runs]
    if by:
        return f"compare-{names[0]}-by-{by}" + (f"-{digest(baseline)[:8]}" if baseline else "")
    return f"compare-{names[0]}-{names[1]}" if len(names) == 2 else f"compare-{names[0]}-{digest(names)[:8]}"
