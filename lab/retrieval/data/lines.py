"""Reads files of unknown origin piece by piece; what is wrong is told with file, line and mend."""

from __future__ import annotations

import difflib
import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.errors import InputError
from lab.records import Record
from lab.text import printable

MAX_LINE = 16 * 1024 * 1024
MAX_DOCUMENT = 1024 * 1024 * 1024
"""Bounds in bytes: a broken file must not cost the machine's memory."""


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


class BrokenData(InputError):
    """A fault at one line of a file.

    Attributes:
        file: The file as the caller named it; free of control characters.
        line: Line, from 1.
        fault: What is wrong, without the place.
    """

    def __init__(self, path: Path, line: int, fault: str, mend: str) -> None:
        self.file, self.line, self.fault = printable(str(path), 400), line, printable(fault, 400)
        super().__init__(f"{self.file}:{line}: {self.fault}", printable(mend, 400))


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank with their numbers, from 1.

    A byte order mark and Windows line ends are tolerated, since editors add them unasked.

    Raises:
        BrokenData: It is no regular file, cannot be read, is not UTF-8, holds a NUL or a line above ``MAX_LINE``.
    """
    _require_file(path)
    try:
        with path.open("rb") as stream:
            number = 0
            while raw := stream.readline(MAX_LINE + 1):
                number += 1
                text = _decoded(path, number, raw).rstrip("\r\n")
                if text.strip():
                    yield number, text
    except OSError as error:
        raise BrokenData(path, 1, f"cannot be read: {error.strerror}", "check its permissions") from None


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields one JSON object a line (JSON Lines) with its line number.

    Raises:
        BrokenData: As ``numbered_lines``; or a line holds no JSON object.
    """
    for number, text in numbered_lines(path):
        value = _parsed(path, number, text)
        if not isinstance(value, dict):
            raise BrokenData(path, number, "not a JSON object", "write one {…} a line")
        yield number, value


def json_document(path: Path) -> Any:
    """Reads a file that is one JSON document; the caller checks its shape.

    Raises:
        BrokenData: As ``numbered_lines``; or it is no JSON.
    """
    _require_file(path)
    try:
        if path.stat().st_size > MAX_DOCUMENT:
            raise BrokenData(path, 1, f"larger than {MAX_DOCUMENT // 1024**2} MiB", "split it")
        raw = path.read_bytes()
    except OSError as error:
        raise BrokenData(path, 1, f"cannot be read: {error.strerror}", "check its permissions") from None
    try:
        return _parsed(path, 1, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BrokenData(path, line, "not UTF-8", "save the file as UTF-8") from None


def refuse_escaped_nul(path: Path, line: int, text: str) -> None:
    """Refuses JSON text in which a NUL is written as an escape: databases and C libraries end texts there.

    Raises:
        BrokenData: It holds one.
    """
    if found := _ESCAPED_NUL.search(text):
        raise BrokenData(path, line + text.count("\n", 0, found.start()), "holds an escaped NUL", "remove \\u0000")


def text_field(path: Path, line: int, record: dict[str, Any], *names: str, default: str | None = None) -> str:
    """The first of several fields of a record that is there; numbers are taken as text.

    Raises:
        BrokenData: None is there and no default is given, or it is neither text nor a number.
    """
    for name in names:
        if name in record:
            value = record[name]
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise BrokenData(path, line, f"{name} is neither text nor a whole number", "write it in quotes")
            return str(value)
    if default is None:
        raise BrokenData(path, line, f"{' or '.join(names)} is missing", f"add the field {names[0]}")
    return default


def explained(path: Path, line: int, error: ValidationError, model: type[Record]) -> BrokenData:
    """What a model says of a line, as a fault with a mend."""
    first, more = error.errors(include_url=False)[0], error.error_count() - 1
    name = ".".join(map(str, first["loc"])) or "the line"
    message, mend = f"{name}: {first['msg']}", "see docs/test-sets.md"
    if first["type"] == "json_invalid":
        message, mend = f"not valid JSON: {first['ctx']['error']}", "write one JSON object a line"
    elif first["type"] == "missing":
        message, mend = f"{name} is missing", f"add the field {name}"
    elif first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(name[:80], list(model.model_fields), n=1)
        message, mend = f"{name} is not a known field", f"did you mean {close[0]}?" if close else "remove it"
    return BrokenData(path, line, message + (f" (and {more} more in this line)" if more else ""), mend)


def _require_file(path: Path) -> None:
    try:
        # Asked before opening: a named pipe would block for ever.
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise BrokenData(path, 1, "no such file", "check the path") from None
    except (OSError, ValueError) as error:
        raise BrokenData(path, 1, f"cannot be read: {error}", "check the path") from None
    if stat.S_ISDIR(mode):
        raise BrokenData(path, 1, "a folder stands where a file should", "put the file in its place")
    if not stat.S_ISREG(mode):
        raise BrokenData(path, 1, "not a regular file", "put a plain file in its place")


def _decoded(path: Path, number: int, raw: bytes) -> str:
    if len(raw) > MAX_LINE:
        raise BrokenData(path, number, f"a line of more than {MAX_LINE // 1024**2} MiB", "write one record a line")
    if b"\0" in raw:
        raise BrokenData(path, number, "holds a NUL byte", "save the file as UTF-8 text")
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise BrokenData(path, number, "not UTF-8", "save the file as UTF-8") from None


def _parsed(path: Path, line: int, text: str) -> Any:
    refuse_escaped_nul(path, line, text)
    try:
        value = json.loads(text)
        if _HALF_PAIR.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise BrokenData(path, line, "holds half a surrogate pair", "write the character itself") from None
    except json.JSONDecodeError as error:
        place = line + error.lineno - 1
        raise BrokenData(path, place, f"not valid JSON: {error.msg}", f"mend column {error.colno}") from None
    except (RecursionError, ValueError) as error:
        fault = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BrokenData(path, line, f"not usable JSON: {fault}", "write plain records") from None
