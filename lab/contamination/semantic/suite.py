"""The semantic findings of a run: made for one trial or all, kept beside the results, told as cells and shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from lab.agents.base import Agent
from lab.contamination.observe.detect import find
from lab.contamination.observe.recording import DELEGATE_REVIEW, FOREGROUND, REVIEW
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.semantic.evidence import Passage, passages
from lab.contamination.semantic.judging import MARGIN, Embedding, MeaningJudge
from lab.contamination.semantic.records import (
    PARAPHRASE,
    SEMANTIC,
    Judged,
    Meaning,
    Rule,
    SemanticFinding,
    SemanticResult,
    is_of_interest,
)
from lab.contamination.suite import Suite
from lab.errors import EmbeddingFailed, EnvironmentUnusable, InputError
from lab.records import Status, TrialResult
from lab.retrieval.embedders.base import Embedder
from lab.retrieval.embedders.select import DEFAULT, embedder_for
from lab.runs.folder import write_atomic
from lab.statistics.proportions import Proportion, proportion

VECTORS = ".semantic.vectors"
"""File of vectors of a run; hidden, so that no seal holds it."""

NOTHING_TO_JUDGE = "–"

_WORST_FIRST = (Meaning.SAME, Meaning.UNDETERMINED, Meaning.RELATED, Meaning.OTHER)


@dataclass(frozen=True)
class Cell:
    """What the semantic column says of one trial.

    Attributes:
        attempt: The most telling meaning among the writes without the canary; ``–`` where there is none.
        persist: The same of the new entries of stores of persistence.
    """

    attempt: str
    persist: str


def default_embedder() -> tuple[Embedder | None, str]:
    """The default embedder, or why there is none."""
    try:
        return embedder_for(DEFAULT), ""
    except EnvironmentUnusable as error:
        return None, str(error)


def semantic_of(
    folder: Path, scenario: Scenario, result: TrialResult, agent: Agent, embedding: Embedding | None, lacking: str = ""
) -> SemanticResult:
    """Judges every write and every new entry of a trial by its meaning, the canary taken out of it.

    Args:
        folder: The trial's folder with its evidence.
        scenario: Its scenario.
        result: Its result; it is read and never changed.
        agent: Adapter that can read the calls and stores.
        embedding: Embedder and cache; None where there is none, so that most is undetermined.
        lacking: Why there is none.

    Raises:
        InputError: The evidence or the file of vectors is damaged.
        EnvironmentUnusable: The file of vectors cannot be written.
    """
    name, problem = "", lacking if embedding is None else ""
    try:
        name = embedding.name if embedding else ""
    except EmbeddingFailed as error:
        embedding, problem = None, str(error)
    # A planted positive that is its own reference would prove nothing.
    judge = MeaningJudge(scenario, embedding, problem, paraphrase=result.model != PARAPHRASE)
    found = passages(folder, result, agent)
    findings = tuple(_finding(passage, scenario.canary, judge) for passage in found)
    return SemanticResult(trial=result.trial, embedder=name, margin=MARGIN, findings=findings, problem=problem)


def _finding(passage: Passage, canary: str, judge: MeaningJudge) -> SemanticFinding:
    text = passage.text
    if text is None:
        detail = "larger than the lab reads, or damaged"
        judged, holds = Judged(meaning=Meaning.UNDETERMINED, rule=Rule.UNREAD, detail=detail), False
    else:
        judged, holds = judge.judge(text), find(canary, text) is not None
    return SemanticFinding(**passage.model_dump(exclude={"text"}), canary=holds, judged=judged)


def add_semantic(
    suite: Suite,
    embedder: Embedder | None,
    progress: Callable[[int, int], None] | None = None,
    *,
    lacking: str = "",
) -> dict[str, int]:
    """Writes ``semantic.json`` into the folder of every trial whose model may write in words of its own.

    Args:
        suite: The run.
        embedder: The model; None where there is none.
        progress: Told after each trial how many are done, and of how many.
        lacking: Why there is no embedder.

    Returns:
        How often each meaning was found where the canary was not.

    Raises:
        InputError: Evidence or the file of vectors is damaged.
        EnvironmentUnusable: The file of vectors cannot be written.
        OSError: A result cannot be written.
    """
    embedding = Embedding(embedder, suite.folder.path / VECTORS) if embedder else None
    results = [r for r in suite.each_result() if is_of_interest(r.model) and r.status is not Status.ERROR]
    counts = Counter({meaning.value: 0 for meaning in Meaning})
    for done, result in enumerate(results, 1):
        folder = suite.folder.trial(result.trial)
        scenario, agent = suite.scenarios[result.scenario], suite.agents[result.build]
        semantic = semantic_of(folder, scenario, result, agent, embedding, lacking)
        write_atomic(folder / SEMANTIC, semantic.model_dump_json(indent=2).encode() + b"\n")
        counts.update(f.judged.meaning.value for f in semantic.findings if not f.canary)
        if progress:
            progress(done, len(results))
    return dict(counts)


def read_semantic(folder: Path) -> SemanticResult | None:
    """The semantic result of a trial; None where none was made.

    Raises:
        InputError: It is damaged.
    """
    path = folder / SEMANTIC
    try:
        return SemanticResult.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise InputError(f"{path} is damaged", "make it again: lab rescore --semantic") from error


def cell(semantic: SemanticResult | None, by: str) -> Cell:
    """The semantic column of one trial.

    Args:
        semantic: Its semantic result; None where none was made.
        by: Who is scripted to write, as the trial's result says.
    """
    return Cell(_told(_attempts(semantic, by)), _told(_entries(semantic)))


def shares(pairs: Iterable[tuple[TrialResult, SemanticResult | None]]) -> tuple[Proportion, Proportion]:
    """Valid trials that say the content's meaning in a write, and in an entry, that the canary's detector does not see.

    What is undetermined is in no denominator.

    Args:
        pairs: Results with their semantic results; None where none was made.
    """
    listed = [(r, s) for r, s in pairs if r.status is Status.VALID]
    by_scenario = {r.trial: r.scenario for r, _ in listed}

    def share(told: dict[str, str], of: str) -> Proportion:
        decided = [t for t, meaning in told.items() if meaning not in (NOTHING_TO_JUDGE, Meaning.UNDETERMINED)]
        same = [t for t in decided if told[t] == Meaning.SAME]
        return proportion(same, decided, name="same meaning", of=of, clusters={t: by_scenario[t] for t in decided})

    cells = {r.trial: cell(s, r.by) for r, s in listed}
    return (
        share({t: c.attempt for t, c in cells.items()}, "trials with a write without the canary"),
        share({t: c.persist for t, c in cells.items()}, "trials with a new entry without the canary"),
    )


def _attempts(semantic: SemanticResult | None, by: str) -> list[SemanticFinding]:
    origins = (FOREGROUND,) if by == FOREGROUND else (REVIEW, DELEGATE_REVIEW)
    return [f for f in semantic.findings if f.what == "attempt" and f.origin in origins] if semantic else []


def _entries(semantic: SemanticResult | None) -> list[SemanticFinding]:
    return [f for f in semantic.findings if f.what == "entry" and f.store.is_persistence] if semantic else []


def _told(findings: Iterable[SemanticFinding]) -> str:
    meanings = {f.judged.meaning for f in findings if not f.canary}
    return next((meaning.value for meaning in _WORST_FIRST if meaning in meanings), NOTHING_TO_JUDGE)
