"""The kinds of files that the lab reads and writes: how each is recognised, its model, its published JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lab.agents.base import Setup
from lab.contamination.judgements import JUDGEMENTS
from lab.contamination.observe.judge import Course
from lab.contamination.run_files import BenchLockFile, LockFile, PlanFile
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.scenarios.schema import scenario_schema
from lab.contamination.stores import Manifest as HomeManifest
from lab.gateway.exchange import Exchange
from lab.records import TrialResult
from lab.records.described import published, schema_file_text, summary
from lab.report.model import Report
from lab.report.suite_kinds import DOCUMENTS, LINES_OF, SuitesLockFile, labelled_kind
from lab.retrieval.data.head import SetHead
from lab.retrieval.data.load import FactLine
from lab.retrieval.data.schema import line_schema
from lab.retrieval.results import BenchResult
from lab.retrieval.rows import PASSES, ROWS, TIMES, Passes, TopicRow
from lab.retrieval.testset import Topic
from lab.retrieval.timing import ArmTiming, BenchTiming
from lab.snapshots.manifest import Manifest as SnapshotManifest
from lab.snapshots.manifest import manifest_schema

JSON, LINES, YAML, TABLE, TOML = "json", "jsonl", "yaml", "tsv", "toml"


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes:
        name: Its name on the command line.
        form: ``json``, ``jsonl`` (one object a line), ``yaml``, ``tsv`` or ``toml``.
        model: What it is read as; None for what is no JSON.
        files: Names of files that are always of this kind.
        fields: Fields that no other kind has together, for files of another name.
        values: Values that some of them must have.
        strict: Whether a number in quotes is no number.
        schema: Makes its schema where that is more than the model's.
    """

    name: str
    form: str
    model: type[BaseModel] | None
    files: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    values: Mapping[str, Any] | None = None
    strict: bool = False
    schema: Callable[[], dict[str, Any]] | None = None


def _fields(text: str) -> frozenset[str]:
    return frozenset(text.split())


KINDS: tuple[Kind, ...] = (
    Kind("scenario", YAML, Scenario, (), _fields("schema canary transcript"), schema=scenario_schema),
    Kind("setup", YAML, Setup, (), _fields("name description")),
    Kind("set", YAML, SetHead, ("set.yaml",), _fields("name purpose")),
    Kind(
        "topic",
        LINES,
        Topic,
        ("topics.jsonl",),
        _fields("id text topic_class"),
        strict=True,
        schema=lambda: line_schema("topic"),
    ),
    Kind(
        "fact", LINES, FactLine, ("facts.jsonl",), _fields("id text"), strict=True, schema=lambda: line_schema("fact")
    ),
    Kind("qrels", TABLE, None, ("qrels.tsv",)),
    Kind(
        "snapshot-manifest",
        JSON,
        SnapshotManifest,
        ("manifest.json",),
        _fields("content_sha256 format"),
        schema=manifest_schema,
    ),
    Kind("bench-lock", JSON, BenchLockFile, (), _fields("run_id lab_version k"), {"kind": "bench"}),
    Kind("suites-lock", JSON, SuitesLockFile, (), _fields("run_id lab_version suites"), {"kind": "suites"}),
    Kind("lock", JSON, LockFile, (), _fields("run_id lab_version")),
    Kind("report", JSON, Report, ("report.json",), _fields("accounting trials controls")),
    Kind("plan", JSON, PlanFile, ("plan.json",), _fields("trials")),
    Kind("result", JSON, TrialResult, ("result.json",), _fields("trial verdicts")),
    Kind("course", JSON, Course, ("course.json",), _fields("cause loaded")),
    Kind("exchange", LINES, Exchange, ("requests.jsonl",), _fields("seq phase request")),
    Kind(
        "home-manifest",
        JSON,
        HomeManifest,
        ("home-before.json", "home-after.json", "home-settled.json"),
        _fields("files hidden"),
    ),
    Kind("bench-results", JSON, BenchResult, ("results.json",), _fields("format sets tie_rule")),
    Kind("bench-timing", JSON, BenchTiming, ("timing.json",), _fields("started arms")),
    Kind("bench-row", LINES, TopicRow, (), _fields("topic hits")),
    Kind("bench-passes", JSON, Passes, (), _fields("settings again fresh")),
    Kind("bench-arm-timing", JSON, ArmTiming, (), _fields("p50 p95")),
    Kind("config", TOML, None, ("lab.toml",)),
    *(Kind(name, JSON, model, (file,)) for file, (name, model) in DOCUMENTS.items()),
    *(Kind(name, LINES, model, strict=True) for name, model in dict(LINES_OF.values()).items()),
)
"""In the order in which a file of another name is recognised by its fields: what has more of them comes first."""

BY_NAME = {kind.name: kind for kind in KINDS}


def kind_by_place(path: Path) -> Kind | None:
    """The kind that a file's name and place tell; None where they tell nothing."""
    if name := labelled_kind(path):
        return BY_NAME[name]
    if path.parent.name == JUDGEMENTS:
        return BY_NAME["result"]
    if path.parent.parent.name == ROWS:
        ends = {PASSES: "bench-passes", TIMES: "bench-arm-timing", ".jsonl": "bench-row"}
        return next((BY_NAME[name] for end, name in ends.items() if path.name.endswith(end)), None)
    return next((kind for kind in KINDS if path.name in kind.files), None)


def kind_by_fields(value: Any, forms: tuple[str, ...]) -> Kind | None:
    """The kind that the fields of a document, or of a file's first line, tell; None where they tell nothing."""
    if not isinstance(value, dict):
        return None
    for kind in KINDS:
        told = all(value.get(field) == wanted for field, wanted in (kind.values or {}).items())
        if kind.fields and kind.form in forms and kind.fields <= set(value) and told:
            return kind
    return None


def schema_of(kind: Kind) -> dict[str, Any] | None:
    """The JSON Schema (draft 2020-12) of a kind, of one line where it has lines; None for what is no JSON."""
    if kind.schema:
        return kind.schema()
    if kind.model is None:
        return None
    made = kind.model.model_json_schema(mode="validation", by_alias=True)
    rest = {key: value for key, value in made.items() if key != "description"}
    return published({"description": summary(kind.model.__doc__ or ""), **rest}, kind.name, 1, kind.name)


def schema_texts() -> dict[str, str]:
    """The published schemas as they are written to disk, by file name."""
    made = {kind.name: schema_of(kind) for kind in KINDS}
    return {f"{name}.schema.json": schema_file_text(schema) for name, schema in made.items() if schema is not None}


def publish(folder: Path) -> None:
    """Writes the schemas into a folder, which exists; ``make schemas`` calls it."""
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
