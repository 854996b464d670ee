"""``lab gate``: holds a run against the rules of ``lab.toml`` and exits so that a CI job passes or fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.measured_run import measure_run
from lab.cli.output import print_json, stdout
from lab.cli.places import CONFIG, DEFAULT_REPORTS, JsonOption, ReportsOption
from lab.cli.report import RunArgument

RulesOption = Annotated[
    Path, typer.Option("--rules", envvar="LAB_RULES", metavar="FILE", help="TOML file with the table gate.")
]
BaselineOption = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="RUN", help="Run folder that rules with a margin compare with."),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--error-budget", min=0, max=1, help="Share of planned trials that may end in an error; wins over the file."
    ),
]


def gate(
    path: RunArgument = None,
    rules: RulesOption = Path(CONFIG),
    baseline: BaselineOption = None,
    error_budget: BudgetOption = None,
    reports: ReportsOption = DEFAULT_REPORTS,
    json: JsonOption = False,
) -> None:
    """Hold a run against the rules of the table gate of lab.toml: exit code 0 passed, 1 failed, 3 error budget blown.

    A rule that is about nothing, or that cannot be decided, fails with the reason.
    """
    from lab.gate.judge import judge, needs_baseline  # noqa: PLC0415 - see measure_run
    from lab.gate.read import read_gate  # noqa: PLC0415
    from lab.gate.terminal import print_gate  # noqa: PLC0415

    file = read_gate(rules)
    run = measure_run(path, reports)
    other = baseline or file.baseline
    before = measure_run(other, reports) if other and needs_baseline(file, run.kind) else None
    result = judge(run, file, before, error_budget)
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        print_gate(result, stdout)
    raise typer.Exit(result.exit_code)
