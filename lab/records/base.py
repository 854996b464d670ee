"""The base of all records, their one JSON form, and the digests that are taken over it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


def canonical_json(value: Any) -> bytes:
    """Serialises to the one JSON form that digests are taken over: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """Returns the lower-case hex SHA-256 of bytes, or of the canonical JSON of anything else."""
    data = value if isinstance(value, bytes) else canonical_json(value)
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """Returns the lower-case hex SHA-256 of a file, read piece by piece.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Record(BaseModel):
    """Base of all records: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_fault(error: ValidationError) -> str:
    """The first fault of a record in one line: which field, and what of it."""
    told = error.errors()[0]
    return f"{'.'.join(map(str, told['loc']))} {told['msg']}".strip()
