"""The published JSON Schemas of a set's lines, made from the records and their docstrings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.records import Record
from lab.records.described import describe, published, schema_file_text
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
    return published(made, f"retrieval-{name}", 1, f"retrieval set, {name}")


def schema_texts() -> dict[str, str]:
    """The schemas as they are written to disk, by file name."""
    return {f"{name}.schema.json": schema_file_text(line_schema(name)) for name in _LINES}


def publish(root: Path) -> list[Path]:
    """Writes the schemas below the folder of the sets and returns their paths."""
    folder = root / SCHEMAS
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in schema_texts()]
