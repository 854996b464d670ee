"""The manifest of a snapshot: what it holds, where it comes from, how it is known again; and its JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from lab.errors import InputError
from lab.records import Record, digest, first_fault
from lab.records.described import published, schema_file_text
from lab.snapshots.identity import Content

MANIFEST = "manifest.json"
"""The file that makes a folder a snapshot."""

MANIFEST_FORMAT = 1
SCHEMA_FILE = Path("schema", "manifest.schema.json")
"""Where the schema stands below the folder of the snapshots."""

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Form of a snapshot's name, which is the name of its folder."""

Sha256 = Field(pattern=r"^[0-9a-f]{64}$")


class _Described(Record):
    """Fields are described once, at the field: for the reader of the code and in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class FrozenFile(_Described):
    """The database file of a snapshot, byte for byte."""

    bytes: int = Field(ge=0)
    """Its size."""
    sha256: str = Sha256
    """Its digest."""
    page_size: int
    """`PRAGMA page_size`, in bytes."""
    schema_version: int
    """`PRAGMA schema_version`: SQLite's own count of changes to the schema."""


class Source(_Described):
    """The database that was frozen."""

    file: str
    """Its file name, without its folders; hostile where it is shown."""
    journal_mode: str
    """`wal`, or `delete` for any rollback journal: only the former is kept in the file."""


class Tools(_Described):
    """What made the snapshot."""

    lab: str
    """Version of the lab."""
    sqlite: str
    """Version of the SQLite library."""
    python: str
    """Version of Python."""


class Manifest(_Described):
    """What `manifest.json` says of a snapshot: what it holds, where it comes from, how it is known again."""

    format: Literal[1] = 1
    """Version of this format."""
    name: str = Field(pattern=NAME_PATTERN)
    """Name given when it was frozen."""
    created: str
    """When, ISO 8601 in UTC; no part of the identity."""
    licence: str
    """Licence of the data, or `synthetic`, or `not stated`."""
    source: Source
    """Where the copy comes from."""
    file: FrozenFile
    """The copy, byte for byte."""
    content: Content
    """What it says, independent of pages."""
    content_sha256: str = Sha256
    """The identity: digest of the logical content."""
    tools: Tools
    """What made it."""
    seal: str = ""
    """Digest of all other fields: shows that the manifest was edited."""

    def sealed(self) -> Manifest:
        """The same with its seal."""
        return self.model_copy(update={"seal": self._own_digest()})

    def is_intact(self) -> bool:
        """Whether nothing in it was changed since it was sealed."""
        return self.seal == self._own_digest() and self.content_sha256 == self.content.digest()

    def _own_digest(self) -> str:
        return digest(self.model_dump(mode="json", exclude={"seal"}))


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a snapshot; whether it is intact is not looked at.

    Raises:
        InputError: There is none, or it is damaged.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} is no snapshot: {MANIFEST} is missing", "freeze one: lab snapshot freeze") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "give yourself the right to read it") from error
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {first_fault(error)}", "freeze the database again") from error


def manifest_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of a manifest."""
    made = Manifest.model_json_schema(mode="serialization")
    return published(made, "snapshot-manifest", MANIFEST_FORMAT, "snapshot manifest")


def schema_text() -> str:
    """The schema as it is written to disk."""
    return schema_file_text(manifest_schema())


def publish(root: Path) -> Path:
    """Writes the schema below the folder of the snapshots and returns its path."""
    path = root / SCHEMA_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(schema_text(), encoding="utf-8")
    return path
