"""Exports of benchmark runs: the report's numbers again, by ir_measures, pyarrow and by hand."""

import csv
import io
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lab.cli.bench_run import load_named
from lab.errors import InputError
from lab.report.exports.format_names import Format
from lab.report.exports.formats import WRITERS, export
from lab.report.exports.read import is_benchmark, read_benchmark
from lab.report.exports.source import BenchmarkRun
from lab.report.exports.summary import benchmark_summary
from lab.runs.folder import RunFolder
from tests.bench_runs import ARMS, BenchFolder, bench_folder

LOST = frozenset({"q0", "q7", "q9"})
"""Topics that the second arm cannot answer; q9 has no answer anyway."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> BenchFolder:
    return bench_folder(tmp_path_factory.mktemp("bench"), LOST)


@pytest.fixture(scope="module")
def run(made: BenchFolder) -> BenchmarkRun:
    folder = RunFolder(made.run)
    assert is_benchmark(folder)
    return read_benchmark(folder, lambda name: load_named(name, made.scenarios))


@pytest.mark.parametrize("arm", ARMS)
def test_ir_measures_gives_the_same_hit_rates_and_mrr(run: BenchmarkRun, tmp_path: Path, arm: str) -> None:
    measures = pytest.importorskip("ir_measures", reason="pip install 'agent-memory-lab[test]'")
    for name, data in export(run, [Format.TREC]).items():
        (tmp_path / name).write_bytes(data)
    own = tmp_path / f"made.{arm}.qrels"
    assert own.is_file() is (arm == ARMS[1])
    qrels = list(measures.read_trec_qrels(str(own if own.is_file() else tmp_path / "made.qrels")))
    ranking = list(measures.read_trec_run(str(tmp_path / f"made.{arm}.run")))
    wanted = [measures.Success @ k for k in (1, 5, 10)] + [measures.RR @ 10]
    found = measures.calc_aggregate(wanted, qrels, ranking)
    (scores,) = (one.scores[0] for one in run.result.sets[0].arms if one.arm == arm)
    ours = [Fraction(h.numerator, h.denominator) for h in (scores.hit1, scores.hit5, scores.hit10)]
    assert [found[m] for m in wanted] == pytest.approx([*map(float, ours), scores.mrr10.value], abs=1e-12)
    assert 0 < found[wanted[0]] < found[wanted[2]] < 1, "else the test would tell little"


def test_trec_lines_have_six_and_four_columns_and_fall_in_score(run: BenchmarkRun) -> None:
    files = export(run, [Format.TREC])
    assert set(files) == {"made.qrels", *(f"made.{arm}.run" for arm in ARMS), f"made.{ARMS[1]}.qrels"}
    for name, data in files.items():
        for line in data.decode().splitlines():
            if name.endswith(".qrels"):
                assert re.fullmatch(r"q\d+ 0 d\d+ 1", line)
            else:
                assert re.fullmatch(r"q\d+ Q0 d\d+ (\d+) -\1 [a-z+]+", line)
    judged = {line.split()[0] for line in files[f"made.{ARMS[1]}.qrels"].decode().splitlines()}
    assert {line.split()[0] for line in files["made.qrels"].decode().splitlines()} - judged == {"q0", "q7"}


def test_the_scores_come_out_of_the_long_table(run: BenchmarkRun) -> None:
    (data,) = export(run, [Format.CSV]).values()
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert len(rows) == 80
    for arm in run.result.sets[0].arms:
        mine = [row for row in rows if row["arm"] == arm.arm and row["scored"] == "true"]
        overall = arm.scores[0]
        assert len(mine) == overall.n
        for name, share in (("hit1", overall.hit1), ("hit5", overall.hit5), ("hit10", overall.hit10)):
            assert sum(row[name] == "true" for row in mine) == share.numerator
        exact = sum((Fraction(1, int(row["rank"])) for row in mine if row["rank"]), Fraction())
        assert float(exact / len(mine)) == overall.mrr10.value
        assert [float(row["rr10"]) for row in mine] == [1 / int(r["rank"]) if r["rank"] else 0.0 for r in mine]
    lost = [row for row in rows if row["error"]]
    assert {row["topic"] for row in lost} == LOST
    assert {(row["scored"], row["hit1"], row["rr10"]) for row in lost} == {("false", "", "")}


def test_the_summary_has_the_scores_of_the_report(run: BenchmarkRun) -> None:
    text = benchmark_summary(run).decode()
    for arm in run.result.sets[0].arms:
        for scores in arm.scores:
            assert f"{scores.hit5.numerator}/{scores.hit5.denominator} = " in text
    assert len(benchmark_summary(run, 1_500)) <= 1_500
    assert "Doubts" not in text
    doubted = run.result.model_copy(update={"doubts": ("its vectors are all alike",)})
    assert "`its vectors are all alike`" in benchmark_summary(replace(run, result=doubted)).decode()


def test_the_same_run_gives_the_same_bytes(made: BenchFolder, run: BenchmarkRun) -> None:
    formats = [name for name, writers in WRITERS.items() if writers.benchmark]
    again = read_benchmark(RunFolder(made.run), lambda name: load_named(name, made.scenarios))
    assert export(run, formats) == export(again, formats)


def test_a_set_that_was_changed_is_refused(tmp_path: Path) -> None:
    made = bench_folder(tmp_path)
    qrels = made.scenarios / "retrieval" / "made" / "qrels.tsv"
    lines = qrels.read_text().splitlines()
    qrels.write_text("\n".join(lines[:-1]) + "\n")
    run = read_benchmark(RunFolder(made.run), lambda name: load_named(name, made.scenarios))
    with pytest.raises(InputError, match="is not the one that the run measured"):
        export(run, [Format.TREC])


def test_an_id_that_no_column_carries_is_refused(run: BenchmarkRun) -> None:
    rows = {key: [r.model_copy(update={"topic": f"{r.topic} x"}) for r in mine] for key, mine in run.rows.items()}
    broken = BenchmarkRun(run.run_id, run.result, rows, run.qrels, run.checksums)
    with pytest.raises(InputError, match="cannot stand in a column of TREC"):
        export(broken, [Format.TREC])


def test_a_name_from_the_lock_names_no_file_elsewhere(tmp_path: Path) -> None:
    made = bench_folder(tmp_path)
    lock = json.loads((made.run / "lock.json").read_text())
    lock["arms"][0]["name"] = "../../made/plain"
    lock["pairs"] = []
    (made.run / "rows" / "made" / "x").mkdir()
    (made.run / "lock.json").write_text(json.dumps(lock))
    outside = made.run.parent / "made"
    outside.mkdir()
    for path in (made.run / "rows" / "made").glob("plain.*"):
        (made.run / "made").mkdir(exist_ok=True)
        (made.run / "made" / path.name).write_bytes(path.read_bytes())
    run = read_benchmark(RunFolder(made.run), lambda name: load_named(name, made.scenarios))
    with pytest.raises(InputError, match="cannot be a file's name"):
        export(run, [Format.TREC])


def test_a_format_for_the_other_kind_of_run_is_refused(run: BenchmarkRun) -> None:
    with pytest.raises(InputError, match="no junit of a benchmark run"):
        export(run, [Format.JUNIT])
