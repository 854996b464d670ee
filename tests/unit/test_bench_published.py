"""Published numbers stand beside what was measured, and only there."""

from __future__ import annotations

from pathlib import Path

from lab.report.bench.published import beside, claims
from lab.retrieval.assemble import assemble
from lab.retrieval.results import LOCK, BenchResult
from lab.runs.folder import RunFolder
from tests.bench_runs import bench_folder


def renamed(result: BenchResult, set_name: str, arm: str) -> BenchResult:
    one = result.sets[0]
    arms = (one.arms[0].model_copy(update={"arm": arm}), *one.arms[1:])
    info = one.info.model_copy(update={"name": set_name})
    return result.model_copy(update={"sets": (one.model_copy(update={"arms": arms, "info": info}),)})


def test_a_claim_is_told_where_its_arm_and_set_were_measured(tmp_path: Path) -> None:
    result = assemble(RunFolder.open(bench_folder(tmp_path).run, (LOCK,)))
    assert beside(result) == []
    for claim in claims():
        (row,) = beside(renamed(result, claim.set, claim.arm))
        score = result.sets[0].arms[0].scores[0]
        assert row.published == claim.published and claim.source in row.claim
        assert (
            f"n={score.n}" in row.measured
            and score.hit10
            and f"[{score.hit10.low:.3f}".replace("0.", ".") in row.measured
        )
        assert not beside(renamed(result, "personal", claim.arm))
        assert not row.same_task or row.same_data  # a claim that says otherwise needs another look
