"""The scenario library on disk: finding, reading, checking and loading its files."""

from __future__ import annotations

import difflib
import fnmatch
import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.contamination.scenarios.checks import Entry, across, misplaced, within
from lab.contamination.scenarios.scenario import Family, Scenario
from lab.contamination.scenarios.source import BrokenSource, Problem, Source, read_source
from lab.errors import InputError
from lab.text import printable

__all__ = ["Problem", "lint", "load_library", "load_scenario", "problems_of", "scenario_files"]

MAX_PROBLEMS = 30
"""Problems told of one file; more would hide the others."""

NOT_SCENARIOS = {"schema", "retrieval", "detection", "payloads"}
"""Folders beside the families that hold other data."""

_SCHEMA_HINT = "see scenarios/schema/scenario.schema.json"


def load_scenario(path: Path | str) -> Scenario:
    """Reads one scenario file from anywhere.

    The rules of the library (name, folder, uniqueness, hosts) are not applied: ``lint`` does that.

    Raises:
        InputError: Naming file and line of the first problem.
    """
    try:
        return _parse(read_source(Path(path)))
    except BrokenSource as broken:
        raise _input_error(broken.problems, broken.problems[0].mend) from None


def problems_of(path: Path) -> list[Problem]:
    """All problems of one scenario file, wherever it lies; empty when all is well."""
    try:
        _parse(read_source(path))
    except BrokenSource as broken:
        return list(broken.problems)
    return []


def load_library(
    root: Path | str, families: Iterable[Family | str] | None = None, pattern: str = "*"
) -> list[Scenario]:
    """Loads the scenarios of a library, in the order of their ids.

    The whole library is checked, whatever is selected: a canary that occurs twice spoils both scenarios.

    Args:
        root: The folder that holds the family folders; or one scenario file, whatever its name and place.
        families: Families to keep; all when None.
        pattern: Shell pattern over ids (``F1-00*``).

    Raises:
        InputError: When anything is broken, or nothing fits the selection.
    """
    try:
        wanted = set(Family) if families is None else {Family(family) for family in families}
    except ValueError as error:
        raise InputError(printable(str(error)), f"known families: {', '.join(Family)}") from None
    entries, problems = _examine(root, placed=not Path(root).is_file())
    blocking = [problem for problem in problems if problem.blocking]
    if blocking:
        raise _input_error(blocking, f"run lab lint {printable(str(root))}")
    scenarios = [entry.scenario for entry in entries if entry.scenario.family in wanted]
    chosen = [scenario for scenario in scenarios if fnmatch.fnmatchcase(scenario.id, pattern)]
    if not chosen:
        ids = ", ".join(entry.scenario.id for entry in entries)
        raise InputError(f"no scenario fits {printable(pattern)} in {', '.join(sorted(wanted))}", f"there are {ids}")
    return sorted(chosen, key=lambda scenario: scenario.id)


def lint(where: Path | str | Iterable[Path | str]) -> list[Problem]:
    """Collects all problems of a library, or of single files and folders.

    The balance of languages is judged only where one folder is given, since it says nothing about a part.

    Returns:
        The problems by file and line; empty when all is well.
    """
    return _examine(where)[1]


def _examine(where: Path | str | Iterable[Path | str], *, placed: bool = True) -> tuple[list[Entry], list[Problem]]:
    single = isinstance(where, Path | str)
    entries: list[Entry] = []
    problems: list[Problem] = []
    places = [Path(where)] if isinstance(where, Path | str) else [Path(place) for place in where]
    for path in dict.fromkeys(file for place in places for file in scenario_files(place)):
        try:
            source = read_source(path)
            entry = Entry(source, _parse(source))
        except BrokenSource as broken:
            problems += broken.problems
        else:
            entries.append(entry)
            problems += (misplaced(entry) if placed else []) + within(entry)
    entries.sort(key=lambda entry: (entry.scenario.id, str(entry.source.path)))
    problems += across(entries, whole=single and places[0].is_dir())
    if not entries and not problems:
        nowhere = Source(places[0] if places else Path())
        mend = "name a folder that holds F1/F1-001.yaml and so on"
        problems.append(nowhere.problem(1, "no scenario file found", mend))
    problems.sort(key=lambda problem: (problem.file, problem.line))
    return entries, problems


def scenario_files(place: Path) -> list[Path]:
    """The scenario files of a folder; a file, or a name that leads nowhere, stands for itself."""
    if not place.is_dir():
        return [place]
    found = []
    for path in sorted(place.rglob("*")):
        inner = path.relative_to(place).parts
        left_out = inner[0] in NOT_SCENARIOS or any(part.startswith(".") for part in inner)
        # ".yml" is taken too, so that a misnamed file is a problem and not silently left out.
        if path.suffix.lower() in (".yaml", ".yml") and not path.is_dir() and not left_out:
            found.append(path)
    return found


def _parse(source: Source) -> Scenario:
    try:
        # Through JSON and strictly: what the published schema refuses ("1" or true for 1) is refused here too.
        return Scenario.model_validate_json(json.dumps(source.data), strict=True)
    except ValidationError as error:
        problems = [p for detail in error.errors(include_url=False) for p in _explain(source, dict(detail))]
        if len(problems) > MAX_PROBLEMS:
            last = problems[MAX_PROBLEMS - 1]
            more = source.problem(last.line, f"and {len(problems) - MAX_PROBLEMS + 1} more problems", _SCHEMA_HINT)
            problems = [*problems[: MAX_PROBLEMS - 1], more]
        raise BrokenSource(*problems) from None


def _explain(source: Source, detail: dict[str, Any]) -> list[Problem]:
    """One error of the model as problems with the line of the field they are about."""
    if detail["type"] == "inconsistent":
        found: list[tuple[str, str]] = detail["ctx"]["problems"]
        return [source.problem(source.line(field.split(".")), text, f"mend {field}") for field, text in found]
    place = detail["loc"]
    name = ".".join(map(str, place))
    message, mend = f"{name}: {detail['msg']}", _SCHEMA_HINT
    if detail["type"] == "missing":
        message, mend = f"{name} is missing", f"add the field {place[-1]}"
    elif detail["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(place[-1])[:80], _field_names(), n=1)
        message = f"{name} is not a known field"
        mend = f"did you mean {close[0]}?" if close else "remove it or mend its spelling"
    elif isinstance(detail.get("input"), str | int | bool):
        message += f", got {printable(repr(detail['input']), 60)}"
    return [source.problem(source.line(place), message, mend)]


@functools.cache
def _field_names() -> frozenset[str]:
    """Names of all fields of a scenario and the records in it, as they stand in a file."""
    schema = Scenario.model_json_schema(by_alias=True)
    parts = [schema, *schema.get("$defs", {}).values()]
    return frozenset(name for part in parts for name in part.get("properties", {}))


def _input_error(problems: Iterable[Problem], mend: str) -> InputError:
    first, *others = problems
    more = f" (and {len(others)} more problem{'s' * (len(others) > 1)})" if others else ""
    return InputError(f"{first.file}:{first.line}: {first.message}{more}", mend)
