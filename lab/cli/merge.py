"""``lab merge``: one run folder and report out of the shards of one plan."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from lab.cli.output import console, safe
from lab.cli.places import DEFAULT_REPORTS, JsonOption, ReportsOption
from lab.cli.report import DERIVED, open_run, report_on
from lab.contamination.merge import merge
from lab.contamination.suite import Suite


def merge_command(
    shards: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders of all shards of one plan.")],
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Put the shards of one plan together: a new run folder with all their evidence, and the report of the whole."""
    with ExitStack() as opened:
        # A folder named twice is opened once; the merge then finds the other shards missing.
        suites = [opened.enter_context(open_run(path, reports)) for path in dict.fromkeys(p.resolve() for p in shards)]
        for suite in suites:
            suite.folder.check_seal(DERIVED)
        folder = merge(suites, reports)
    console.print(f"run folder: {safe(str(folder.path))}", soft_wrap=True)
    with folder.lock():
        report_on(Suite(folder), json=json)
