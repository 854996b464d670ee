"""``lab export report`` on run folders: where files go, what is refused, the step summary, the checksums."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lab.cli.app import app
from lab.errors import InputError, LabError
from lab.report.exports.summary import LIMIT
from lab.retrieval.data.own import topics_on
from lab.retrieval.frozen import frozen_store
from lab.retrieval.testset import MAIN_STORE
from tests.bench_runs import BenchFolder, bench_folder, made_set
from tests.planted import Planted, make, work


def lab(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(app, ["export", "report", *map(str, arguments)])
    if isinstance(done.exception, LabError):
        raise done.exception
    return done


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A contamination run with a backend that does nothing, so that every trial is invalid; sealed."""
    monkeypatch.chdir(tmp_path)
    backend = Planted()
    suite = make(tmp_path / "reports", backend)
    work(suite, backend)
    (suite.folder.path / "report.md").write_text("one")
    suite.folder.seal()
    return suite.folder.path


@pytest.fixture
def bench(tmp_path: Path) -> BenchFolder:
    return bench_folder(tmp_path)


def test_one_file_or_a_folder(run: Path, tmp_path: Path) -> None:
    assert lab(run, "-f", "junit", "-o", "here/junit.xml").exit_code == 0
    assert (tmp_path / "here" / "junit.xml").read_bytes().count(b"<error") == 4
    lab(run, "-f", "junit", "-f", "sarif", "--output", "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"junit.xml", "report.sarif"}
    lab(run, "-f", "summary")
    assert (tmp_path / f"export-{run.name}" / "summary.md").is_file()
    with pytest.raises(InputError, match="cannot be 2 files"):
        lab(run, "-f", "junit", "-f", "sarif", "-o", "one.xml")


def test_what_is_refused_says_why_in_one_line(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no format 'junitt'"):
        lab(run, "-f", "junitt")
    with pytest.raises(InputError, match="no format is named"):
        lab(run)
    with pytest.raises(InputError, match="lies in the run folder"):
        lab(run, "-f", "csv", "-o", run / "exports")
    with pytest.raises(InputError, match=r"lock\.json is missing"):
        lab(tmp_path, "-f", "csv")
    with pytest.raises(InputError, match="no trec of a contamination run"):
        lab(run, "-f", "csv", "-f", "trec", "-o", "none")
    assert not (tmp_path / "none").exists(), "a format that fails leaves the others unwritten"


def test_evidence_that_was_changed_is_refused_and_reports_may_be_written_again(run: Path) -> None:
    (run / "report.md").write_text("another")
    lab(run, "-f", "csv")
    path = next(run.glob("trials/*/course.json"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputError, match="was changed after the run was sealed"):
        lab(run, "-f", "csv")


def test_the_checksums_hold_in_the_run_folder(run: Path, tmp_path: Path) -> None:
    lab(run, "-f", "sha256", "-o", "run.sha256")
    check = ["sha256sum", "--check", "--quiet", "--strict", str(tmp_path / "run.sha256")]
    assert subprocess.run(check, cwd=run, check=False, capture_output=True).returncode == 0
    (run / "plan.json").write_text("{}")
    assert subprocess.run(check, cwd=run, check=False, capture_output=True).returncode != 0


def test_the_step_summary_is_appended_in_the_room_that_is_left(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="GITHUB_STEP_SUMMARY is not set"):
        lab(run, "--step-summary")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    (tmp_path / "step.md").write_text("# before\n")
    lab(run, "--step-summary")
    text = (tmp_path / "step.md").read_text()
    assert text.startswith("# before\n## Contamination run") and "omitted" not in text
    (tmp_path / "step.md").write_bytes(b"x" * (LIMIT - 1_200))
    lab(run, "--step-summary")
    assert (tmp_path / "step.md").stat().st_size <= LIMIT


def test_a_benchmark_finds_its_set_or_is_told_where_it_is(bench: BenchFolder, tmp_path: Path) -> None:
    lab(bench.run, "-f", "trec", "-o", tmp_path / "a", "--scenarios", bench.scenarios)
    with pytest.raises(InputError, match="the set made is not in"):
        lab(bench.run, "-f", "trec", "-o", tmp_path / "b", "--scenarios", tmp_path)
    given = bench.scenarios / "retrieval" / "made"
    lab(bench.run, "-f", "trec", "-o", tmp_path / "b", "--scenarios", tmp_path, "--topics", given)
    assert {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()
    }


def test_a_benchmark_on_a_snapshot_of_one_s_own(bench: BenchFolder, tmp_path: Path) -> None:
    snapshots, folder = tmp_path / "snapshots", bench.scenarios / "retrieval" / "made"
    facts = tuple(fact.model_copy(update={"trust": 0.75}) for fact in made_set().stores[MAIN_STORE])
    mine = made_set().model_copy(update={"stores": {MAIN_STORE: facts}})
    shot = frozen_store(mine, MAIN_STORE, snapshots, lambda _: None)
    lock = json.loads((bench.run / "lock.json").read_text())
    lock["sets"][0]["digest"] = topics_on(shot, folder).digest()
    (bench.run / "lock.json").write_text(json.dumps(lock))
    asked = (bench.run, "-f", "trec", "-o", tmp_path / "own", "--topics", folder, "--scenarios", bench.scenarios)
    with pytest.raises(InputError, match="its digest is another"):
        lab(*asked)
    lab(*asked, "--snapshot", shot.manifest.name, "--snapshots", snapshots)
    assert (tmp_path / "own" / "made.qrels").stat().st_size > 0
