"""What a set says of itself (``set.yaml``), which stands beside our own form and beside foreign ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from lab.records import Record
from lab.retrieval.data.lines import BrokenData, explained, numbered_lines
from lab.retrieval.testset import Purpose
from lab.text import printable

HEAD = "set.yaml"

MAX_HEAD = 16 * 1024
"""Characters: the time that YAML takes over hostile text grows with the square of its length."""


class SetHead(Record):
    """What ``set.yaml`` says of a set; the fields are those of ``TestSet``."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    title: str = ""
    purpose: Purpose = Purpose.EXTERNAL
    licence: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()


def set_name(text: str) -> str:
    """A text as a short name fit for a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64] or "set"


def head_beside(folder: Path) -> SetHead | None:
    """The ``set.yaml`` of a folder; None where there is none.

    Raises:
        BrokenData: It is broken.
    """
    path = folder / HEAD
    return read_head(path) if path.exists() else None


def read_head(path: Path) -> SetHead:
    """Reads a ``set.yaml``; a set without a name has that of its folder.

    Raises:
        BrokenData: It is broken.
    """
    text = "\n".join(_padded(path))
    if len(text) > MAX_HEAD:
        raise BrokenData(path, 1, f"larger than {MAX_HEAD // 1024} KiB", "shorten the notes")
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BrokenData(path, line, f"not valid YAML: {error.problem}", "mend the YAML at this line") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        fault = printable(str(error) or "nested too deeply")
        raise BrokenData(path, 1, f"not usable YAML: {fault}", "write plain fields") from None
    if not isinstance(data, dict):
        raise BrokenData(path, 1, "holds no fields", "write name, title, purpose, licence and source")
    try:
        return SetHead.model_validate({"name": set_name(path.parent.resolve().name), **data})
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        line = next((n for n, said in enumerate(text.split("\n"), 1) if said.startswith(field)), 1)
        raise explained(path, line, error, SetHead) from None


def _padded(path: Path) -> Iterator[str]:
    """The lines of a file with the blank ones in their places, so that YAML counts them as an editor does."""
    last = 0
    for number, text in numbered_lines(path):
        yield from [""] * (number - last - 1)
        yield text
        last = number
