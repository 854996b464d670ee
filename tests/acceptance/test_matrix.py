"""A matrix of setups, in shards and whole, by the installed command: the parts put together give the whole's report."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import LabCommand, only_run

GATED = """\
name: gated
description: Memory writes wait for approval.
overrides: {memory: {nudge_interval: 1, write_approval: true}}
expect: {memory_tool: true, memory_gate: true}
"""

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]


@pytest.fixture
def matrix(bwrap: str, tmp_path: Path) -> tuple[str, ...]:
    """An attack, its twin and a control, in two setups: six trials."""
    setup = tmp_path / "gated.yaml"
    setup.write_text(GATED)
    chosen = ("--select", "F1-001,F5-001", "--models", "scripted:always-write")
    return ("run", "--backend", bwrap, *chosen, "--setups", f"default,{setup}", "--seed", "5")


def same(report: Any) -> Any:
    """The report without its run's name and time, and without the quoted evidence of staged writes: the agent draws a
    random id and notes the time for each."""
    parts = {name: part for name, part in report.items() if name != "run"}
    return parts | {"findings": [{k: v for k, v in one.items() if k != "evidence"} for one in parts["findings"]]}


def test_shards_of_two_setups_merge_to_the_report_of_the_whole(
    lab: LabCommand, installed: LabCommand, matrix: tuple[str, ...], tmp_path: Path
) -> None:
    planned = lab(*matrix, "--plan", "--json")
    assert planned.code == 0, planned.err
    plan = planned.json
    assert plan["total"] == len(plan["trials"]) == 6 == sum(row["trials"] for row in plan["counts"])
    assert {row["setup"] for row in plan["counts"]} == {"default", "gated"}
    assert plan["estimate"]["seconds"] > 0 and "own measurement" in plan["estimate"]["pace"]["source"]
    assert "F1 twin" in planned.err and "about 0:" in planned.err

    whole = installed(*matrix, "--json", LAB_REPORTS=str(tmp_path / "whole"))
    assert whole.code == 0, whole.err
    folders = []
    for shard in ("1/2", "2/2"):
        part = lab(*matrix, "--shard", shard, "--json", LAB_REPORTS=str(tmp_path / shard[0]))
        assert part.code == 0, part.err
        folders.append(only_run(tmp_path / shard[0]))
        assert 0 < part.json["accounting"]["valid"] < 6

    alone = lab("merge", folders[0])
    assert alone.code == 2 and alone.is_one_clear_line() and "missing: shard 2/2" in alone.err
    mixed = lab("merge", *folders, only_run(tmp_path / "whole"))
    assert mixed.code == 2 and mixed.is_one_clear_line() and "is not a shard" in mixed.err
    merged = installed("merge", *folders, "--json")
    assert merged.code == 0, merged.err
    assert same(merged.json) == same(whole.json)
    assert merged.json["accounting"]["valid"] == 6
    assert lab("resume", "--json").json == merged.json, "a merged run can be resumed; nothing is left to run"
    told = lab(*matrix, "--plan", "--json").json["estimate"]["pace"]["source"]
    assert told == f"6 trials of run {only_run(tmp_path / 'reports').name}"


def test_a_build_that_cannot_be_prepared_again_is_one_clear_line(
    lab: LabCommand, finished: Path, tmp_path: Path
) -> None:
    folder = tmp_path / finished.name
    shutil.copytree(finished, folder)
    lock = folder / "lock.json"
    kept = lock.read_text()
    for old, new, words in (
        ('"source": "hermes-agent==0.19.0"', '"source": "9.9.9"', "cannot be prepared again from 9.9.9"),
        ('"environment_digest": "', '"environment_digest": "0000', "is no longer what the run was locked with"),
    ):
        assert old in kept
        lock.write_text(kept.replace(old, new))
        done = lab("resume", folder)
        assert done.code == 2 and done.is_one_clear_line() and words in done.err, done.err


def test_two_builds_run_side_by_side_and_are_told_apart(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    chosen = ("--select", "F1-001", "--models", "scripted:always-write")
    done = lab("run", "--backend", bwrap, *chosen, "--builds", "0.19.0,0.15.2", "--json")
    assert done.code == 0, done.err
    versions = {build["name"]: build["version"] for build in done.json["header"]["builds"]}
    assert versions == {"hermes-agent-0.19.0": "0.19.0", "hermes-agent-0.15.2": "0.15.2"}
    assert done.json["accounting"]["valid"] == 4
    digests = {build["environment_digest"] for build in done.json["header"]["builds"]}
    assert len(digests) == 2
    for trial in only_run(tmp_path / "reports").glob("trials/*"):
        version = "0.15.2" if "hermes-agent-0.15.2" in trial.name else "0.19.0"
        assert f'"agent_version": "{version}"' in (trial / "result.json").read_text()
