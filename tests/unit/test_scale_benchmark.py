"""The benchmark of scale: how it is measured, limited and told. What it measures is no test."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.scale import __main__ as scale
from benchmarks.scale.cell import disk_bytes, peak_bytes
from benchmarks.scale.contestants import DEFAULT, NAMES, floors_of
from benchmarks.scale.data import NOISE, ODD, SEED, Inputs, KnownVectors, plain_terms, write_database
from benchmarks.scale.limits import PROJECT, Ended, Limits, run_within
from benchmarks.scale.results import Outcome, Results, Row, Terms, growth, ratio
from benchmarks.scale.table import markdown
from lab.errors import EmbeddingFailed, InputError
from lab.retrieval.build_database import build_database
from lab.retrieval.data.generate import generated_facts
from lab.retrieval.database import open_database, read_context, read_facts
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors

IDENTITY = ModelIdentity("double", "hashed", "0" * 64, 16, ((Kind.QUERY, "q: "), (Kind.DOCUMENT, "d: ")), "none", "1")
ROOMY = Limits(30, 2_000)
TERMS = Terms(limit_seconds=1, limit_megabytes=2)


def row(system: str = "plain", facts: int = 10, **given: object) -> Row:
    return Row(**{"run": "r", "system": system, "facts": facts, "outcome": Outcome.OK, "load": 0, **given})


class Hashed:
    """An embedder of 16 dimensions without a model."""

    identity = IDENTITY

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        found = [np.random.default_rng(list(text.encode())).standard_normal(16) for text in texts]
        rows = np.asarray(found, dtype=np.float32).reshape(-1, 16)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def close(self) -> None:
        pass


# --- growth and ratios


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_growth_is_the_power(power: float) -> None:
    rows = [row(facts=n, values={"p50_ms": 3.0 * n**power}) for n in (500, 5_000, 50_000)]
    found = growth(rows, "p50_ms")
    assert found is not None
    assert (found.exponent, found.last, found.points) == (pytest.approx(power), pytest.approx(power), 3)


def test_growth_between_the_largest_sizes_is_free_of_the_fixed_cost() -> None:
    rows = [row(facts=n, values={"p50_ms": 10 + n / 100}) for n in (500, 5_000, 50_000, 500_000)]
    found = growth(rows, "p50_ms")
    assert found is not None
    assert found.exponent < 0.9 < found.last


def test_growth_of_memory_is_that_of_what_the_facts_take() -> None:
    rows = [row(facts=n, values={"base_bytes": 6e7, "memory_bytes": 6e7 + 100 * n}) for n in (500, 50_000)]
    found = growth(rows, "memory_bytes")
    assert found is not None
    assert found.exponent == pytest.approx(1)


def test_a_measurement_that_was_stopped_is_no_point() -> None:
    stopped = row(facts=500, outcome=Outcome.TIME, phase="ingest", values={"base_bytes": 1.0})
    assert growth([row(values={"p50_ms": 1.0}), stopped], "p50_ms") is None


@pytest.mark.parametrize(
    ("channels", "floors"),
    [
        (("lexical",), ("fts5",)),
        (("dense",), ("matrix",)),
        (("vector", "keyword", "graph"), ("fts5", "matrix")),
        (("fts", "jaccard", "hrr"), ("fts5",)),
        ((), ()),
    ],
)
def test_floors_follow_from_what_ran(channels: tuple[str, ...], floors: tuple[str, ...]) -> None:
    assert floors_of(frozenset(channels)) == floors


def test_a_ratio_is_over_the_floors_of_the_same_size_and_run() -> None:
    both = row("universal", channels=("vector", "keyword"), values={"p50_ms": 12.0})
    fts5, matrix = (row(name, values={"p50_ms": value}) for name, value in (("fts5", 1.0), ("matrix", 2.0)))
    others = [row("fts5", run="other", values={"p50_ms": 9.0}), row("fts5", facts=20, values={"p50_ms": 9.0})]
    assert ratio(both, "p50_ms", [fts5, matrix, both, *others]) == 4.0
    assert ratio(both, "p50_ms", [fts5, both, *others]) is None
    assert ratio(both, "p50_ms", [fts5, row("matrix", outcome=Outcome.TIME), both]) is None
    assert ratio(fts5, "p50_ms", [fts5, matrix]) is None


# --- a process under limits


def run(code: str, limits: Limits, place: Path):
    return run_within([sys.executable, "-c", code], limits, place)


def test_what_ends_by_itself_is_told_whole(tmp_path: Path) -> None:
    code = "import os, json; [print(json.dumps({'a': n, 't': os.environ['TMPDIR']})) for n in (1, 2)]"
    ended = run(code, ROOMY, tmp_path)
    assert (ended.stopped, ended.fault, ended.told) == ("", "", {"a": 2, "t": str(tmp_path)})


def test_the_time_limit_ends_it_and_what_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print('{\"child\": %d}' % p.pid, flush=True);"
        "import signal; signal.signal(signal.SIGTERM, lambda *_: (p.kill(), p.wait(), sys.exit(1))); time.sleep(60)"
    )
    started = time.monotonic()
    ended = run(code, Limits(3, 2_000), tmp_path)
    assert ended.stopped == "time"
    assert time.monotonic() - started < 20
    assert not Path(f"/proc/{ended.told['child']}").exists()


def test_one_that_does_not_let_itself_be_ended_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.scale.limits.END_SECONDS", 0.5)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); time.sleep(60)"
    assert run(code, Limits(1, 2_000), tmp_path).stopped == "time"


@pytest.mark.parametrize(("megabytes", "stopped"), [(120, "memory"), (2_000, "")])
def test_the_memory_limit(megabytes: float, stopped: str, tmp_path: Path) -> None:
    code = "import time; held = b'x' * 200_000_000; time.sleep(1.5)"
    assert run(code, Limits(30, megabytes), tmp_path).stopped == stopped


def test_the_memory_of_descendants_counts(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', "
        "\"import time; held = b'x' * 200_000_000; time.sleep(1.5)\"])"
    )
    ended = run(code, ROOMY, tmp_path)
    assert ended.children_bytes > 200_000_000
    assert run(code, Limits(30, 120), tmp_path).stopped == "memory"


def test_a_fault_is_one_printable_line(tmp_path: Path) -> None:
    ended = run("raise ValueError('first\\nlast \\x1b[31mred')", ROOMY, tmp_path)
    assert ended.fault == "last red"
    assert run("import os; os.abort()", ROOMY, tmp_path).fault == "it ended with code -6"


def test_peak_of_memory_is_not_that_of_the_parent() -> None:
    held = b"x" * 300_000_000
    code = "from benchmarks.scale.cell import peak_bytes; print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, check=True)
    assert 10_000_000 < int(done.stdout) < len(held)
    assert peak_bytes() > len(held)


def test_files_without_a_name_count_as_disk(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "named").write_bytes(b"x" * 1_000)
    before = disk_bytes(tmp_path)
    with tempfile.TemporaryFile() as nameless:
        nameless.write(b"x" * 5_000)
        nameless.flush()
        assert disk_bytes(tmp_path) == before + 5_000
    assert disk_bytes(tmp_path) == before >= 1_000


# --- input


def test_the_bulk_database_says_what_the_proper_one_says(tmp_path: Path) -> None:
    write_database(300, tmp_path / "bulk.db")
    build_database(list(islice(generated_facts(SEED), 300)), tmp_path / "proper.db")
    with closing(open_database(tmp_path / "bulk.db")) as bulk, closing(open_database(tmp_path / "proper.db")) as proper:
        assert read_facts(bulk) == read_facts(proper)
        assert read_context(bulk) == read_context(proper)


def test_perturbed_vectors_are_near_their_source_and_all_different() -> None:
    source = Hashed().embed(["a"], Kind.DOCUMENT)
    made = KnownVectors(IDENTITY, {(Kind.DOCUMENT, "a"): source[0]}, source)
    found = made.embed(["a", *(f"text {n}" for n in range(100))], Kind.DOCUMENT)
    assert np.array_equal(found[0], source[0])
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert len(np.unique(found, axis=0)) == 101
    assert np.mean(found[1:] @ source[0]) == pytest.approx(1 / np.sqrt(1 + NOISE**2), abs=0.02)
    assert np.array_equal(found, made.embed(["a", *(f"text {n}" for n in range(100))], Kind.DOCUMENT))


def test_a_vector_that_was_not_made_before_is_refused() -> None:
    with pytest.raises(EmbeddingFailed):
        KnownVectors(IDENTITY, {}).embed(["a"], Kind.QUERY)


def test_plain_terms_have_no_stopwords_and_no_syntax() -> None:
    assert plain_terms('What does "CAS-947" say?') == '"CAS" OR "947" OR "say"'
    assert [plain_terms(text) for text in ODD] == [""] * len(ODD)


def test_what_is_measured_by_default_exists() -> None:
    assert set(DEFAULT) <= set(NAMES)


# --- the file of results


def test_a_cut_off_line_is_dropped_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Results(path, TERMS).add(row())
    with path.open("a") as stream:
        stream.write('{"run": "r", "sys')
    results = Results(path, TERMS)
    assert results.rows == [row()]
    results.add(row("bm25"))
    assert Results(path, TERMS).rows == [row(), row("bm25")]


@pytest.mark.parametrize("text", ["no results\n", "no results", '{"terms": 1}\n', "\n\n"])
def test_another_file_is_refused_and_left_as_it_was(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="no result"):
        Results(path, TERMS)
    assert path.read_text() == text


def test_other_terms_are_refused(tmp_path: Path) -> None:
    Results(tmp_path / "results.jsonl", TERMS)
    with pytest.raises(InputError, match="limit_seconds"):
        Results(tmp_path / "results.jsonl", Terms(limit_seconds=9, limit_megabytes=2))


def test_a_limit_is_told_and_never_a_number() -> None:
    stopped = row(outcome=Outcome.TIME, phase="ingest", detail="in ingest, 7 facts in", values={"base_bytes": 1.0})
    assert "| `plain` | time limit: in ingest, 7 facts in | – | – | – | – | – | – | – | 0.0 |" in markdown([stopped])


@pytest.mark.parametrize(("children", "values"), [(0, {"p50_ms", "query_cpu_ms"}), (7, {"p50_ms"})])
def test_work_in_a_sandbox_has_its_memory_told_and_no_processor_time(
    children: int, values: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"phase": "end", "peak_bytes": 5, "p50_ms": 2.0, "query_cpu_ms": 1.0}
    monkeypatch.setattr(scale, "run_within", lambda *_: Ended("", "", told, children))
    results = Results(tmp_path / "results.jsonl", TERMS)
    found = scale._measured("r", "hermes", 10, Inputs(tmp_path), ROOMY, results)
    assert (found.outcome, found.values["memory_bytes"]) == (Outcome.OK, 5 + children)
    assert set(found.values) == values | {"memory_bytes"}


@pytest.mark.parametrize(
    ("told", "fault", "outcome"),
    [
        ({"phase": "start", "failed": "no sandbox", "unavailable": True}, "", Outcome.UNAVAILABLE),
        ({"phase": "search", "failed": "it is damaged", "unavailable": False}, "", Outcome.ERROR),
        ({"phase": "ingest"}, "MemoryError", Outcome.ERROR),
        ({"phase": "ingest"}, "", Outcome.ERROR),
    ],
)
def test_what_fails_is_an_error_and_no_result(
    told: dict, fault: str, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "run_within", lambda *_: Ended("", fault, told))
    results = Results(tmp_path / "results.jsonl", TERMS)
    found = scale._measured("r", "plain", 10, Inputs(tmp_path), ROOMY, results)
    assert found.outcome is outcome
    assert found.detail


# --- all of it


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(scale, "embedder_for", lambda _: Hashed())

    def called(*arguments: str) -> tuple[int, dict]:
        code = scale.main(["--folder", str(tmp_path), "--json", *arguments])
        told = capsys.readouterr()
        return code, json.loads(told.out) if told.out else {"error": told.err}

    return called


def test_measures_resumes_and_sets_against_the_floors(call) -> None:
    options = ("--sizes", "60,120", "--systems", "plain,dense")
    code, told = call(*options)
    assert code == 0
    assert [(each["system"], each["facts"]) for each in told["rows"]] == [
        (system, size) for size in (60, 120) for system in ("fts5", "matrix", "plain", "dense")
    ]
    rows = {(each["system"], each["facts"]): each for each in told["rows"]}
    assert rows["plain", 60]["floors"] == ["fts5"]
    assert rows["dense", 60]["floors"] == ["matrix"]
    assert {each["values"]["queries"] for each in told["rows"]} == {79}
    expected = rows["dense", 120]["values"]["p50_ms"] / rows["matrix", 120]["values"]["p50_ms"]
    assert rows["dense", 120]["ratios"]["p50_ms"] == pytest.approx(expected)
    assert told["growth"]["dense"]["disk_bytes"]["points"] == 2
    assert call(*options) == (0, told)


def test_a_system_that_is_stopped_is_not_tried_with_more(call) -> None:
    code, told = call("--sizes", "60,120", "--systems", "plain", "--limit-seconds", "0.05")
    assert code == 0
    assert [each["outcome"] for each in told["rows"]] == ["time limit"] * 3 + ["not tried"] * 3
    assert not any(name in each["values"] for each in told["rows"] for name in ("p50_ms", "memory_bytes"))
    assert told["growth"]["plain"] == {}


@pytest.mark.parametrize("wrong", [("--sizes", "0"), ("--sizes", "many"), ("--systems", "nothing"), ("--systems", "")])
def test_wrong_options_are_one_line(wrong: tuple[str, str], call) -> None:
    code, told = call(*wrong)
    assert code == 2
    assert told["error"].count("\n") == 1
