"""The published JSON Schemas of a set's lines, made from the records and their docstrings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.records import Record
from lab.records.described import describe
from lab.retrieval.data.load import SCHEMAS, FactLine
from lab.retrieval.testset import Relation, Topic

_LINES: dict[str, type[Record]] = {"fact": FactLine, "topic": Topic}


def line_schema(name: str) -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of a line of ``facts.jsonl`` (``fact``), ``topics.jsonl`` (``topic``)."""
    model = _LINES[name]
    made = model.model_json_schema(mode="validation")
    describe(made, model)
    if "Relation" in made.get("$defs", {}):
        describe(made["$defs"]["Relation"], Relation)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:agent-memory-lab:retrieval-{name}:1",
        "title": f"Agent Memory Lab retrieval set, {name}",
    }
    return head | {key: value for key, value in made.items() if key != "title"}


def schema_texts() -> dict[str, str]:
    """The schemas as they are written to disk, by file name."""
    return {
        f"{name}.schema.json": json.dumps(line_schema(name), indent=2, ensure_ascii=False) + "\n" for name in _LINES
    }


def publish(root: Path) -> list[Path]:
    """Writes the schemas below the folder of the sets and returns their paths."""
    folder = root / SCHEMAS
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in schema_texts()]
