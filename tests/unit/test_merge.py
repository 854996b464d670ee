"""Shards put together: the whole's report, and every reason to refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.contamination.merge import merge
from lab.contamination.selection import Shard
from lab.contamination.suite import Suite
from lab.errors import InputError, SandboxTimeout
from lab.report.build import build_report
from tests.planted import BUILDS, Planted, make, work
from tests.published import published

LIBRARY = published()[:6]


def run(root: Path, shard: str = "", backend: Planted | None = None, **more: Any) -> Suite:
    chosen = backend or Planted()
    part = Shard.parse(shard) if shard else None
    suite = make(root, chosen, **{"scenarios": LIBRARY, "repeats": 2, "seed": 3} | more, shard=part)
    assert work(suite, chosen)
    return suite


def report(suite: Suite) -> dict[str, Any]:
    """The report without the run's name and time, and without how long its trials took."""
    told = build_report(suite.lock, suite.plan, suite.results(), scenarios=suite.scenarios)
    parts = told.model_dump(mode="json", exclude={"run": True, "trials": {"__all__": {"seconds"}}})
    assert parts["accounting"]["planned"]
    return parts


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_merged_report_is_the_wholes(tmp_path: Path, order: tuple[int, ...]) -> None:
    whole = run(tmp_path / "whole")
    failing = Planted()
    failing.ends[next(t for t in whole.trials if Shard(1, 3).holds(whole.trials[t]["scenario"]))] = [
        SandboxTimeout("x")
    ]
    shards = [run(tmp_path / "parts", "1/3", failing), *(run(tmp_path / "parts", f"{k}/3") for k in (2, 3))]
    merged = Suite(merge([shards[k] for k in order], tmp_path / "merged"))
    assert merged.plan == whole.plan, "the order of the plan is the whole's, whatever that of the shards"
    assert report(merged) == report(whole)
    assert merged.retried() == {"sandbox_timeout": 1}, "earlier attempts came along"
    assert merged.pending() == [] and merged.locked.shard == ""


def test_an_unfinished_shard_leaves_its_trials_to_be_resumed(tmp_path: Path) -> None:
    one, two = run(tmp_path, "1/2"), make(tmp_path, scenarios=LIBRARY, repeats=2, seed=3, shard=Shard(2, 2))
    merged = Suite(merge([one, two], tmp_path / "merged"))
    assert sorted(merged.pending()) == sorted(two.trials)
    assert work(merged, Planted()) and merged.pending() == []


def test_what_may_differ_between_machines(tmp_path: Path) -> None:
    shards = [run(tmp_path, "1/2"), run(tmp_path, "2/2")]
    shards[1].lock["host"] = {"kernel": "9.9", "arch": "x", "python": "y"}
    shards[1].lock["builds"]["fork-2.0"]["source"] = "/elsewhere/fork"
    merged = Suite(merge(shards, tmp_path / "merged"))
    assert merged.lock["host"]["kernel"].endswith("9.9") and " / " in merged.lock["host"]["kernel"]


def live(**more: Any) -> dict[str, Any]:
    model = {"spec": "ollama:m", "provider": "ollama", "name": "m", "url": "http://a:1", "digest": "d"} | more
    return {"models": {"ollama:m": model}, "scope": "review", "sampling": {"temperature": 0.0}, "limits": {"asks": 1}}


def test_shards_of_a_live_model_may_differ_in_what_decides_no_answer(tmp_path: Path) -> None:
    shards = [run(tmp_path, "1/2"), run(tmp_path, "2/2")]
    shards[0].lock["live"] = live(tokens_per_second=3.1)
    shards[1].lock["live"] = live(tokens_per_second=9.2, url="http://b:1", tools_detail="x", notes=["n"]) | {
        "limits": {"asks": 2}, "key_env": "OTHER"
    }  # fmt: skip
    assert Suite(merge(shards, tmp_path / "merged")).locked.live
    shards[1].lock["live"] = live(digest="e")
    with pytest.raises(InputError, match=r"live\.models\.ollama:m\.digest is d and e"):
        merge(shards, tmp_path / "merged2")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    shards = [run(tmp_path, f"{k}/3") for k in (1, 3)]
    with pytest.raises(InputError, match=r"missing: shard 2/3 .*--shard 2/3"):
        merge(shards, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_an_empty_shard_is_not_missed(tmp_path: Path) -> None:
    alone = LIBRARY[:1]
    (mine,) = (f"{k}/3" for k in (1, 2, 3) if Shard(k, 3).holds(alone[0].id))
    shard = run(tmp_path, mine, scenarios=alone)
    assert Suite(merge([shard], tmp_path / "merged")).trials == shard.trials


def test_overlap_is_refused(tmp_path: Path) -> None:
    shards = [run(tmp_path, shard) for shard in ("1/2", "2/2", "2/2")]
    with pytest.raises(InputError, match=r"both hold \d+ trials, the first is F1-"):
        merge(shards, tmp_path / "merged")


def test_a_whole_run_is_no_shard(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a shard"):
        merge([run(tmp_path)], tmp_path / "merged")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"seed": 4}, "seed is 3 and 4"),
        ({"repeats": 1}, "repeats is 2 and 1"),
        ({"builds": BUILDS[:1]}, r"builds\.fork-2\.0 is \{.*… and absent"),
        ({"scenarios": LIBRARY[:5]}, r"whole\.F1-006 is \w+… and absent"),
        ({"models": ["scripted:never-write"]}, r"models is \['scripted:always-write'\] and"),
    ],
)
def test_another_plan_is_refused_with_the_difference(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    one = run(tmp_path, "1/2")
    other = make(tmp_path, **{"scenarios": LIBRARY, "repeats": 2, "seed": 3} | more, shard=Shard(2, 2))
    with pytest.raises(InputError, match=rf"not of one plan: .*{words}"):
        merge([one, other], tmp_path / "merged")


def test_a_merge_that_was_cut_short_is_no_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [run(tmp_path, "1/2"), run(tmp_path, "2/2")]

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lab.contamination.merge.write_json", full)
    with pytest.raises(OSError, match="No space"):
        merge(shards, tmp_path / "merged")
    (left,) = (tmp_path / "merged").iterdir()
    assert not (left / "plan.json").exists()
    assert all(json.loads(p.read_bytes()) for p in left.glob("trials/*/result.json"))
