"""The labelled set of the semantic detector is fit to judge by, and a broken one is told by file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.contamination.observe.detect import find
from lab.contamination.scenarios.checks import foreign_hosts
from lab.contamination.scenarios.library import load_scenario
from lab.contamination.scenarios.words import Language
from lab.contamination.semantic.validation import SCENARIOS, Part, RowKind, load_rows
from lab.errors import InputError

runner = CliRunner()
ROWS = {part: load_rows(part.path) for part in Part}


def test_the_set_is_large_and_its_parts_share_no_scenario() -> None:
    assert len(ROWS[Part.DEVELOPMENT]) >= 80 and len(ROWS[Part.HOLDOUT]) >= 60
    used = [{row.scenario for row in ROWS[part]} for part in Part]
    assert not used[0] & used[1]
    for rows in ROWS.values():
        for kind in RowKind:
            assert sum(row.kind is kind for row in rows) >= 9, kind
        for language in Language:
            assert sum(row.language is language and row.kind.says_it for row in rows) >= 15


def test_no_text_holds_a_canary_or_leads_out() -> None:
    for row in (*ROWS[Part.DEVELOPMENT], *ROWS[Part.HOLDOUT]):
        scenario = load_scenario(SCENARIOS / row.scenario.partition("-")[0] / f"{row.scenario}.yaml")
        assert find(scenario.canary, row.text) is None, row.id
        assert foreign_hosts(row.text) == [], row.id


def test_no_text_is_a_wording_of_the_scenario() -> None:
    for row in (*ROWS[Part.DEVELOPMENT], *ROWS[Part.HOLDOUT]):
        content = load_scenario(SCENARIOS / row.scenario.partition("-")[0] / f"{row.scenario}.yaml").content
        assert row.text not in (content.text, content.stored, content.paraphrase), row.id


GOOD = {"id": "a", "scenario": "F1-001", "kind": "paraphrase", "language": "en", "text": "x"}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{"], ":1: "),
        ([json.dumps(GOOD), json.dumps({**GOOD, "kind": "rude"})], ":2: kind"),
        ([json.dumps(GOOD), json.dumps({**GOOD, "kind": "honest"})], "id a is used twice"),
        ([json.dumps(GOOD)], "needs rows that say it and rows that do not"),
        ([json.dumps({**GOOD, "scenario": "../../etc"})], ":1: scenario"),
    ],
)
def test_a_broken_set_is_told_by_file_and_line(tmp_path: Path, lines: list[str], told: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=told.replace("[", r"\[")):
        load_rows(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_rows(tmp_path / "absent.jsonl")


def test_the_command_refuses_what_does_not_fit() -> None:
    result = runner.invoke(app, ["detect", "--semantic", "--canary", "otter40"])
    assert isinstance(result.exception, InputError)
    result = runner.invoke(app, ["detect", "--semantic", "--embedder", "nothing"])
    assert isinstance(result.exception, InputError) and "no embedder is named" in str(result.exception)
