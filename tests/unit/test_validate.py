"""Every kind of file is recognised and checked; its published schema is current and says the same as the reader."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from lab.cli.app import app, defaults
from lab.cli.report import report
from lab.contamination.semantic.records import SemanticResult
from lab.errors import InputError
from lab.records import RESULT_SCHEMA
from lab.report.formats import BY_NAME, KINDS, schema_of, schema_texts
from lab.report.suite_kinds import LINES_OF
from lab.report.validate import MAX_FAULTS, Checked, Fault, check
from lab.retrieval.results import BenchResult
from lab.retrieval.rows import HitRow, Passes, TopicRow
from lab.retrieval.timing import ArmTiming, BenchTiming
from lab.runs.lock import make_lock
from lab.suites.registry import SuiteResults
from tests.golden_runs import RUNS, unpack

PROJECT = Path(__file__).parents[2]
PUBLISHED = PROJECT / "docs" / "schema"
SHA = "a" * 64


def look(path: Path, kind: str = "") -> Checked:
    return check(path, BY_NAME.get(kind), defaults)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An old run, whose report is of today: reports are derived."""
    folder = unpack(RUNS[-1], tmp_path_factory.mktemp("golden"))
    report(folder, folder.parent)
    return folder


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


UNTOLD = {"semantic", "suite-results", *(name for name, _ in LINES_OF.values())}
"""Kinds that are told by name and place alone."""


def bench(root: Path) -> dict[str, Path]:
    row = TopicRow(
        topic="T1",
        topic_class="single",
        store="main",
        answerable=True,
        rank=1,
        hits=(HitRow(fact="F1", score=1.0),),
    )
    timing = ArmTiming(p50={"total": 1.0}, p95={"total": 2.0}, n={"total": 1})
    rows = root / "rows" / "personal"
    inputs = {"kind": "bench", "k": 10, "sets": [], "arms": []}
    whole = BenchTiming(started="2026-01-01", seconds=1, arms={"personal": {"bm25": timing}})
    return {
        "bench-row": write(rows / "bm25.jsonl", row.model_dump_json() + "\n"),
        "bench-passes": write(
            rows / "bm25.passes.json", Passes(settings={}, again=0, changed=0, fresh=True).model_dump_json()
        ),
        "bench-arm-timing": write(rows / "bm25.timing.json", timing.model_dump_json()),
        "bench-timing": write(root / "timing.json", whole.model_dump_json()),
        "bench-results": write(root / "results.json", BenchResult(lab_version="1", k=10, sets=()).model_dump_json()),
        "bench-lock": write(root / "lock.json", make_lock("x", inputs)),
    }


def samples(run: Path, root: Path) -> dict[str, Path]:
    trial = sorted((run / "trials").iterdir())[-1]
    personal = PROJECT / "scenarios" / "retrieval" / "personal"
    return {
        "scenario": PROJECT / "scenarios" / "F1" / "F1-001.yaml",
        "setup": PROJECT / "containers" / "hermes" / "setups" / "default.yaml",
        "set": personal / "set.yaml",
        "fact": personal / "facts.jsonl",
        "topic": personal / "topics.jsonl",
        "qrels": personal / "qrels.tsv",
        "lock": run / "lock.json",
        "plan": run / "plan.json",
        "report": run / "report.json",
        "result": trial / "result.json",
        "course": trial / "course.json",
        "exchange": trial / "requests.jsonl",
        "home-manifest": trial / "home-after.json",
        "config": write(root / "lab.toml", '[run]\njobs = 2\n\n[redact]\npatterns = ["CUST-[0-9]+"]\n'),
        **bench(root),
        **suites(root / "suites"),
    }


def suites(root: Path) -> dict[str, Path]:
    results = SuiteResults(run_id="x", lab_version="1", suites=())
    semantic = SemanticResult(trial="t", embedder="", margin=0.3)
    labelled = {
        name: next((PROJECT / "scenarios").glob(f"**/{folder}/**/{file}"))
        for (folder, file), (name, _) in LINES_OF.items()
    }
    return {
        **labelled,
        "suites-lock": write(root / "lock.json", make_lock("x", {"kind": "suites", "suites": {}})),
        "suite-results": write(root / "suites.json", results.model_dump_json()),
        "semantic": write(root / "semantic.json", semantic.model_dump_json()),
    }


def test_every_kind_is_recognised_and_sound(run: Path, tmp_path: Path) -> None:
    files = samples(run, tmp_path)
    assert set(files) == set(BY_NAME) - {"snapshot-manifest"}, "its own tests have one"
    for kind, path in files.items():
        assert look(path) == Checked(file=str(path), kind=kind, faults=())


def test_files_of_other_names_are_recognised_by_their_fields(run: Path, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    for kind, path in samples(run, tmp_path / "made").items():
        other = tmp_path / f"other-{kind}{path.suffix}"
        shutil.copy(path, other)
        if kind in UNTOLD:
            assert look(other).kind != kind  # its fields do not tell it from others: its place does
            assert look(other, kind).faults == ()
        elif kind in ("qrels", "config"):
            assert look(other).kind == "" and "of no kind that the lab knows" in look(other).faults[0].message
            assert look(other, kind).faults == ()
        else:
            assert (kind, look(other).kind) == (kind, kind)
    assert look(run / "scenarios" / "F1-001.json").kind == "scenario"
    kept = tmp_path / "judgements" / "1.json"
    kept.parent.mkdir()
    shutil.copy(next(run.glob("trials/*/result.json")), kept)
    assert look(kept) == Checked(file=str(kept), kind="result", faults=())


@pytest.mark.parametrize(
    ("kind", "old", "new", "fault"),
    [
        ("result", '"status": "valid"', '"status": "good"', Fault(path="/status", message="…")),
        ("result", '"value": "yes"', '"value": "perhaps"', Fault(path="/verdicts/delivered/value", message="…")),
        ("plan", '"repeat": 1', '"repeat": "one"', Fault(path="/trials/0/repeat", message="…")),
        ("lock", '"plan_digest"', '"plan"', Fault(path="/plan_digest", message="…")),
        ("report", '"planned": 2', '"planned": 3', Fault(path="/accounting", message="…")),
        ("exchange", '"seq":1,', '"seq":"x",', Fault(line=1, path="/seq", message="…")),
        ("home-manifest", '"sha256": "', '"sha256": "../', Fault(path="…", message="…")),
        ("fact", '{"id": "F0002"', '{"idd": "F0002"', Fault(line=2, path="/id", message="…")),
        ("topic", '"text": "', '"text": 7, "x": "', Fault(line=1, path="/text", message="…")),
        ("qrels", "\t0\t", "\t", Fault(line=1, message="…")),
        ("set", "name: ", "name: [", Fault(line=2, message="…")),
        ("scenario", "canary:", "canry:", Fault(line=1, message="…")),
        ("setup", "name:", "nam:", Fault(path="/name", message="…")),
        ("bench-row", '"rank":1', '"rank":"a"', Fault(line=1, path="/rank", message="…")),
        ("bench-results", '"sets":[]', '"sets":5', Fault(path="/sets", message="…")),
        ("bench-timing", '"p50":{', '"p5":{', Fault(path="/arms/personal/bm25/p50", message="…")),
        ("config", "jobs", "jbs", Fault(message="…")),
        ("config", "[run]", "[run", Fault(message="…")),
        ("config", '["CUST', '"CUST', Fault(message="…")),
    ],
)
def test_each_fault_is_told_with_its_place(
    kind: str, old: str, new: str, fault: Fault, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "made").mkdir()
    path = samples(run, tmp_path / "made")[kind]
    text = path.read_text()
    if kind == "fact":
        first, second, rest = text.split("\n", 2)
        text, old = f'{first}\n{{"id": "F0002"{second[second.index(",") :]}\n{rest}', '{"id": "F0002"'
    assert old in text
    broken = tmp_path / path.name
    broken.write_text(text.replace(old, new, 1))
    found = look(broken, kind).faults
    assert found, "the fault is not seen"
    told = [(f.line, f.path) for f in found]
    if fault.path != "…" and kind not in ("scenario", "set"):
        assert (fault.line, fault.path) in told
    assert all(f.line > 0 for f in found if kind in ("scenario", "set", "qrels", "fact", "topic"))
    assert all(str(broken) not in f.message for f in found)


def test_many_faults_are_bounded_and_broken_files_are_one_fault(tmp_path: Path) -> None:
    lines = write(tmp_path / "facts.jsonl", '{"id": 1}\n' * 500)
    assert len(look(lines).faults) == MAX_FAULTS + 1
    for name, content in (("result.json", b"{"), ("result.json", b"\xff\xfe"), ("x.json", b"[]"), ("x.bin", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        assert len(look(path).faults) == 1
    for path in (tmp_path / "gone.json", tmp_path):
        assert len(look(path).faults) == 1
    deep = write(tmp_path / "plan.json", "[" * 100_000)
    assert len(look(deep).faults) == 1


def test_the_published_schemas_are_current() -> None:
    """Made anew by ``make schemas``."""
    texts = schema_texts()
    assert {path.name for path in PUBLISHED.iterdir()} == set(texts)
    for name, text in texts.items():
        assert (PUBLISHED / name).read_text() == text, f"{name} is not current: make schemas"


def test_the_schemas_take_what_the_readers_take(run: Path, tmp_path: Path) -> None:
    for kind in KINDS:
        if schema := schema_of(kind):
            jsonschema.Draft202012Validator.check_schema(schema)
    for name, path in samples(run, tmp_path).items():
        schema = schema_of(BY_NAME[name])
        if schema is None or path.suffix == ".yaml":
            continue
        texts = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        for text in texts[:20]:
            jsonschema.validate(json.loads(text), schema)
    result = json.loads(next(run.glob("trials/*/result.json")).read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(result | {"status": "good"}, schema_of(BY_NAME["result"]) or {})


def test_files_of_earlier_versions_are_sound_and_of_later_ones_are_not(tmp_path: Path) -> None:
    old = unpack("run-0.1.0", tmp_path)
    for path in (
        old / "lock.json",
        old / "plan.json",
        *old.glob("trials/*/*.jsonl"),
        *old.glob("trials/*/result.json"),
    ):
        assert look(path).faults == ()
    path = next(old.glob("trials/*/result.json"))
    path.write_text(path.read_text().replace('"schema_version": 1', f'"schema_version": {RESULT_SCHEMA + 1}'))
    (fault,) = look(path).faults
    assert f"result schema {RESULT_SCHEMA + 1} is not known" in fault.message


def test_the_command_prints_one_line_a_fault_and_exits_with_2(run: Path, tmp_path: Path) -> None:
    result = next(run.glob("trials/*/result.json"))
    broken = write(
        tmp_path / "result.json", result.read_text().replace('"status": "valid"', '"status": "go\\u001b[31mod"')
    )
    runner = CliRunner()
    done = runner.invoke(app, ["validate", str(result), str(broken)])
    assert done.exit_code == 2
    assert f"{result}: result, no fault" in done.output and f"{broken}:/status: Input should be" in done.output
    assert "\x1b[31m" not in done.output
    told = json.loads(runner.invoke(app, ["validate", str(broken), "--json"]).stdout)
    assert told[0]["kind"] == "result" and told[0]["faults"][0]["path"] == "/status"
    assert runner.invoke(app, ["validate", str(result)]).exit_code == 0
    assert json.loads(runner.invoke(app, ["validate", "--schema", "result"]).stdout) == schema_of(BY_NAME["result"])
    for wrong in (["validate"], ["validate", "--schema", "x"], ["validate", "--schema", "qrels"]):
        assert isinstance(runner.invoke(app, wrong).exception, InputError)
