"""JSON Schemas of records as they are published: with the words of the docstrings, so that these stand in one place."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Puts the words of a model's docstring at its schema and at each of its fields.

    Words for a field that it inherits are taken from the docstring of the parent.

    Raises:
        KeyError: A field has no words.
    """
    doc = inspect.getdoc(model) or ""
    words: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        words |= _attributes(inspect.getdoc(parent) or "")
    schema["description"] = summary(doc)
    for name, field in model.model_fields.items():
        schema["properties"][field.alias or name]["description"] = words[name]


def published(made: Mapping[str, Any], name: str, version: int, title: str) -> dict[str, Any]:
    """A schema as it is published: under its own id and title, in draft 2020-12.

    Args:
        made: What pydantic made of the model.
        name: Short name, for the id.
        version: Version of the form.
        title: What it is of.
    """
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:agent-memory-lab:{name}:{version}",
        "title": f"Agent Memory Lab {title}",
    }
    return {**head, **{key: value for key, value in made.items() if key != "title"}}


def schema_file_text(schema: Mapping[str, Any]) -> str:
    """A schema as it is written to disk."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def summary(doc: str) -> str:
    """The first paragraph of a docstring as one line."""
    return " ".join(doc.split("\n\n", 1)[0].split()).replace("``", "`")


def _attributes(doc: str) -> dict[str, str]:
    """The ``Attributes`` section of a Google docstring."""
    _, _, section = doc.partition("Attributes:\n")
    words: dict[str, str] = {}
    for entry in re.split(r"\n(?= {4}\S)", section.rstrip()):
        name, _, text = entry.strip().partition(":")
        words[name] = " ".join(text.split()).replace("``", "`")
    return words
