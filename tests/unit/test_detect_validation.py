"""The labelled set and what is made of it: the real detector passes, a blind one and an over-eager one do not."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.contamination.observe import detect
from lab.contamination.observe.detect import Form, Match
from lab.contamination.observe.validation import LABELLED, load_labelled, validate
from lab.contamination.scenarios.checks import foreign_hosts
from lab.errors import InputError

HEAD = "schema: 1\nminimum_sensitivity: 90\nminimum_specificity: 90\nrows:\n"
YES = "  - {id: a, canary: otter40, text: to otter40, holds: true, form: literal}\n"
NO = "  - {id: b, canary: otter40, text: to otter41, holds: false, form: literal}\n"

runner = CliRunner()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "labelled.yaml"
    path.write_text(HEAD + YES + NO, encoding="utf-8")
    return path


def test_the_set_is_large_and_stays_at_home() -> None:
    rows = load_labelled(LABELLED).rows
    assert sum(row.holds for row in rows) >= 160 and sum(not row.holds for row in rows) >= 160
    for form in Form:
        assert sum(row.holds and row.form is form for row in rows) >= 8, form
        assert sum(not row.holds and row.form is form for row in rows) >= 8, form
    # Of percent and rot13 the host can be read as one, so they are judged by what they say.
    rotated = codecs.encode("example.test", "rot13")
    texts = {row.id: unquote(row.text).replace(rotated, "example.test") for row in rows}
    assert [(name, found) for name, text in texts.items() if (found := foreign_hosts(text))] == []


def test_the_labels_agree_with_the_texts_where_no_detector_is_needed() -> None:
    for row in load_labelled(LABELLED).rows:
        bare = re.search(rf"(?<![^\W_]){row.canary}(?!\d)", row.text) is not None
        assert bare == (row.holds and row.form is Form.LITERAL), row.id


def test_the_real_detector_passes() -> None:
    result = validate()
    assert result.passed
    assert all(name.startswith("other-") for name in result.misses)
    assert set(result.false_alarms) <= {"plain-rot13-twin.terra40"}
    assert result.named_otherwise == ()
    assert sum(f.sensitivity.denominator for f in result.forms) == result.sensitivity.denominator
    assert result.sensitivity.method == result.specificity.method == "wilson"


def test_a_blind_detector_fails_on_sensitivity() -> None:
    result = validate(find=lambda canary, text: None)
    assert not result.passed
    assert result.sensitivity.numerator == 0 and result.specificity.value == 1
    assert len(result.misses) == result.sensitivity.denominator


def test_an_over_eager_detector_fails_on_specificity() -> None:
    result = validate(find=lambda canary, text: Match(0, 1, Form.LITERAL))
    assert not result.passed
    assert result.sensitivity.value == 1 and result.specificity.numerator == 0
    assert len(result.false_alarms) == result.specificity.denominator


@pytest.mark.parametrize("form", [form for form in Form if form is not Form.LITERAL])
def test_a_detector_that_lost_a_form_is_told_by_it(form: Form) -> None:
    def blinded(canary: str, text: str) -> Match | None:
        match = detect.find(canary, text)
        return None if match and match.form is form else match

    rates = {found.form: found for found in validate(find=blinded).forms}
    assert rates[form].sensitivity.numerator == 0
    assert all(rates[other].sensitivity.value == 1 for other in Form if other is not form)


def test_the_command_prints_the_table_and_the_document() -> None:
    table = runner.invoke(app, ["detect"])
    assert table.exit_code == 0 and "passed" in table.stdout and "base64" in table.stdout
    document = runner.invoke(app, ["detect", "--json"])
    told = json.loads(document.stdout)
    assert document.exit_code == 0 and told["passed"] is True
    assert told["sensitivity"]["denominator"] >= 160 and told["sensitivity"]["low"] > 0.9


def test_the_command_fails_with_a_blinded_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "find", lambda canary, text: None)
    result = runner.invoke(app, ["detect"])
    assert result.exit_code == 1 and "NOT passed" in result.stdout and "missed: " in result.stdout


def test_the_command_fails_with_an_over_eager_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "find", lambda canary, text: Match(0, 1, Form.LITERAL))
    result = runner.invoke(app, ["detect"])
    assert result.exit_code == 1 and "NOT passed" in result.stdout and "false alarm: " in result.stdout


def test_a_bound_is_reached_exactly_or_not(small: Path) -> None:
    row = "  - {id: c, canary: otter40, text: 'o.t.t.e.r.4.0', holds: true, form: other}\n"
    for bound, code in ((50, 0), (51, 1)):
        small.write_text(HEAD.replace("sensitivity: 90", f"sensitivity: {bound}") + YES + NO + row, encoding="utf-8")
        assert runner.invoke(app, ["detect", "--labelled", str(small)]).exit_code == code


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("form: literal", "form: morse", 5, "rows.0.form"),
        ("holds: true", "holds: maybe", 5, "rows.0.holds"),
        ("canary: otter40", "canary: Otter", 5, "rows.0.canary"),
        ("id: b", "id: a", 1, "ids are used twice: a"),
        (NO, "", 1, "are both needed"),
        ("minimum_specificity: 90", "minimum_specificity: 101", 3, "minimum_specificity"),
        ("schema: 1", "schema: 2", 1, "schema"),
        ("rows:", "rwos:", 4, "rows|rwos"),
        (HEAD + YES + NO, "- a", 1, "no mapping"),
    ],
)
def test_a_bad_set_is_one_clear_line(small: Path, old: str, new: str, line: int, message: str) -> None:
    small.write_text(small.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        load_labelled(small)
    assert f"{small}:" in caught.value.message and "\n" not in str(caught.value)
    assert f":{line}: " in caught.value.message or old == "rows:"


def test_a_file_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("first\nsecond [red]x[/red] b3R0ZXI0MA== \x1b[31mend\n")
    result = runner.invoke(app, ["detect", "--canary", "otter40", str(path)])
    assert result.exit_code == 0
    assert "line 2, characters 26 to 36, base64" in result.stdout
    assert "\x1b" not in result.stdout and "[red]" in result.stdout
    document = json.loads(runner.invoke(app, ["detect", "--json", "--canary", "otter40", str(path)]).stdout)
    assert [(found["place"], found["form"]) for found in document] == [("line 2", "base64")]


def test_a_file_without_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("otter41")
    result = runner.invoke(app, ["detect", "--canary", "otter40", str(path)])
    assert result.exit_code == 1 and "otter40 was not found" in result.stdout


@pytest.mark.parametrize(
    "arguments", [["--canary", "otter40"], ["x"], ["--canary", "a b", "x"], ["--canary", "otter40", "x"]]
)
def test_wrong_use_is_one_line(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["detect", *arguments])
    assert isinstance(result.exception, InputError) and result.exception.mend
