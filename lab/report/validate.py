"""Checks one file of the lab against the form of its kind; every fault is told with its place."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lab.contamination.scenarios.library import problems_of
from lab.errors import InputError
from lab.records import Record
from lab.report.formats import BY_NAME, JSON, LINES, YAML, Kind, kind_by_fields, kind_by_place
from lab.retrieval.data.head import read_head
from lab.retrieval.data.judgements import qrels_lines
from lab.retrieval.data.lines import BrokenData, json_document, json_objects, numbered_lines, refuse_escaped_nul

MAX_FAULTS = 30
"""Faults told of one file; more would hide the others."""

_FORMS = {".json": (JSON, YAML), ".jsonl": (LINES,), ".yaml": (YAML,), ".yml": (YAML,)}


class Fault(Record):
    """One thing that is wrong with a file.

    Attributes:
        line: Line, from 1; 0 where a JSON path tells more.
        path: JSON path of the value (``/trials/3/seed``), within its line where there is one.
        message: What is wrong; may hold hostile text.
    """

    line: int = 0
    path: str = ""
    message: str


class Checked(Record):
    """One file that was looked at.

    Attributes:
        file: As the caller named it.
        kind: What it was taken for; empty where it could not be told.
        faults: What is wrong with it, at most ``MAX_FAULTS`` and one that says so.
    """

    file: str
    kind: str
    faults: tuple[Fault, ...]


def check(path: Path, kind: Kind | None, check_config: Callable[[Path], object]) -> Checked:
    """Checks a file.

    Args:
        path: The file.
        kind: What it is to be; None to recognise it.
        check_config: Reads a ``lab.toml``; only the command line knows its options.
    """
    try:
        kind = kind or recognise(path)
    except BrokenData as broken:
        return Checked(file=str(path), kind="", faults=(Fault(line=broken.line, message=broken.fault),))
    except InputError as error:
        return Checked(file=str(path), kind="", faults=(Fault(message=_without(path, error)),))
    return Checked(file=str(path), kind=kind.name, faults=tuple(faults_of(path, kind, check_config)))


def recognise(path: Path) -> Kind:
    """Tells the kind of a file by its name, otherwise by its content.

    Raises:
        InputError: It is of no known kind, or cannot be read.
    """
    value = None
    if path.name == "lock.json":  # of either kind of run
        value = json_document(path)
    elif kind := kind_by_place(path):
        return kind
    elif path.suffix == ".json":
        value = json_document(path)
    elif path.suffix == ".jsonl":
        value = next((line for _, line in json_objects(path)), None)
    elif path.suffix in (".yaml", ".yml"):
        text = "\n".join(line for _, line in numbered_lines(path))
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise InputError(f"{path}: not valid YAML: {str(error).splitlines()[0]}", "mend the YAML") from None
    kind = kind_by_fields(value, _FORMS.get(path.suffix, ()))
    if kind is None:
        raise InputError(
            f"{path} is of no kind that the lab knows", f"say which with --as: {', '.join(sorted(BY_NAME))}"
        )
    return kind


def faults_of(path: Path, kind: Kind, check_config: Callable[[Path], object]) -> list[Fault]:
    """All faults of a file, at most ``MAX_FAULTS`` and one that says so; empty when all is well.

    Args:
        path: The file.
        kind: What it is to be.
        check_config: Reads a ``lab.toml``; only the command line knows its options.
    """
    found: list[Fault] = []
    try:
        for fault in _faults(path, kind, check_config):
            found.append(fault)
            if len(found) > MAX_FAULTS:
                found[-1] = Fault(message=f"more than {MAX_FAULTS} faults, the rest is not told")
                break
    except BrokenData as broken:
        found.append(Fault(line=broken.line, message=broken.fault))
    return found


def _faults(path: Path, kind: Kind, check_config: Callable[[Path], object]) -> Iterable[Fault]:
    if kind.form == JSON or (kind.form == YAML and path.suffix == ".json"):
        return _json(path, kind)
    if kind.form == LINES:
        return _lines(path, kind)
    if kind.name == "scenario":
        return [Fault(line=problem.line, message=problem.message) for problem in problems_of(path)]
    if kind.name == "setup":
        return _yaml(path, kind)
    readers: dict[str, Callable[[Path], object]] = {
        "set": read_head,
        "qrels": lambda table: deque(qrels_lines(table), maxlen=0),
        "config": check_config,
    }
    return _told(path, readers[kind.name])


def _json(path: Path, kind: Kind) -> Iterator[Fault]:
    json_document(path)
    yield from _checked(kind, path.read_bytes(), 0)


def _yaml(path: Path, kind: Kind) -> Iterator[Fault]:
    try:
        text = "\n".join(line for _, line in numbered_lines(path))
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        yield Fault(message=f"not valid YAML: {' '.join(str(error).split())}")
        return
    yield from _checked(kind, json.dumps(value, default=str), 0)


def _lines(path: Path, kind: Kind) -> Iterator[Fault]:
    for number, text in numbered_lines(path):
        if kind.strict:
            refuse_escaped_nul(path, number, text)
        yield from _checked(kind, text, number)


def _checked(kind: Kind, data: str | bytes, line: int) -> Iterator[Fault]:
    if kind.model is None:
        return
    try:
        kind.model.model_validate_json(data, strict=kind.strict or None)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            yield Fault(line=line, path="".join(f"/{_escaped(part)}" for part in one["loc"]), message=one["msg"])


def _escaped(part: Any) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _told(path: Path, read: Callable[[Path], object]) -> list[Fault]:
    """The fault that a reader tells; the name of the file is not told twice."""
    try:
        read(path)
    except BrokenData:
        raise
    except InputError as error:
        return [Fault(message=_without(path, error))]
    return []


def _without(path: Path, error: InputError) -> str:
    """The words of an error that names its file first: the place is told apart from them."""
    return error.message.removeprefix(str(path)).lstrip(": ")
