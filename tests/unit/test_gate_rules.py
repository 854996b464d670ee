"""The rules of a gate as they are read: every fault is one line with its place and the nearest word."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from lab.errors import InputError
from lab.gate.read import read_gate
from lab.gate.schema import SCHEMA_FILE, publish, schema_text

DOCS = Path(__file__).parents[2] / "docs"
RATE = '[[gate.rule]]\nrate = "persist/valid"\nfamily = "F1"\nbound = "high"\nat_most = 0.2\n'
MEASURE = '[[gate.rule]]\nmeasure = "mrr10"\nset = "holdout"\nbound = "low"\nat_least = 0.5\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text(text)
    return path


def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads((DOCS / SCHEMA_FILE).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_rules_keep_their_order_their_lines_and_what_they_say(tmp_path: Path) -> None:
    text = f'[run]\nfamilies = "F1"\n\n[gate]\nbaseline = "old/run"\n\n{MEASURE}\n# and\n{RATE}'
    file = read_gate(written(tmp_path, text))
    assert file.lines == (7, 14)
    assert [rule.text() for rule in file.gate.rule] == ["mrr10, low bound ≥ 0.5", "persist/valid, high bound ≤ 0.2"]
    assert file.gate.rule[1].selectors() == {"family": "F1"}
    assert file.baseline == tmp_path / "old" / "run"
    assert file.gate.error_budget == 0.1 and file.gate.controls_must_run


FAULTS = [
    (RATE.replace("family", "famly"), 3, "unknown key 'famly'", "did you mean 'family'"),
    (RATE.replace('"persist/valid"', '"persist"'), 2, "'persist' is no rate", "did you mean 'persist/valid'"),
    (RATE.replace('"high"', '"upper"'), 4, "'upper' is no bound", "low; point; high; worst"),
    (RATE.replace('bound = "high"\n', ""), 1, "'bound' is missing", "docs/ci.md"),
    (RATE.replace("0.2", "20"), 5, "at_most", "docs/ci.md"),
    (RATE.replace("0.2", '"0.2"'), 5, "at_most", "docs/ci.md"),
    (RATE.replace("0.2", "nan"), 5, "at_most", "docs/ci.md"),
    (RATE.replace("0.2", "true"), 5, "at_most", "docs/ci.md"),
    (RATE.replace("0.2", "-0.2"), 1, "persist/valid is never below 0", "docs/ci.md"),
    (RATE + "at_least = 0.1\n", 1, "exactly one of at_most, at_least and margin", "docs/ci.md"),
    (RATE.replace("at_most = 0.2\n", ""), 1, "exactly one of", "docs/ci.md"),
    (RATE.replace("at_most", "margin").replace("high", "worst"), 1, "a difference has no worst case", "docs/ci.md"),
    (RATE + "min_n = 0\n", 6, "min_n", "docs/ci.md"),
    (RATE + 'set = "holdout"\n', 6, "unknown key 'set'", "family"),
    (RATE + 'measure = "mrr10"\n', 1, "a rule names one number", "docs/ci.md"),
    (MEASURE + 'family = "F1"\n', 6, "unknown key 'family'", "class"),
    (MEASURE.replace("low", "worst"), 4, "'worst' is no bound", "low; point; high"),
    (MEASURE.replace("mrr10", "mmr10"), 2, "'mmr10' is no measure", "did you mean 'mrr10'"),
    (MEASURE + 'against = "plain"\n', 1, "against is given exactly for mrr10 difference", "docs/ci.md"),
    (MEASURE.replace("mrr10", "mrr10 difference"), 1, "against is given exactly for", "docs/ci.md"),
    (MEASURE.replace("mrr10", "mrr10 difference") + 'against = "plain"\n', 1, "names both", "docs/ci.md"),
    ("[gate]\nerror_budgt = 0.1\n" + RATE, 2, "unknown key 'error_budgt'", "did you mean 'error_budget'"),
    ("[gate]\nerror_budget = 7\n" + RATE, 2, "error_budget", "docs/ci.md"),
    ('[gate]\ncontrols_must_run = "no"\n' + RATE, 2, "controls_must_run", "docs/ci.md"),
    ("[gate]\n", 1, "'rule' is missing", "docs/ci.md"),
]


@pytest.mark.parametrize(("text", "line", "fault", "mend"), FAULTS)
def test_a_fault_is_one_line_with_its_place_and_the_nearest_word(
    tmp_path: Path, text: str, line: int, fault: str, mend: str
) -> None:
    with pytest.raises(InputError) as refused:
        read_gate(written(tmp_path, "# a comment\n\n" + text))
    assert f"lab.toml:{line + 2}: " in refused.value.message
    assert fault in refused.value.message and mend in refused.value.mend
    assert "\n" not in str(refused.value)


def test_the_line_of_the_second_rule(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lab\.toml:9: rule 2: unknown key 'sett'"):
        read_gate(written(tmp_path, RATE + "\n" + MEASURE.replace("set =", "sett =")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gate", "is not TOML"),
        ("[run]\n", r"no table \[gate\]"),
        ("gate = 5\n", "lab.toml: "),
        ('gate = {rule = [{rate = "x"}]}\n', r"lab\.toml: rule 1: 'x' is no rate|rule 1: 'bound' is missing"),
        ("gate = {rule = [5]}\n", "a rule names one number"),
    ],
)
def test_other_forms_are_named_without_a_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_gate(written(tmp_path, text))
    with pytest.raises(InputError, match=r"nowhere\.toml is missing"):
        read_gate(tmp_path / "nowhere.toml")
    (tmp_path / "lab.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        read_gate(tmp_path / "lab.toml")


def test_the_published_schema_is_current(tmp_path: Path) -> None:
    mend = "run: python -c 'from lab.gate.schema import *; publish(Path(\"docs\"))'"
    assert (DOCS / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text(), mend
    assert publish(tmp_path).read_text(encoding="utf-8") == schema_text()


def test_the_schema_says_what_the_loader_says(tmp_path: Path) -> None:
    schema = validator()
    for good in (RATE, MEASURE, RATE + MEASURE, RATE.replace("at_most", "margin"), RATE + "min_n = 3\n"):
        read_gate(written(tmp_path, good))
        schema.validate(tomllib.loads(good))
    # What two keys say together is the loader's to tell; everything else the schema tells, too.
    together = ("never below 0", "no worst case", "against is given", "names both", "a rule names one number")
    for bad, _, fault, _ in FAULTS:
        if "nan" not in bad and not fault.startswith(together) and "worst case" not in fault and "never" not in fault:
            assert not schema.is_valid(tomllib.loads(bad)), bad


def test_every_key_is_described() -> None:
    schema = json.loads(schema_text())
    tables = [schema["properties"]["gate"], schema["$defs"]["RateRule"], schema["$defs"]["MeasureRule"]]
    assert all(field["description"] for table in tables for field in table["properties"].values())
