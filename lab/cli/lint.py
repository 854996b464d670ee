"""``lab lint``: checks scenario files, sets of the benchmark and data of suites; names file, line and mend."""

from __future__ import annotations

from pathlib import Path

import typer

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import DEFAULT_SCENARIOS, JsonOption, ScenariosOption
from lab.contamination.scenarios.library import lint
from lab.errors import ExitCode
from lab.retrieval.data.load import check_set, set_folders


def lint_command(scenarios: ScenariosOption = DEFAULT_SCENARIOS, json: JsonOption = False) -> None:
    """Check the scenario files, the retrieval sets and the suites' data; every problem names file, line and mend."""
    sets = set_folders(scenarios / "retrieval")
    problems = [(str(p.file), p.line, p.message, p.mend) for p in lint(scenarios)]
    problems += [(broken.file, broken.line, broken.fault, broken.mend) for place in sets for broken in check_set(place)]
    labelled = sorted((scenarios / "suites").glob("*/*/*.jsonl"))
    problems += [problem for path in labelled for problem in _labelled_problems(path)]
    if json:
        print_json([dict(zip(("file", "line", "message", "mend"), problem, strict=True)) for problem in problems])
    else:
        for file, line, message, mend in problems:
            stdout.print(f"{safe(file)}:{line}: {safe(message)} → {safe(mend)}", soft_wrap=True)
        if not problems:
            count = sum(1 for _ in scenarios.glob("F*/*.yaml"))
            told = f"{count} scenario files, {len(sets)} retrieval sets and {len(labelled)} files of suites"
            stdout.print(f"{told}, no problem found", soft_wrap=True)
    if problems:
        raise typer.Exit(ExitCode.USAGE)


def _labelled_problems(path: Path) -> list[tuple[str, int, str, str]]:
    """What is wrong with a file of labelled cases, line by line; that cases fit together is checked by their suite."""
    from lab.report.validate import check  # noqa: PLC0415 - reads the forms of all files, which take a second to load

    found = check(path, None, lambda _: None)
    place = f"docs/schema/{found.kind}.schema.json" if found.kind else "lab validate --as KIND"
    return [(str(path), fault.line, f"{fault.path} {fault.message}".strip(), place) for fault in found.faults]
