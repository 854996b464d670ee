"""The commands: all systems against one yardstick, a file of one's own beside them, and what is not here is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.errors import EnvironmentUnusable, InputError
from lab.records import file_digest

GUIDE = Path(__file__).parents[2] / "docs" / "systems.md"


def call(place: Path, *arguments: str) -> Any:
    places = ["--snapshots", str(place / "snapshots"), "--reports", str(place / "reports")]
    # Without packages and without a build, as on a new machine.
    return CliRunner().invoke(
        app, ["bench", *arguments, *places], env={"LAB_CACHE": str(place / "cache"), "LAB_LOCOMO": ""}
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("systems")
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (made / "my_system.py").write_text(code)
    return made


@pytest.fixture(scope="module")
def run(place: Path) -> tuple[dict[str, Any], dict[str, Any], Path]:
    system = str(place / "my_system.py")
    done = call(place, "systems", "--arms", "bm25-porter,memorine", "--system", system, "--json")
    assert done.exit_code == 0, done.output
    (folder,) = (place / "reports").iterdir()
    return json.loads((folder / "results.json").read_text()), json.loads((folder / "lock.json").read_text()), folder


def test_every_system_is_paired_with_the_yardstick(run: tuple[dict[str, Any], dict[str, Any], Path]) -> None:
    results, lock, _ = run
    assert [one["info"]["name"] for one in results["sets"]] == ["personal", "holdout"]
    assert [arm["arm"] for arm in results["sets"][0]["arms"]] == ["bm25", "bm25-porter", "shared-words"]
    assert lock["pairs"] == [["bm25-porter", "bm25"], ["shared-words", "bm25"]]
    assert all(arm["scores"][0]["mrr10"]["value"] > 0 for one in results["sets"] for arm in one["arms"])


def test_what_cannot_run_stands_in_the_report_with_its_mend(run: tuple[dict[str, Any], dict[str, Any], Path]) -> None:
    results, _, folder = run
    locomo, memorine = results["absent"]
    assert locomo.startswith("locomo: ") and locomo.endswith("--locomo FILE")
    assert memorine == "memorine: the packages of memorine are not here — lab bench prepare memorine"
    assert "lab bench prepare memorine" in (folder / "report.html").read_text()


def test_the_files_digest_is_in_the_lock_and_holds_a_resumption(
    place: Path, run: tuple[dict[str, Any], dict[str, Any], Path]
) -> None:
    _, lock, folder = run
    system = place / "my_system.py"
    (mine,) = [arm for arm in lock["arms"] if arm["name"] == "shared-words"]
    assert mine["settings"]["file_sha256"] == file_digest(system)
    asked = ("systems", "--arms", "bm25-porter,memorine", "--system", str(system), "--resume", str(folder))
    assert call(place, *asked).exit_code == 0
    before = system.read_text()
    system.write_text(before + "# changed\n")
    try:
        refused = call(place, *asked).exception
        assert isinstance(refused, InputError) and "other inputs: arms" in refused.message
    finally:
        system.write_text(before)


def test_an_arm_asked_for_by_name_is_an_error_where_it_cannot_run(place: Path) -> None:
    told = call(place, "--arms", "bm25,memorine").exception
    assert isinstance(told, EnvironmentUnusable) and told.mend == "lab bench prepare memorine"


def test_no_such_peer() -> None:
    told = CliRunner().invoke(app, ["bench", "prepare", "nobody"]).exception
    assert isinstance(told, InputError) and "memorine" in told.mend
