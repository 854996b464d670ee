"""The published schemas of a set's lines say the same as the loader, and are current."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab.retrieval.data.load import check_set
from lab.retrieval.data.schema import publish, schema_texts

FOLDER = Path(__file__).parents[2] / "scenarios" / "retrieval" / "schema"
GOOD = Path(__file__).parents[1] / "fixtures" / "sets" / "good"


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def lines(name: str) -> list[Any]:
    return [json.loads(text) for text in (GOOD / name).read_text(encoding="utf-8").splitlines()]


def test_the_published_files_are_current() -> None:
    mend = "run: python -c 'from lab.retrieval.data.schema import *; publish(Path(\"scenarios/retrieval\"))'"
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == schema_texts(), mend


def test_publish_writes_what_it_says(tmp_path: Path) -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in publish(tmp_path)} == schema_texts()


@pytest.mark.parametrize("name", ["fact", "topic"])
def test_every_field_is_described(name: str) -> None:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert all(field["description"] for field in schema["properties"].values())


@pytest.mark.parametrize("name", ["fact", "topic"])
def test_good_lines_fit(name: str) -> None:
    for value in lines(f"{name}s.jsonl"):
        validator(name).validate(value)


@pytest.mark.parametrize(
    "change",
    (
        *({"text": None}, {"text": ""}, {"id": 3}, {"author": "me"}, {"trust": "0.5"}, {"trust": 2}, {"colour": "red"}),
        *({"store": "../x"}, {"entities": "Ana"}, {"relations": [{"kind": "x"}]}),
    ),
    ids=str,
)
def test_schema_and_loader_refuse_the_same(change: dict[str, Any], tmp_path: Path) -> None:
    first, *others = lines("facts.jsonl")
    assert not validator("fact").is_valid(first | change)
    for path in GOOD.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert check_set(tmp_path) == []
    text = "".join(json.dumps(value) + "\n" for value in (first | change, *others))
    (tmp_path / "facts.jsonl").write_text(text)
    assert check_set(tmp_path)[0].line == 1
