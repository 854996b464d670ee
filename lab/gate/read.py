"""Reads the rules of a gate from a TOML file, and names line and nearest word of whatever is wrong in it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lab.errors import InputError
from lab.gate.rules import Gate, MeasureRule, RateRule
from lab.records import Record
from lab.report.measured import MeasureKey, RateKey

TABLE = "gate"
"""Name of the table."""

_RULES: dict[str, type[Record]] = {"rate": RateRule, "measure": MeasureRule}
_GUIDE = "docs/ci.md describes the table [gate]"


@dataclass(frozen=True)
class GateFile:
    """The rules as they were read.

    Attributes:
        path: The file.
        gate: The table.
        lines: Line of each rule, from 1; 0 where it could not be found (rules written as an inline array).
    """

    path: Path
    gate: Gate
    lines: tuple[int, ...]

    @property
    def baseline(self) -> Path | None:
        """Folder of the baseline run that the file names."""
        return self.path.parent / self.gate.baseline if self.gate.baseline else None


def read_gate(path: Path) -> GateFile:
    """Reads the table ``[gate]`` of a file; its other tables are not looked at.

    Args:
        path: A TOML file, usually ``lab.toml``.

    Raises:
        InputError: It is missing, is not TOML, or its table is wrong; the message names the file and, where it can be
            found, the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path} is missing", f"write the rules: {_GUIDE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", "mend it, or name another with --rules") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}", "mend it") from error
    if TABLE not in tables:
        raise InputError(f"{path} has no table [{TABLE}]", f"write the rules: {_GUIDE}")
    lines = _Lines(text)
    try:
        gate = Gate.model_validate(tables[TABLE])
    except ValidationError as error:
        first = error.errors()[0]
        number = lines.of(first["loc"])
        where = f"{path}:{number}" if number else str(path)
        raise InputError(f"{where}: {_place(first['loc'])}{_fault(first)}", _mend(first)) from error
    return GateFile(path, gate, tuple(lines.rule(index) for index in range(len(gate.rule))))


class _Lines:
    """Where things stand in the text; tomllib does not tell."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        header = re.compile(r"\s*\[\[\s*gate\s*\.\s*rule\s*\]\]")
        self._rules = [n for n, line in enumerate(self._lines, 1) if header.match(line)]
        table = re.compile(r"\s*\[\s*gate\s*\]")
        self._table = next((n for n, line in enumerate(self._lines, 1) if table.match(line)), 0)

    def rule(self, index: int) -> int:
        return self._rules[index] if index < len(self._rules) else 0

    def of(self, place: tuple[int | str, ...]) -> int:
        """The line of what an error is about: the key, or else the head of its table; 0 where neither is found."""
        in_rule = _in_rule(place)
        head = self.rule(int(place[1])) if in_rule else self._table
        keys = place[3:] if in_rule else place  # a rule's number is followed by its kind
        if head and keys:
            wanted = re.compile(rf"\s*[\"']?{re.escape(str(keys[0]))}[\"']?\s*=")
            for number, line in enumerate(self._lines[head:], head + 1):
                if line.lstrip().startswith("["):
                    break
                if wanted.match(line):
                    return number
        return head


def _place(place: tuple[int | str, ...]) -> str:
    return f"rule {int(place[1]) + 1}: " if _in_rule(place) else ""


def _in_rule(place: tuple[int | str, ...]) -> bool:
    return place[:1] == ("rule",) and len(place) > 1


def _fault(error: ErrorDetails) -> str:
    key = error["loc"][-1] if error["loc"] else TABLE
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key {key!r}"
        case "missing":
            return f"{key!r} is missing"
        case "enum" | "literal_error":
            return f"{error['input']!r} is no {key}"
        case "value_error" | "no_number":
            return error["msg"].removeprefix("Value error, ")
        case _:
            return f"{key}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _mend(error: ErrorDetails) -> str:
    known: Iterable[str] = ()
    given = error["loc"][-1] if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        known = _keys(_RULES[str(error["loc"][2])] if _in_rule(error["loc"]) else Gate)
    elif error["type"] in ("enum", "literal_error"):
        known, given = _values(error), error["input"]
    words = [str(word) for word in known]
    if not words:
        return _GUIDE
    near = [word for word in words if word.startswith(str(given))]
    near = near or difflib.get_close_matches(str(given), words, n=1, cutoff=0.4)
    names = "; ".join(words)
    return f"did you mean {near[0]!r}? There are: {names}" if near else f"one of: {names}"


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _values(error: ErrorDetails) -> list[str]:
    keys: dict[Any, list[str]] = {"rate": [*RateKey], "measure": [*MeasureKey]}
    expected = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
    return keys.get(error["loc"][-1], expected)
