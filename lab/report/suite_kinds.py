"""The kinds of files that suites and the semantic detector read and write, by the folder in which they lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from lab.contamination.semantic.records import SemanticResult
from lab.contamination.semantic.validation import SemanticRow
from lab.memories.hfea.messages import Message
from lab.records import Record
from lab.retrieval.data.load import FactLine
from lab.suites.agreement.data import Case
from lab.suites.consolidation.data import Aged, Dispute, Telling
from lab.suites.fallback.data import FallbackTopic
from lab.suites.provenance.data import Utterance
from lab.suites.registry import SuiteResults
from lab.suites.supersession.data import Question, Statement


class SuitesLockFile(Record):
    """What decides the results of a run of suites.

    Attributes:
        schema_version: Version of this form.
        run_id: Id of the run.
        created: When; decides nothing.
        lab_version: Version of the lab.
        host: Facts about the host; decide nothing.
        kind: ``suites``.
        suites: Digests of the data and settings of each.
    """

    schema_version: int = 1
    run_id: str
    created: str
    lab_version: str
    host: dict[str, str]
    kind: str
    suites: dict[str, dict[str, object]]


LINES_OF: Mapping[tuple[str, str], tuple[str, type[BaseModel]]] = {
    ("agreement", "cases.jsonl"): ("agreement-case", Case),
    ("consolidation", "contradictions.jsonl"): ("consolidation-contradiction", Dispute),
    ("consolidation", "decay.jsonl"): ("consolidation-decay", Aged),
    ("consolidation", "duplicates.jsonl"): ("consolidation-duplicate", Telling),
    ("fallback", "facts.jsonl"): ("fallback-fact", FactLine),
    ("fallback", "sessions.jsonl"): ("session-message", Message),
    ("fallback", "topics.jsonl"): ("fallback-topic", FallbackTopic),
    ("provenance", "utterances.jsonl"): ("provenance-utterance", Utterance),
    ("supersession", "questions.jsonl"): ("supersession-question", Question),
    ("supersession", "statements.jsonl"): ("supersession-statement", Statement),
    ("detection", "semantic-development.jsonl"): ("semantic-text", SemanticRow),
    ("detection", "semantic-holdout.jsonl"): ("semantic-text", SemanticRow),
}
"""Files of labelled lines by suite and name: the name of their kind, and what a line is."""

DOCUMENTS: Mapping[str, tuple[str, type[BaseModel]]] = {
    "semantic.json": ("semantic", SemanticResult),
    "suites.json": ("suite-results", SuiteResults),
}
"""Documents by file name: the name of their kind, and what they are."""


def labelled_kind(path: Path) -> str:
    """Name of the kind of a file of labelled lines by where it lies; empty for any other file."""
    folders = [parent.name for parent in path.absolute().parents[:2]]
    return next((LINES_OF[folder, path.name][0] for folder in folders if (folder, path.name) in LINES_OF), "")
