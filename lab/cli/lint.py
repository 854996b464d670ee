"""``lab lint``: checks scenario files and names file, line and mend."""

from __future__ import annotations

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import DEFAULT_SCENARIOS, JsonOption, ScenariosOption
from lab.contamination.scenarios.library import lint
from lab.errors import ExitCode


def lint_command(scenarios: ScenariosOption = DEFAULT_SCENARIOS, json: JsonOption = False) -> None:
    """Check the scenario files; every problem names file, line and mend."""
    problems = lint(scenarios)
    if json:
        print_json([{"file": str(p.file), "line": p.line, "message": p.message, "mend": p.mend} for p in problems])
    else:
        for p in problems:
            stdout.print(f"{safe(str(p.file))}:{p.line}: {safe(p.message)} → {safe(p.mend)}", soft_wrap=True)
        if not problems:
            count = sum(1 for _ in scenarios.glob("F*/*.yaml"))
            stdout.print(f"{count} scenario files, no problem found")
    if problems:
        raise typer.Exit(ExitCode.USAGE)
