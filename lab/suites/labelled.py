"""Reads the labelled data of a suite: one record a line, checked on load, faults told with file and line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from lab.records import Record, digest, first_fault
from lab.retrieval.data.lines import BrokenData, json_objects
from lab.retrieval.testset import Purpose

PARTS = {"development": Purpose.DEVELOPMENT, "holdout": Purpose.HOLD_OUT}
"""Folders of a suite's data, and what each may be used for."""


Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A text that has something to read."""


class Labelled(Record):
    """One labelled case.

    Attributes:
        id: Unique in its file.
    """

    id: str = Field(min_length=1)


Case = TypeVar("Case", bound=Labelled)


def labelled_lines(path: Path, model: type[Case], guide: str) -> Iterator[tuple[int, Case]]:
    """Yields the cases of a file with their line numbers.

    Args:
        path: JSON Lines.
        model: What each line is.
        guide: The document that describes the form, for the mend.

    Raises:
        BrokenData: A line is no such case, or its id was there before, or the file holds none.
    """
    seen: dict[str, int] = {}
    for line, value in json_objects(path):
        try:
            case = model.model_validate(value)
        except ValidationError as error:
            raise BrokenData(path, line, first_fault(error), f"see {guide}") from None
        if case.id in seen:
            raise BrokenData(path, line, f"{case.id} is there already, in line {seen[case.id]}", "give it its own id")
        seen[case.id] = line
        yield line, case
    if not seen:
        raise BrokenData(path, 1, "holds no case", f"see {guide}")


def require_apart(folder: Path, files: Iterable[str], *texts: str) -> None:
    """Refuses data that stand in two parts: a hold-out that holds development data proves nothing.

    Ids are compared file by file, texts over all files, whatever their case and spaces. A part that is not there is
    passed over.

    Args:
        folder: It holds the parts.
        files: JSON Lines files of each part.
        texts: Fields whose text belongs to one part.

    Raises:
        BrokenData: A line is no JSON object, or its id or a text of it stands in an earlier part, too.
    """
    seen: dict[tuple[str, str], tuple[str, Path, int]] = {}
    for part in PARTS:
        for path in (folder / part / file for file in files if (folder / part).exists()):
            for line, value in json_objects(path):
                for field in ("id", *texts):
                    if not isinstance(value.get(field), str):
                        continue  # what a line must hold is its model's matter
                    said = " ".join(value[field].split())
                    key = (path.name, said) if field == "id" else ("", said.casefold())
                    other, where, at = seen.setdefault(key, (part, path, line))
                    if other != part:
                        fault = f"its {field} is in {other}/{where.name}:{at}, too: {said}"
                        raise BrokenData(path, line, fault, "remove it from one of the parts")


def digest_of(*files: Iterable[Record]) -> str:
    """SHA-256 over the canonical form of labelled data."""
    return digest([[case.model_dump(mode="json") for case in cases] for cases in files])
