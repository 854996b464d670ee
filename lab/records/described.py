"""Puts the words of a record's docstring into its JSON Schema, so that they stand in one place only."""

from __future__ import annotations

import inspect
import re
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
