"""Ollama's published description of its HTTP API, as a check of what goes over the wire in tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

FILE = Path(__file__).parent / "fixtures" / "schemas" / "ollama-openapi.yaml"


@cache
def _published() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    _close(found["components"]["schemas"])
    return found


def _close(schema: Any) -> None:
    """Makes a field that the description does not know a fault: it says of hardly any that it must be there."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
            schema["additionalProperties"] = False
        for part in schema.values():
            _close(part)
    elif isinstance(schema, list):
        for part in schema:
            _close(part)


def check(name: str, value: Any, *needed: str) -> None:
    """Checks a value against a published schema by its name.

    Args:
        name: ``ChatResponse``, …
        value: JSON.
        needed: Fields that must be there beyond what the description demands.

    Raises:
        jsonschema.ValidationError: It does not fit.
    """
    published = _published()
    assert name in published["components"]["schemas"], name
    schema = {
        "allOf": [{"$ref": f"#/components/schemas/{name}"}, {"required": list(needed)}],
        "components": published["components"],
    }
    jsonschema.Draft202012Validator(schema).validate(value)


def schema_of(path: str, part: str) -> str:
    """Name of the schema of a route's ``request``, ``response`` or ``event``."""
    name: str = _published()["paths"][path][part]
    return name
