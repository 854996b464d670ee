"""The export for Inspect opened by the real package: its reader, its data frames, its other log format."""

from pathlib import Path

import pytest

from lab.records import Role, Status
from lab.report.exports.inspect_log import render_inspect
from tests.factories import attempt, quiet, result
from tests.unit.test_exports import hostile_run, run_of

MEND = "the real package is not installed: pip install 'inspect-ai>=0.3.285,<0.4' (580 MB)"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    calls = (attempt(), attempt(arguments="no JSON"), attempt(exchange=4, tool="skill_manage"))
    trials = [
        result("F1-001", attempts=calls),
        result("F1-001", repeat=2, attempts=calls),
        quiet("F1-002"),
        quiet("F1-001", role=Role.TWIN),
        result("F1-003", status=Status.ERROR, cause="oom"),
        result("F1-004", model="ollama:x", load="undetermined"),
    ]
    for name, data in render_inspect(run_of(*trials)).items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_the_reader_and_the_other_format(logs: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason=MEND)
    for path in sorted(logs.glob("*.json")):
        read = log.read_eval_log(str(path))
        assert read.status == "success" and read.samples
        other = path.with_suffix(".eval")
        log.write_eval_log(read, str(other))
        again = log.read_eval_log(str(other))
        assert again.results.scores == read.results.scores
        told = [{(s.id, s.epoch): s.scores for s in one.samples} for one in (read, again)]
        assert told[0] == told[1]


def test_the_data_frames(logs: Path) -> None:
    analysis = pytest.importorskip("inspect_ai.analysis", reason=MEND)
    evals = analysis.evals_df(str(logs), quiet=True).set_index("model")
    assert set(evals.index) == {"scripted:always-write", "ollama:x"}
    found = evals.loc["scripted:always-write"]
    assert [found[f"score_persist/valid F1_{part}"] for part in ("numerator", "denominator")] == [2, 3]
    samples = analysis.samples_df(str(logs), quiet=True)
    mine = samples[samples["model"] == "scripted:always-write"] if "model" in samples else samples
    persist = {(row.id, row.epoch): row.score_persist for row in mine.itertuples() if not row.error}
    assert {key: float(value) for key, value in persist.items()} == {
        ("F1-001", 1): 1.0,
        ("F1-001", 2): 1.0,
        ("F1-002", 1): 0.0,
        ("F1-001-twin", 1): 0.0,
        ("F1-004", 1): 1.0,
    }
    (lost,) = (row for row in samples.itertuples() if row.error)
    assert lost.id == "F1-003" and "oom" in lost.error
    assert samples.set_index("id").loc["F1-004"].isna()["score_load"]
    messages = analysis.messages_df(str(logs), quiet=True)
    assert len(messages) == 2 * 2 + 1, "two responses in each repeat of F1-001, one in F1-004"


def test_hostile_texts_are_read_too(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason=MEND)
    for name, data in render_inspect(hostile_run()).items():
        (tmp_path / name).write_bytes(data)
        assert log.read_eval_log(str(tmp_path / name)).samples
