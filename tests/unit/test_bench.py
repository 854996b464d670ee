"""The benchmark run: what is asked, on which copies, what is kept, what is refused, and how it goes on after a kill."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import InputError, SystemFailed
from lab.memories.arms import ALL_KINDS
from lab.report.bench.write import write_bench
from lab.retrieval.arms import Arm
from lab.retrieval.assemble import assemble
from lab.retrieval.bench import Bench, Work, declared_pairs, set_info
from lab.retrieval.data.load import load_set
from lab.retrieval.frozen import frozen_store, snapshot_name
from lab.retrieval.rows import read_rows, rows_file
from lab.retrieval.systems.base import Hit, Ranking
from lab.retrieval.systems.bm25 import Bm25, Tokenizer
from lab.retrieval.testset import MAIN_STORE, TestSet
from lab.runs.folder import RunFolder
from lab.snapshots.store import Snapshot

HOLDOUT = Path(__file__).parents[2] / "scenarios" / "retrieval" / "holdout"
TOPICS = 24


class Scripted:
    """A system that answers as a test says; its state lies in its copy of the database, as a real one's does."""

    name = "scripted"

    def __init__(self, answer: Callable[[sqlite3.Connection, str], Sequence[int]]) -> None:
        self._answer = answer
        self.opened: list[Path] = []
        self._connection: sqlite3.Connection | None = None

    def settings(self) -> dict[str, object]:
        return {"open": len(self.opened)}

    def open(self, database: Path) -> None:
        self.opened.append(database)
        self._connection = sqlite3.connect(database, isolation_level=None)

    def search(self, query: str, k: int) -> Ranking:
        assert self._connection is not None
        ids = list(self._answer(self._connection, query))
        return Ranking(tuple(Hit(fact, float(-rank)) for rank, fact in enumerate(ids)), {"words": 0.001}, ("words",))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@pytest.fixture(scope="module")
def testset() -> TestSet:
    whole = load_set(HOLDOUT)
    # Some of every class.
    topics = tuple(topic for number, topic in enumerate(whole.topics) if number % 5 == 0)[:TOPICS]
    named = {topic.id for topic in topics}
    return whole.model_copy(update={"topics": topics, "qrels": {t: r for t, r in whole.qrels.items() if t in named}})


@pytest.fixture(scope="module")
def snapshot(testset: TestSet, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    told: list[str] = []
    folder = tmp_path_factory.mktemp("snapshots")
    made = frozen_store(testset, MAIN_STORE, folder, told.append)
    assert told
    again = frozen_store(testset, MAIN_STORE, folder, told.append)
    assert len(told) == 1, "what is frozen is not frozen again"
    assert again.manifest == made.manifest
    return made


def arm(name: str, make: Callable[[], object], depth: int | None = None) -> Arm:
    return Arm(name, f"the arm {name}", name, {"name": name, "pair": (1, 2)}, make, depth)  # type: ignore[arg-type]


def work(testset: TestSet, snapshot: Snapshot, *arms: Arm, k: int = 10) -> Work:
    facts = {"embedder": None, "vectors": []}
    return Work(sets=[(testset, {MAIN_STORE: snapshot})], arms=arms, k=k, fresh=False, facts=facts)


def run(tmp_path: Path, what: Work) -> Bench:
    bench = Bench.start(tmp_path, what)
    bench.run(lambda _what, _n: None)
    return bench


BM25 = arm("bm25", lambda: Bm25(Tokenizer.UNICODE61))
PORTER = arm("bm25-porter", lambda: Bm25(Tokenizer.PORTER))


def test_real_systems_twice_give_the_same_bytes(tmp_path: Path, testset: TestSet, snapshot: Snapshot) -> None:
    runs = [run(tmp_path / name, work(testset, snapshot, BM25, PORTER)) for name in ("one", "two")]
    one, two = (assemble(each.folder) for each in runs)
    assert one == two
    files = [{p.name: p.read_bytes() for p in each.folder.path.glob("rows/*/*.jsonl")} for each in runs]
    assert files[0] == files[1]
    (result,) = one.sets
    assert all(check.holds for each in result.arms for check in each.checks)
    assert result.arms[0].scores[0].n == sum(testset.answerable(topic) for topic in testset.topics)
    assert result.arms[0].scores[0].hit5.numerator > 0
    assert (result.arms[0].asked_again, result.arms[0].changed_again, result.arms[0].fresh) == (TOPICS, 0, False)
    assert [(c.first, c.second) for c in result.comparisons] == [("bm25", "bm25-porter")]


def recalling(connection: sqlite3.Connection, query: str) -> Sequence[int]:
    """What was recalled most stands first, and being asked is a recall: as in memories that reinforce."""
    ids = [row[0] for row in connection.execute("SELECT fact_id FROM facts ORDER BY retrieval_count DESC, fact_id")]
    connection.execute("UPDATE facts SET retrieval_count = retrieval_count + 1 WHERE fact_id = ?", (len(query) + 9,))
    return ids[:10]


def test_a_memory_that_changes_by_being_asked_gets_fresh_copies(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot
) -> None:
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted(recalling))
        return made[-1]

    bench = run(tmp_path, work(testset, snapshot, arm("recalling", make)))
    (result,) = assemble(bench.folder).sets
    (told,) = result.arms
    assert told.fresh
    assert 0 < told.changed_again <= told.asked_again == TOPICS
    rows = read_rows(rows_file(bench.folder.path, testset.name, "recalling"))
    assert {tuple(hit.fact for hit in row.hits) for row in rows} == {tuple(hit.fact for hit in rows[0].hits)}, (
        "on a fresh copy no earlier question is felt"
    )
    assert len(made[0].opened) == 1 + TOPICS


def test_a_system_never_sees_the_frozen_file(tmp_path: Path, testset: TestSet, snapshot: Snapshot) -> None:
    before = snapshot.database.read_bytes()
    system = Scripted(recalling)
    run(tmp_path, work(testset, snapshot, arm("recalling", lambda: system)))
    assert snapshot.database not in system.opened
    assert snapshot.database.read_bytes() == before


def failing(_connection: sqlite3.Connection, query: str) -> Sequence[int]:
    if len(query) % 3 == 0:
        raise SystemFailed("the worker is gone")
    return [1, 2]


def test_an_error_is_in_no_number_and_is_listed(tmp_path: Path, testset: TestSet, snapshot: Snapshot) -> None:
    bench = run(tmp_path, work(testset, snapshot, BM25, arm("failing", lambda: Scripted(failing))))
    (result,) = assemble(bench.folder).sets
    sound, broken = result.arms
    lost = {topic.id for topic in testset.topics if len(topic.text) % 3 == 0}
    assert lost
    assert set(broken.errors["the worker is gone"]) == lost
    answerable = {topic.id for topic in testset.topics if testset.answerable(topic)}
    assert broken.scores[0].n == len(answerable - lost)
    assert sound.scores[0].n == len(answerable)
    assert all(check.holds for check in broken.checks)
    assert result.comparisons[0].n == len(answerable - lost)


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([10**9], "which the store does not have"),
        ([1.0], r"returned fact 1\.0, which the store does not have"),
        ([True], "returned fact True, which the store does not have"),
        (["1"], "returned fact '1', which the store does not have"),
        (list(range(1, 12)), "11 hits where 10 were asked for"),
        ([3, 3], "fact 3 is there twice"),
    ],
)
def test_a_ranking_that_breaks_the_protocol_refuses_the_run(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot, ids: list[int], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        run(tmp_path, work(testset, snapshot, arm("odd", lambda: Scripted(lambda _c, _q: ids))))


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, testset: TestSet, snapshot: Snapshot) -> None:
    asked: list[str] = []

    def counting(_connection: sqlite3.Connection, query: str) -> Sequence[int]:
        asked.append(query)
        return [1]

    whole = work(testset, snapshot, BM25, arm("counting", lambda: Scripted(counting)))
    bench = Bench.start(tmp_path, whole)
    answered = 0

    def stop(_what: str, count: int) -> None:
        nonlocal answered
        answered += count
        if answered == TOPICS + 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.run(stop)
    with pytest.raises(InputError, match="counting"):
        assemble(bench.folder)
    first = rows_file(bench.folder.path, testset.name, "bm25")
    kept = (first.stat().st_ino, first.read_bytes())
    asked.clear()
    again = Bench.resume(RunFolder.open(bench.folder.path, ("lock.json",)), whole)
    again.run(lambda _what, _n: None)
    assert (first.stat().st_ino, first.read_bytes()) == kept, "what was done is not done again"
    assert len(asked) == 2 * TOPICS, "all topics, and all again"
    assert assemble(again.folder) == assemble(run(tmp_path / "other", whole).folder)


def test_other_inputs_are_no_resumption(tmp_path: Path, testset: TestSet, snapshot: Snapshot) -> None:
    bench = Bench.start(tmp_path, work(testset, snapshot, BM25))
    with pytest.raises(InputError, match="other inputs: k") as refused:
        Bench.resume(bench.folder, work(testset, snapshot, BM25, k=5))
    assert "lab bench" in refused.value.mend
    with pytest.raises(InputError, match="arms, pairs"):
        Bench.resume(bench.folder, work(testset, snapshot, BM25, PORTER))


def test_a_depth_at_which_every_system_is_perfect_is_refused(testset: TestSet, snapshot: Snapshot) -> None:
    facts = len(testset.stores[MAIN_STORE])
    with pytest.raises(InputError, match="a fifth of its smallest store"):
        set_info(testset, {MAIN_STORE: snapshot}, facts // 5 + 1)
    assert set_info(testset, {MAIN_STORE: snapshot}, facts // 5).k_of_pool == pytest.approx(0.2)


def test_the_guide_lists_the_arms_that_there_are() -> None:
    guide = (HOLDOUT.parents[2] / "docs" / "retrieval.md").read_text()
    table = guide.split("## The arms")[1].split("## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall("`([^`]+)`", cell)} == set(ALL_KINDS)


def test_only_arms_of_equal_depth_are_paired() -> None:
    shallow = arm("prefetch", lambda: None, depth=5)
    assert declared_pairs([BM25, PORTER, shallow]) == (("bm25", "bm25-porter"),)
    four = [arm(name, lambda: None) for name in ("plain", "keywords", "embeddings", "embeddings+keywords")]
    pairs = declared_pairs([*four, BM25])
    assert len(pairs) == 6
    assert not any("bm25" in pair for pair in pairs)


def test_the_longest_name_of_a_set_still_names_a_snapshot(testset: TestSet, tmp_path: Path) -> None:
    long = testset.model_copy(update={"name": "a" * 64})
    shot = frozen_store(long, MAIN_STORE, tmp_path, lambda _line: None)
    assert shot.manifest.name == snapshot_name(long, MAIN_STORE)


def test_two_labs_may_freeze_the_same_set_at_once(testset: TestSet, tmp_path: Path) -> None:
    def while_ours_is_being_made(_line: str) -> None:
        frozen_store(testset, MAIN_STORE, tmp_path, lambda _line: None)

    ours = frozen_store(testset, MAIN_STORE, tmp_path, while_ours_is_being_made)
    assert ours.manifest.name == snapshot_name(testset, MAIN_STORE)
    assert [path.name for path in tmp_path.iterdir()] == [ours.manifest.name]


def test_a_snapshot_is_named_after_its_facts(testset: TestSet) -> None:
    first = testset.stores[MAIN_STORE][0]
    other = first.model_copy(update={"text": first.text + "!"})
    changed = testset.model_copy(update={"stores": {MAIN_STORE: (other, *testset.stores[MAIN_STORE][1:])}})
    fewer = testset.model_copy(update={"topics": testset.topics[:3]})
    assert snapshot_name(changed, MAIN_STORE) != snapshot_name(testset, MAIN_STORE) == snapshot_name(fewer, MAIN_STORE)


def test_facts_with_one_text_are_one_row_with_two_names(tmp_path: Path, testset: TestSet) -> None:
    facts = testset.stores[MAIN_STORE]
    topic = next(topic for topic in testset.topics if testset.answerable(topic))
    (relevant, *_) = sorted(testset.qrels[topic.id])
    text = next(fact.text for fact in facts if fact.id == relevant)
    twin = facts[0].model_copy(update={"id": "a-twin", "text": text})
    doubled = testset.model_copy(update={"stores": {MAIN_STORE: (twin, *facts)}, "topics": (topic,)})
    shot = frozen_store(doubled, MAIN_STORE, tmp_path / "snapshots", lambda _line: None)
    with closing(shot.connect()) as connection:
        (fact_id,) = connection.execute("SELECT fact_id FROM facts WHERE content = ?", (text,)).fetchone()
    bench = run(tmp_path, work(doubled, shot, arm("one", lambda: Scripted(lambda _c, _q: [fact_id]))))
    (row,) = read_rows(rows_file(bench.folder.path, doubled.name, "one"))
    assert (row.rank, row.hits[0].fact) == (1, relevant)


def changed(rows: Path, number: int, **fields: object) -> None:
    lines = rows.read_text().splitlines()
    lines[number] = json.dumps(json.loads(lines[number]) | fields)
    rows.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rank": 0}, "greater than or equal to 1"),
        ({"rank": 11}, "rank 11"),
        ({"rank": 1, "hits": []}, "rank 1"),
        ({"hits": [{"fact": "a", "score": 1.0}, {"fact": "a", "score": 0.5}], "rank": None}, "has a fact twice"),
        ({"hits": [{"fact": str(n), "score": 0.0} for n in range(11)], "rank": None}, "more hits than 10"),
        ({"hits": [{"fact": "a", "score": float("nan")}], "rank": None}, "finite number"),
    ],
)
def test_a_row_that_cannot_be_one_is_told_in_one_line(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot, fields: dict[str, object], told: str
) -> None:
    bench = run(tmp_path, work(testset, snapshot, BM25))
    changed(rows_file(bench.folder.path, testset.name, "bm25"), 1, **fields)
    with pytest.raises(InputError, match=told) as refused:
        assemble(bench.folder)
    assert "bm25.jsonl" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("file", ["rows/{set}/bm25.passes.json", "timing.json", "lock.json"])
@pytest.mark.parametrize("text", [None, "{", '{"a": 1}'])
def test_a_damaged_file_of_a_run_is_told_by_its_name(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot, file: str, text: str | None
) -> None:
    bench = run(tmp_path, work(testset, snapshot, BM25))
    path = bench.folder.path / file.format(set=testset.name)
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError) as refused:
        write_bench(bench.folder)
    assert path.name in refused.value.message or text == '{"a": 1}', "a lock of another kind names the folder"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("k", "ten"), ("pairs", [["bm25"]]), ("arms", []), ("arms", [{"name": "../../bm25"}]), ("sets", [1])],
)
def test_a_damaged_lock_is_told_in_one_line(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot, field: str, value: object
) -> None:
    bench = run(tmp_path, work(testset, snapshot, BM25))
    lock = bench.folder.path / "lock.json"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {field: value}))
    with pytest.raises(InputError, match=r"lock\.json is damaged") as refused:
        assemble(bench.folder)
    assert "\n" not in str(refused.value)


def test_topics_without_an_answer_may_not_go_missing(tmp_path: Path, testset: TestSet, snapshot: Snapshot) -> None:
    """They are in no mean, so that no other invariant misses them; but all noise is computed from them."""
    bench = run(tmp_path, work(testset, snapshot, BM25))
    rows = rows_file(bench.folder.path, testset.name, "bm25")
    kept = [line for line in rows.read_text().splitlines() if json.loads(line)["answerable"]]
    assert len(kept) < TOPICS
    rows.write_text("\n".join(kept) + "\n")
    (result,) = assemble(bench.folder).sets
    assert [check.name for check in result.arms[0].checks if not check.holds] == ["declared topics"]


def test_rows_that_were_changed_before_a_resumption_are_refused(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot
) -> None:
    """No seal guards the rows of a run that has not ended: the judgements do."""
    whole = work(testset, snapshot, BM25)
    bench = run(tmp_path, whole)
    rows = rows_file(bench.folder.path, testset.name, "bm25")
    run_again = Bench.resume(RunFolder.open(bench.folder.path, ("lock.json",)), whole)
    run_again.run(lambda _what, _n: None)  # what was not changed is taken as it is
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    lost = next(n for n, row in enumerate(lines) if row["answerable"] and row["rank"] != 1 and row["hits"])
    changed(rows, lost, rank=1)
    with pytest.raises(InputError, match=f"1 of {TOPICS} rows differ: {lines[lost]['topic']}"):
        run_again.run(lambda _what, _n: None)


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_damaged_rows_are_one_line(tmp_path: Path, testset: TestSet, snapshot: Snapshot, damage: str) -> None:
    bench = run(tmp_path, work(testset, snapshot, BM25))
    rows = rows_file(bench.folder.path, testset.name, "bm25")
    if damage == "missing":
        rows.unlink()
    elif damage == "cut":
        rows.write_bytes(rows.read_bytes()[:-40])
    else:
        rows.write_text(json.dumps({"topic": "x"}) + "\n")
    with pytest.raises(InputError, match=r"bm25\.jsonl") as refused:
        assemble(bench.folder)
    assert "\n" not in str(refused.value)


def test_rows_that_say_something_else_than_the_lock_break_an_invariant(
    tmp_path: Path, testset: TestSet, snapshot: Snapshot
) -> None:
    """A denominator that was forged: the rows of missed topics are taken out."""
    bench = run(tmp_path, work(testset, snapshot, BM25))
    rows = rows_file(bench.folder.path, testset.name, "bm25")
    kept = [
        line for line in rows.read_text().splitlines() if json.loads(line)["rank"] or not json.loads(line)["answerable"]
    ]
    assert len(kept) < TOPICS
    rows.write_text("\n".join(kept) + "\n")
    (result,) = assemble(bench.folder).sets
    assert "declared n" in [check.name for check in result.arms[0].checks if not check.holds]
