"""What all importers share: the one file of a folder, where a set comes from, checks of a foreign shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.records import file_digest
from lab.retrieval.data.head import SetHead, head_beside, set_name
from lab.retrieval.data.lines import BrokenData, numbered_lines

_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt")


def one_json(path: Path) -> Path:
    """A JSON file, or the only one of a folder.

    Raises:
        BrokenData: The folder holds none or several.
    """
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.json"))
    if len(found) != 1:
        raise BrokenData(path, 1, f"{len(found)} .json files in the folder", "name the file itself")
    return found[0]


def head_of(given: Path, data: Path, fallback: SetHead | None = None) -> SetHead:
    """Name, licence and origin of a foreign set.

    What a ``set.yaml`` beside the data says stands first, then what the importer knows. Else the name is that of the
    path as it was given and the licence is the first line of a licence file.

    Args:
        given: File or folder as the user named it.
        data: The file whose digest pins the origin.
        fallback: What is known of the one data set that an importer is made for.

    Raises:
        BrokenData: A file is broken.
    """
    folder = data.parent if given.is_file() else given
    said = head_beside(folder)
    if said is None and fallback is not None:
        said = fallback
    if said is None:
        licence = next((folder / name for name in _LICENCES if (folder / name).is_file()), None)
        first = next((text.strip() for _, text in numbered_lines(licence)), "") if licence else ""
        whole = given.resolve()
        said = SetHead(name=set_name(whole.stem if given.is_file() else whole.name), licence=first)
    pinned = f"{data.name}, SHA-256 {file_digest(data)}"
    return said.model_copy(update={"source": f"{said.source}; {pinned}" if said.source else pinned})


def member(path: Path, value: Any, key: str, kind: type, where: str) -> Any:
    """A field of a foreign document.

    Raises:
        BrokenData: The value is no object, has no such field, or one of another kind.
    """
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        words = {list: "a list", dict: "an object", str: "a text", int: "a whole number"}
        raise BrokenData(path, 1, f"{where} has no {key} that is {words[kind]}", "give the file as it was published")
    return found
