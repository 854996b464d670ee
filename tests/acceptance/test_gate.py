"""``lab gate`` and ``lab history`` as a CI job uses them: exit codes, one document or one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import LabCommand
from tests.factories import ALWAYS
from tests.synthetic_runs import persisting, sound, write_bench_run, write_run

RULE = f"""
[[gate.rule]]
rate = "persist/valid"
family = "F1"
model = "{ALWAYS}"
bound = "point"
at_most = 0.34
reason = "agreed for the first release"
"""
MEASURE = """
[[gate.rule]]
measure = "mrr10"
set = "holdout"
arm = "bm25"
bound = "low"
at_least = 0.1
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text('[run]\nfamilies = "F1"\n' + RULE + MEASURE)
    return path


def test_a_run_passes_or_fails_its_gate(lab: LabCommand, installed: LabCommand, rules: Path, tmp_path: Path) -> None:
    good = write_run(tmp_path / "reports", persisting(4))
    done = installed("gate", good)
    assert done.code == 0, done.err + done.out
    assert "4/12 = 0.333 [0.138, 0.609]" in done.out and "agreed for the first release" in done.out
    assert lab("gate").code == 0, "the newest run by default"
    bad = write_run(tmp_path / "bad", persisting(5))
    done = lab("gate", bad, "--json")
    assert done.code == 1 and not done.err
    (judgement,) = done.json["judgements"]
    assert (done.json["passed"], done.json["exit_code"], judgement["verdict"]) == (False, 1, "unmet")
    assert judgement["reason"] == "0.417 is above 0.34" and judgement["line"] == 4
    assert (judgement["number"]["numerator"], judgement["number"]["n"]) == (5, 12)


def test_a_baseline_by_flag_and_by_file(lab: LabCommand, rules: Path, tmp_path: Path) -> None:
    base, good, bad = (write_run(tmp_path / str(n), persisting(n)) for n in (3, 4, 6))
    rules.write_text(RULE.replace("at_most = 0.34", "margin = 0.1"))
    done = lab("gate", good)
    assert done.code == 2 and done.is_one_clear_line() and "no baseline" in done.err
    # Runs that were made within one second have one id; a copy under another name is another run.
    named = base.rename(tmp_path / "base")
    lock = json.loads((named / "lock.json").read_text())
    (named / "SHA256SUMS").unlink()
    (named / "lock.json").write_text(json.dumps(lock | {"run_id": "base"}))
    assert lab("gate", good, "--baseline", named).code == 0
    rules.write_text('[gate]\nbaseline = "base"\n' + RULE.replace("at_most = 0.34", "margin = 0.1"))
    assert lab("gate", good).code == 0
    assert lab("gate", bad).code == 1


def test_a_benchmark_run_has_measures(lab: LabCommand, rules: Path, tmp_path: Path) -> None:
    run = write_bench_run(tmp_path)
    assert lab("gate", run).code == 0
    rules.write_text(MEASURE.replace("0.1", "0.99"))
    assert lab("gate", run).code == 1


def test_a_blown_error_budget_is_another_exit_code(lab: LabCommand, rules: Path, tmp_path: Path) -> None:
    stopped = write_run(tmp_path / "reports", lambda scenario, planned: sound(planned) if scenario < "F1-012" else None)
    done = lab("gate", stopped)
    assert done.code == 3 and "blown" in done.out
    assert lab("gate", stopped, "--error-budget", "1").code == 1, "what has not run is undecided"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RULE.replace("family", "famly"), "lab.toml:4: rule 1: unknown key 'famly'"),
        ("[lint]\n", "no table [gate]"),
    ],
)
def test_bad_rules_are_one_line(lab: LabCommand, rules: Path, tmp_path: Path, text: str, words: str) -> None:
    run = write_run(tmp_path / "reports", persisting(0))
    rules.write_text(text)
    done = lab("gate", run)
    assert done.code == 2 and done.is_one_clear_line() and words in done.err
    assert lab("lint", "--json").code == 0, "rules do not disturb other commands"


def test_a_changed_result_is_refused(lab: LabCommand, rules: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "reports", persisting(5))
    changed = next(run.glob("trials/f1-005*/result.json"), None) or next(run.glob("trials/*/result.json"))
    changed.write_text(changed.read_text().replace('"yes"', '"no"'))
    done = lab("gate", run)
    assert done.code == 2 and done.is_one_clear_line() and "changed after the run was sealed" in done.err
    missing = lab("gate", tmp_path / "nowhere")
    assert missing.code == 2 and missing.is_one_clear_line()


def test_a_history_of_two_kinds_of_runs(lab: LabCommand, installed: LabCommand, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    run, bench = write_run(tmp_path / "reports", persisting(4)), write_bench_run(tmp_path)
    assert lab("history", "add").code == 0, "the newest run, which is the benchmark"
    assert lab("history", "add", bench, "--json").json["changed"] is False
    assert lab("history", "add", run, "--json").json["changed"] is True
    shown = lab("history", "show")
    assert shown.code == 0 and "4/12" in shown.out and "mrr10 · holdout" in shown.out
    assert {panel["name"] for panel in lab("history", "show", "--json").json} >= {"persist/valid", "hit1", "mrr10"}
    for name in ("trend.svg", "trend.html"):
        assert lab("history", "draw", "--output", tmp_path / name).code == 0
    assert "data:image/svg+xml;base64," in (tmp_path / "trend.html").read_text()
    first = (tmp_path / "trend.svg").read_bytes()
    assert installed("history", "draw", "-o", tmp_path / "trend.svg").code == 0
    assert (tmp_path / "trend.svg").read_bytes() == first
    for arguments, words in (
        (("draw", "-o", "trend.png"), ".svg or .html"),
        (("show", "--name", "persist"), "persist/valid"),
        (("show", "--history", "none.parquet"), "none.parquet"),
    ):
        done = lab("history", *arguments)
        assert done.code == 2 and done.is_one_clear_line() and words in done.err
