"""Benchmark runs against each other: planted ranks, topic by topic, and what must not differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.compare.bench import HIT1, HIT5, compare_benches
from lab.compare.locks import Incomparable
from lab.compare.model import Verdict
from lab.errors import InputError
from lab.report.compare.write import write_comparison
from lab.retrieval.arms import Arm
from lab.retrieval.bench import Bench, Work
from lab.retrieval.data.load import load_set
from lab.retrieval.frozen import frozen_store
from lab.retrieval.rows import HitRow, TopicRow, read_rows, rows_file, rows_text
from lab.retrieval.systems.bm25 import Bm25, Tokenizer
from lab.retrieval.testset import MAIN_STORE
from lab.runs.folder import RunFolder
from lab.statistics.paired import mcnemar_exact, paired_bootstrap

HOLDOUT = Path(__file__).parents[2] / "scenarios" / "retrieval" / "holdout"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A real run of two arms; the tests change copies of it."""
    root = tmp_path_factory.mktemp("bench")
    testset = load_set(HOLDOUT)
    snapshot = frozen_store(testset, MAIN_STORE, root, lambda _: None)
    arms = [
        Arm(name, name, name, {"tokenizer": name}, lambda kind=kind: Bm25(kind))  # type: ignore[misc]
        for name, kind in (("bm25", Tokenizer.UNICODE61), ("bm25-porter", Tokenizer.PORTER))
    ]
    facts = {"embedder": None, "vectors": [], "keyword_rule": "r"}
    bench = Bench.start(root, Work([(testset, {MAIN_STORE: snapshot})], arms, 10, False, facts))
    bench.run(lambda _what, _n: None)
    return bench.folder


def copy(run: RunFolder, to: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(run.path, to / run.run_id)))


def enough_hits(row: TopicRow) -> TopicRow:
    """A planted rank must be that of some hit; a comparison looks at no more of the hits than that."""
    others = tuple(HitRow(fact=f"planted-{n}", score=0.0) for n in range(len(row.hits), row.rank or 0))
    return row.model_copy(update={"hits": (*row.hits, *others)})


def edit_rows(run: RunFolder, change: Callable[[int, TopicRow], TopicRow], arm: str = "bm25") -> None:
    path = rows_file(run.path, "holdout", arm)
    answerable = iter(range(10_000))
    path.write_bytes(
        rows_text(
            tuple(enough_hits(change(next(answerable), row)) if row.answerable else row for row in read_rows(path))
        )
    )


def edit_lock(run: RunFolder, change: Callable[[dict[str, Any]], Any]) -> None:
    path = run.path / "lock.json"
    lock = json.loads(path.read_text())
    change(lock)
    path.write_text(json.dumps(lock))


def at(rank: int | None) -> Callable[[int, TopicRow], TopicRow]:
    return lambda _, row: row.model_copy(update={"rank": rank})


def test_planted_ranks_are_better_topic_by_topic(run: RunFolder, tmp_path: Path) -> None:
    one, two = copy(run, tmp_path / "a"), copy(run, tmp_path / "b")
    edit_rows(one, lambda n, row: row.model_copy(update={"rank": 3 if n < 30 else 1}))
    edit_rows(two, at(1))
    comparison = compare_benches([one, two], margin=0.05)
    (contrast,) = comparison.contrasts
    found = {(row.group, row.measure): row for row in contrast.rows}
    assert comparison.tests == len(found) == 4
    hit1, hit5 = (found["holdout · bm25", measure] for measure in (HIT1, HIT5))
    assert (hit1.only_first, hit1.only_second, hit1.verdict) == (0, 30, Verdict.BETTER)
    assert hit1.p == pytest.approx(mcnemar_exact(0, 30), rel=1e-6) and not hit1.fewer_is_better
    assert (hit5.only_first, hit5.only_second, hit5.verdict) == (0, 0, Verdict.NONE_SHOWN)
    same = found["holdout · bm25-porter", HIT1]
    assert (same.only_first, same.only_second, same.verdict) == (0, 0, Verdict.NONE_SHOWN)
    mean = contrast.means[0]
    first = np.array([1 / 3] * 30 + [1.0] * (mean.n - 30))
    interval = paired_bootstrap(np.ones(mean.n), first)
    assert (mean.first, mean.second) == (pytest.approx(first.mean(), abs=1e-6), 1.0)
    assert (mean.difference.low, mean.difference.high) == pytest.approx((interval.low, interval.high), abs=0.01)
    assert mean.verdict is Verdict.BETTER and contrast.means[1].verdict is Verdict.NONE_SHOWN
    assert len(contrast.flips) == 30
    assert {(c.before, c.after) for flip in contrast.flips for c in flip.changes} == {("3", "1")}
    turned = compare_benches([two, one], margin=0.05).contrasts[0]
    assert turned.means[0].verdict is Verdict.WORSE and turned.rows[0].verdict is Verdict.WORSE
    pages = [write_comparison(comparison, tmp_path / n, {"A": one.path, "B": two.path})[0] for n in "xy"]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert f"../a/{run.run_id}/rows/holdout/bm25.jsonl" in pages[0].read_text()


def test_an_error_leaves_its_topic_out(run: RunFolder, tmp_path: Path) -> None:
    one, two = copy(run, tmp_path / "a"), copy(run, tmp_path / "b")
    edit_rows(two, lambda n, row: row.model_copy(update={"error": "gone", "rank": None}) if n == 0 else row)
    row, *_ = compare_benches([one, two], margin=0.05).contrasts[0].rows
    whole, *_ = compare_benches([one, copy(run, tmp_path / "c")], margin=0.05).contrasts[0].rows
    assert row.n == whole.n - 1 and row.only_first == row.only_second == 0
    assert [(c.label, c.count) for c in row.left_out] == [("B: gone", 1)]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lock: lock["sets"][0].update(digest="0" * 64), "set holdout.digest is "),
        (lambda lock: lock["sets"][0]["stores"][0].update(content="0" * 64), "set holdout.content.main is "),
        (lambda lock: lock["sets"][0].update(name="other"), "set holdout is in A alone"),
        (lambda lock: lock.update(k=5), "k is 10 and 5"),
        (lambda lock: lock.update(keyword_rule="s"), "keyword_rule is r and s"),
        (lambda lock: lock["arms"][1].update(name="other"), "arm bm25-porter is in A alone"),
    ],
)
def test_other_inputs_are_refused(run: RunFolder, tmp_path: Path, change: Callable[[Any], Any], line: str) -> None:
    two = copy(run, tmp_path)
    edit_lock(two, change)
    with pytest.raises(Incomparable) as refused:
        compare_benches([run, two], margin=0.05)
    assert refused.value.differences[0].startswith(line)


def test_common_arms_are_compared_and_the_others_counted(run: RunFolder, tmp_path: Path) -> None:
    two = copy(run, tmp_path)
    edit_lock(two, lambda lock: lock["arms"][1].update(name="other"))
    (contrast,) = compare_benches([run, two], margin=0.05, common=True).contrasts
    assert {row.group for row in contrast.rows} == {"holdout · bm25"}
    assert [(c.label, c.count) for c in contrast.alone] == [("arms that are not the same in both", 2)]
    assert len(contrast.remaining) == 2


def test_what_is_compared_is_told(run: RunFolder, tmp_path: Path) -> None:
    two = copy(run, tmp_path)
    edit_lock(two, lambda lock: lock["arms"][0]["settings"].update(tokenizer="other"))
    edit_lock(two, lambda lock: lock.update(embedder={"name": "new"}))
    (contrast,) = compare_benches([run, two], margin=0.05).contrasts
    assert "arm bm25.settings.tokenizer is bm25 and other" in contrast.compared
    assert "embedder is absent and {'name': 'new'}" in contrast.compared


def test_damage_is_one_clear_error(run: RunFolder, tmp_path: Path) -> None:
    two = copy(run, tmp_path)
    path = rows_file(two.path, "holdout", "bm25")
    kept = path.read_text()
    path.write_text("\n".join(line for line in kept.splitlines() if '"answerable":true' not in line))
    with pytest.raises(InputError, match=r"topic .* has a row in one run alone"):
        compare_benches([run, two], margin=0.05)
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        compare_benches([run, two], margin=0.05)
    edit_lock(two, lambda lock: lock.pop("arms"))
    with pytest.raises(InputError, match="damaged"):
        compare_benches([run, two], margin=0.05)
    edit_lock(two, lambda lock: lock.update(kind="contamination"))
    with pytest.raises(InputError, match="not the folder of a benchmark"):
        compare_benches([run, two], margin=0.05)
