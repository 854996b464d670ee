"""Local patches, declared in a file and looked for in the built environment: a patch lost on an update is named."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from lab.agents.hermes.inside import ask_inside
from lab.errors import EnvironmentUnusable, InputError
from lab.isolation.base import PreparedEnvironment
from lab.records import Record
from lab.text import printable

_PROGRAM = "patches.py"
_ISOLATED = ("-I", "-S")
_LONGEST_TEXT = 4000
_MOST_MARKERS = 500
_MOST_BYTES = 100_000  # the kernel passes no longer argument than 128 KiB to a program


def _inside_packages(file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in file or "\0" in file:
        raise ValueError("must be a path below site-packages, such as agent/background_review.py")
    return file


def _pattern(regex: str) -> str:
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return regex


_Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]


class PatchMarker(Record):
    """What shows that one local patch is in a build; every test that is given must hold.

    Attributes:
        name: Name of the patch.
        file: File that it changes, relative to site-packages.
        contains: Text that the patched file holds.
        regex: Pattern that matches somewhere in it; ``^`` and ``$`` match at lines.
        absent: Text that the patched file must not hold any more.
        why: What is lost with the patch, for whoever reads the failure.
    """

    name: Annotated[str, Field(min_length=1, max_length=120)]
    file: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_inside_packages)]
    contains: _Text | None = None
    regex: Annotated[_Text, AfterValidator(_pattern)] | None = None
    absent: _Text | None = None
    why: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _tests_something(self) -> Self:
        if not (self.contains or self.regex or self.absent):
            raise ValueError("needs one of contains, regex, absent")
        return self


class _PatchFile(Record):
    patch: Annotated[tuple[PatchMarker, ...], Field(min_length=1, max_length=_MOST_MARKERS)]


@dataclass(frozen=True)
class PatchFinding:
    """Whether one declared patch is in a build.

    Attributes:
        marker: What was declared.
        problem: Why it does not hold; empty when it does.
    """

    marker: PatchMarker
    problem: str

    @property
    def ok(self) -> bool:
        """Whether the patch is there."""
        return not self.problem


def load_patches(path: Path) -> tuple[PatchMarker, ...]:
    """Reads a file of patch markers.

    Raises:
        InputError: It is missing, no TOML, or a marker is not valid; names the file, the marker and the key.
    """
    shown = printable(str(path))
    try:
        declared = _PatchFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InputError(f"there is no file {shown}", "see docs/builds.md for its form") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in first["loc"]) or "the file"
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(f"{shown}: {printable(key)}: {printable(reason)}", "see docs/builds.md") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{shown} is no TOML file: {printable(str(error))}", "mend it; see docs/builds.md") from error
    names = [marker.name for marker in declared.patch]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{shown}: two patches are named {printable(name)!r}", "give each a name of its own")
    if len(_argument(declared.patch)) > _MOST_BYTES:
        raise InputError(f"{shown} holds more than {_MOST_BYTES} bytes of marks", "shorten them, or use two files")
    return declared.patch


def find_patches(environment: PreparedEnvironment, markers: tuple[PatchMarker, ...]) -> tuple[PatchFinding, ...]:
    """Looks for every marker in the files of a build, inside its own sandbox.

    Raises:
        EnvironmentUnusable: The files cannot be read.
    """
    answer = ask_inside(environment, _PROGRAM, options=_ISOLATED, argument=_argument(markers))
    if any(not isinstance(answer.get(marker.name), str) for marker in markers):
        raise EnvironmentUnusable("not every patch was looked for inside the build", "lab agent check")
    return tuple(PatchFinding(marker, printable(answer[marker.name])) for marker in markers)


def _argument(markers: tuple[PatchMarker, ...]) -> str:
    # ASCII alone: an isolated interpreter inside knows no locale by which it could read anything else.
    return json.dumps([m.model_dump(exclude_none=True, exclude={"why"}) for m in markers], ensure_ascii=True)
