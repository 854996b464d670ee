"""``lab lint``: checks scenario files and the sets of the retrieval benchmark; names file, line and mend."""

from __future__ import annotations

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import DEFAULT_SCENARIOS, JsonOption, ScenariosOption
from lab.contamination.scenarios.library import lint
from lab.errors import ExitCode
from lab.retrieval.data.load import check_set, set_folders


def lint_command(scenarios: ScenariosOption = DEFAULT_SCENARIOS, json: JsonOption = False) -> None:
    """Check the scenario files and the retrieval sets; every problem names file, line and mend."""
    sets = set_folders(scenarios / "retrieval")
    problems = [(str(p.file), p.line, p.message, p.mend) for p in lint(scenarios)]
    problems += [(broken.file, broken.line, broken.fault, broken.mend) for place in sets for broken in check_set(place)]
    if json:
        print_json([dict(zip(("file", "line", "message", "mend"), problem, strict=True)) for problem in problems])
    else:
        for file, line, message, mend in problems:
            stdout.print(f"{safe(file)}:{line}: {safe(message)} → {safe(mend)}", soft_wrap=True)
        if not problems:
            count = sum(1 for _ in scenarios.glob("F*/*.yaml"))
            stdout.print(f"{count} scenario files and {len(sets)} retrieval sets, no problem found")
    if problems:
        raise typer.Exit(ExitCode.USAGE)
