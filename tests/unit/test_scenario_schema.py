"""The published schema says the same as the model, and is current."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lab.contamination.scenarios.schema import SCHEMA_FILE, publish, scenario_schema, schema_text

ROOT = Path(__file__).parents[2] / "scenarios"
FILES = sorted(ROOT.glob("F*/*.yaml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads((ROOT / SCHEMA_FILE).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def data(name: str) -> Any:
    return yaml.safe_load((ROOT / name[:2] / f"{name}.yaml").read_text(encoding="utf-8"))


def test_the_published_file_is_current() -> None:
    mend = "run: python -c 'from lab.contamination.scenarios.schema import *; publish(Path(\"scenarios\"))'"
    assert (ROOT / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text(), mend


def test_publish_writes_what_it_says(tmp_path: Path) -> None:
    path = publish(tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == scenario_schema()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_scenario_validates(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_every_field_is_described() -> None:
    schema = scenario_schema()
    assert schema["$id"] and schema["title"] and schema["description"]
    for part in (schema, *schema["$defs"].values()):
        assert part["description"] and "Attributes:" not in part["description"]
        for name, field in part.get("properties", {}).items():
            assert field.get("description"), name


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("F1-001", {"canary": None}),
        ("F1-001", {"schema": 2}),
        ("F1-001", {"version": "1"}),
        ("F1-001", {"unknown": 1}),
        ("F1-001", {"language": "pt"}),
        ("F1-001", {"canary": "Heron21"}),
        ("F1-001", {"twin": ...}),
        ("F1-001", {"twin": None}),
        ("F1-001", {"id": "F5-001"}),
        ("F1-001", {"transcript": []}),
        ("F5-006", {"expect": ...}),
        ("F5-006", {"expect": {"scanner": "pass"}}),
        ("F5-001", {"family": "F1", "id": "F1-099"}),
    ],
)
def test_a_broken_scenario_does_not_validate(
    name: str, change: dict[str, Any], validator: jsonschema.Draft202012Validator
) -> None:
    broken = copy.deepcopy(data(name))
    validator.validate(broken)
    for key, value in change.items():
        if value is ...:
            del broken[key]
        else:
            broken[key] = value
    assert not validator.is_valid(broken)
