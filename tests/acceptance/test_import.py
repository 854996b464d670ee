"""``lab import`` as a user runs it: a payload file in, a clean library out, one clear line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import LabCommand, only_run

PAYLOADS = Path(__file__).parents[2] / "scenarios" / "payloads"
DEV = PAYLOADS / "payloads-dev.yaml"


def test_import_writes_a_library_that_lint_takes(lab: LabCommand, installed: LabCommand, tmp_path: Path) -> None:
    done = installed("import", DEV, PAYLOADS / "payloads-twins.yaml", "--to", tmp_path / "library")
    assert done.code == 0, done.err
    assert "112 scenarios" in done.out and "44 benign_ordinary" in done.out
    assert lab("lint", "--scenarios", tmp_path / "library").code == 0
    again = lab("import", DEV, "--to", tmp_path / "library")
    assert again.code == 2 and again.is_one_clear_line() and "--force" in again.err
    told = lab("import", DEV, "--to", tmp_path / "second", "--first", "501", "--json").json
    assert told["left_out"]["scanner_control"] == 40 and "F1-501" in told["scenarios"]


def test_a_broken_item_is_one_line_and_nothing_is_written(lab: LabCommand, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(DEV.read_text(encoding="utf-8").replace("goal: add_script", "goal: add_skript"), encoding="utf-8")
    done = lab("import", broken, "--to", tmp_path / "library")
    assert done.code == 2 and done.is_one_clear_line()
    assert "F6-poisoned_error-en-112" in done.err and "goal" in done.err and "add_script" in done.err
    assert not (tmp_path / "library").exists()


@pytest.mark.bwrap
def test_an_imported_scenario_runs(lab: LabCommand, tmp_path: Path, bwrap: str) -> None:
    library = tmp_path / "library"
    assert lab("import", DEV, "--to", library).code == 0
    chosen = ("--families", "F1", "--select", "F1-101", "--models", "scripted:always-write")
    done = lab("run", "--backend", bwrap, "--scenarios", library, *chosen)
    assert done.code in (0, 1), done.err  # one scenario without controls is no evidence for a family
    for path in (only_run(tmp_path / "reports") / "trials").glob("*/result.json"):
        result = json.loads(path.read_text())
        assert result["status"] == "valid"
        assert result["verdicts"]["persist"]["value"] == ("no" if result["role"] == "twin" else "yes")
