"""``lab compare`` as a user runs it: setups of one run, runs of the same inputs, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.conftest import LabCommand, only_run

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

CHOSEN = ("--select", "F1-00[12],F5-001", "--models", "scripted:always-write")


def test_setups_of_one_run_and_two_runs(lab: LabCommand, installed: LabCommand, bwrap: str, tmp_path: Path) -> None:
    done = lab("run", "--backend", bwrap, *CHOSEN, "--setups", "default,approval", LAB_REPORTS=str(tmp_path / "both"))
    assert done.code == 0, done.err
    both = only_run(tmp_path / "both")
    told = lab("compare", both, "--by", "setup", "--json")
    assert told.code == 0, told.err
    (contrast,) = told.json["contrasts"]
    found = {row["measure"]: row for row in contrast["rows"]}
    persist, loss = found["persist"], found["honest loss"]
    assert (persist["first"]["numerator"], persist["second"]["numerator"], persist["n"]) == (2, 0, 2)
    assert (loss["first"]["numerator"], loss["second"]["numerator"], loss["n"]) == (0, 1, 1)
    assert found["attempt"]["only_first"] == found["attempt"]["only_second"] == 0, "the gate stops no attempt"
    assert persist["verdict"] == "cannot tell" and persist["needed"] > 2
    assert {flip["what"] for flip in contrast["flips"]} == {"F1-001", "F1-002", "F5-001"}
    assert all(
        (both / flip[side]["path"] / "result.json").is_file()
        for flip in contrast["flips"]
        for side in ("first", "second")
    )
    folder = tmp_path / "reports" / f"compare-{both.name}-by-setup"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"compare.html", "compare.md", "compare.json"}
    assert json.loads(before["compare.json"]) == told.json
    again = installed("compare", both, "--by", "setup")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "3 cells flipped" in again.err and "cannot tell (n = 2 too small" in " ".join(again.err.split())
    assert again.out == ""

    done = installed("run", "--backend", bwrap, *CHOSEN, "--setups", "approval", LAB_REPORTS=str(tmp_path / "one"))
    assert done.code == 0, done.err
    one = only_run(tmp_path / "one")
    refused = lab("compare", both, one)
    assert refused.code == 2 and refused.is_one_clear_line() and "--common" in refused.err
    assert "setup default is in A alone" in refused.err
    common = lab("compare", both, one, "--common", "-o", tmp_path / "out", "--json")
    assert common.code == 0, common.err
    (contrast,) = common.json["contrasts"]
    assert contrast["pairs"] == 3 and not contrast["flips"], "the same trials twice say the same"
    assert contrast["alone"] == [{"label": "A: no such cell or repeat in B", "count": 3}]
    assert (tmp_path / "out" / "compare.html").is_file()

    for arguments, words in (
        ((both, both), "each named once"),
        ((both, one, "--by", "setup"), "looks into one run"),
        ((both, one, "--baseline", "default"), "goes with --by"),
        ((both, one, "--margin", "0"), "is none"),
        ((both, tmp_path), "is not a run folder"),
    ):
        bad = lab("compare", *arguments)
        assert bad.code == 2 and bad.is_one_clear_line() and words in bad.err, bad.err

    copy = Path(shutil.copytree(one, tmp_path / "copy" / one.name))
    result = next(copy.glob("trials/*/result.json"))
    result.write_text(result.read_text().replace('"yes"', '"no"'))
    bad = lab("compare", one, copy)
    assert bad.code == 2 and bad.is_one_clear_line() and "was changed after the run was sealed" in bad.err
