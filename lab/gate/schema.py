"""The published JSON Schema of the table ``[gate]``, made from the models and their docstrings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.gate.rules import Gate, MeasureRule, RateRule
from lab.records.described import describe, published, schema_file_text, summary

SCHEMA_FILE = Path("ci", "gate.schema.json")
"""Where the schema stands below the folder of the documentation."""

_THRESHOLDS = ("at_most", "at_least", "margin")


def gate_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of a file with a table ``[gate]``, other tables being free."""
    made = Gate.model_json_schema(by_alias=True, mode="validation")
    definitions = made.pop("$defs")
    for model in (RateRule, MeasureRule):
        described = definitions[model.__name__]
        describe(described, model)
        # An absent key is an absent word; TOML has no null.
        for field in described["properties"].values():
            if "anyOf" in field:
                field.update(field.pop("anyOf")[0])
                field.pop("default", None)
        described["oneOf"] = [{"required": [key]} for key in _THRESHOLDS]
    for definition in definitions.values():
        definition["description"] = summary(definition.get("description", ""))
    describe(made, Gate)
    made.pop("title")
    table = {"type": "object", "properties": {"gate": made}, "required": ["gate"], "$defs": definitions}
    return published(table, "gate", 1, "gate, in lab.toml")


def schema_text() -> str:
    """The schema as it is written to disk."""
    return schema_file_text(gate_schema())


def publish(root: Path) -> Path:
    """Writes the schema below the folder of the documentation and returns its path."""
    path = root / SCHEMA_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(schema_text(), encoding="utf-8")
    return path
