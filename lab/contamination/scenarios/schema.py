"""The published JSON Schema of a scenario file, made from the model and its docstrings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lab.contamination.scenarios.consistency import CARRIERS, ORIGINS
from lab.contamination.scenarios.parts import (
    Board,
    Card,
    Channel,
    Child,
    Content,
    Exchange,
    Expectation,
    Skill,
    Step,
    Turn,
    Twin,
    WorkFile,
    World,
)
from lab.contamination.scenarios.scenario import SCENARIO_SCHEMA, Scenario
from lab.contamination.scenarios.words import Family
from lab.records.described import describe, published, schema_file_text, summary

SCHEMA_FILE = Path("schema", "scenario.schema.json")
"""Where the schema stands below the folder of the scenarios."""

_MODELS: tuple[type[BaseModel], ...] = (
    *(Board, Card, Channel, Child, Content, Exchange, Expectation),
    *(Skill, Step, Turn, Twin, WorkFile, World),
)


def scenario_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of a scenario file.

    It states what one file can be told without looking into its texts; where canaries must stand is for ``lint``.
    """
    made = Scenario.model_json_schema(by_alias=True, mode="validation")
    definitions = made["$defs"]
    for model in _MODELS:
        describe(definitions[model.__name__], model)
    describe(made, Scenario)
    for definition in definitions.values():
        definition["description"] = summary(definition.get("description", ""))
    made["properties"]["schema"]["const"] = SCENARIO_SCHEMA
    return {**published(made, "scenario", SCENARIO_SCHEMA, "scenario"), "allOf": _conditions()}


def schema_text() -> str:
    """The schema as it is written to disk."""
    return schema_file_text(scenario_schema())


def publish(root: Path) -> Path:
    """Writes the schema below the folder of the scenarios and returns its path."""
    path = root / SCHEMA_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(schema_text(), encoding="utf-8")
    return path


def _conditions() -> list[dict[str, Any]]:
    """The rules between fields that a schema can state."""
    rules: list[dict[str, Any]] = []
    for family in Family:
        then: dict[str, Any] = {
            "properties": {
                "id": {"pattern": f"^{family}-"},
                "content": {"properties": {"origin": {"enum": sorted(ORIGINS[family])}}},
                "channel": {"properties": {"carrier": {"enum": sorted(CARRIERS[family])}}},
            }
        }
        if family is not Family.F5:
            then["required"] = ["twin"]
            then["properties"]["twin"] = {"type": "object"}
        rules.append({"if": {"properties": {"family": {"const": family}}, "required": ["family"]}, "then": then})
    hard = {"properties": {"hard": {"const": True}}, "required": ["hard"]}
    refused = {"required": ["scanner"], "properties": {"scanner": {"const": "refuse"}}}
    return [*rules, {"if": hard, "then": {"required": ["expect"], "properties": {"expect": refused}}}]
