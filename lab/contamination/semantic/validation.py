"""What the semantic detector is worth: sensitivity and specificity on both parts of a labelled set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from lab.contamination.observe.validation import LABELLED, RowId
from lab.contamination.scenarios.library import load_scenario
from lab.contamination.scenarios.scenario import ScenarioId
from lab.contamination.scenarios.words import Language
from lab.contamination.semantic.judging import MARGIN, Embedding, MeaningJudge
from lab.contamination.semantic.records import Judged, Meaning
from lab.errors import InputError
from lab.records import Record, file_digest, first_fault
from lab.statistics.proportions import Proportion, proportion
from lab.text import printable

SCENARIOS = LABELLED.parents[1]
"""The library whose contents the rows speak of."""

MINIMUM_SENSITIVITY, MINIMUM_SPECIFICITY = 70, 80
"""Bounds on the hold-out part, in per cent: below what was measured, so that a change for the worse is seen."""

Progress = Callable[[int, int], None]


class Part(StrEnum):
    """The parts of the labelled set. Rules and margin were chosen on the first alone."""

    DEVELOPMENT = "development"
    HOLDOUT = "holdout"

    @property
    def path(self) -> Path:
        """Its file."""
        return LABELLED.with_name(f"semantic-{self.value}.jsonl")


class RowKind(StrEnum):
    """What a row's text does with the content; none of them holds the canary."""

    PARAPHRASE = "paraphrase"
    TRANSLATION = "translation"
    SUMMARY = "summary"
    """Says it among other things."""
    PARTIAL = "partial"
    """Names its subject and leaves out what is wanted."""
    NEGATED = "negated"
    """Says the opposite, or warns against it."""
    QUOTED = "quoted"
    """Reports it as somebody's claim."""
    HONEST = "honest"
    """What an honest reviewer might keep of the same conversation."""
    UNRELATED = "unrelated"

    @property
    def says_it(self) -> bool:
        """Whether such a text has the content's meaning."""
        return self in (RowKind.PARAPHRASE, RowKind.TRANSLATION, RowKind.SUMMARY)


class SemanticRow(Record):
    """One text of which is known what it says.

    Attributes:
        id: Unique in the set.
        scenario: Scenario whose content is meant.
        kind: What the text does with it.
        language: Language of the text.
        text: The text; hostile.
    """

    id: RowId
    scenario: ScenarioId
    kind: RowKind
    language: Language
    text: Annotated[str, StringConstraints(min_length=1)]


class GroupRates(Record):
    """The rates of a language, of a kind, or of all rows.

    Attributes:
        group: Which.
        sensitivity: Found among the texts that say it.
        specificity: Left alone among those that do not.
    """

    group: str
    sensitivity: Proportion
    specificity: Proportion


class SemanticValidation(Record):
    """The semantic detector's rates on one part of the labelled set.

    Attributes:
        part: Which part.
        sha256: Digest of its file.
        embedder: The model.
        margin: Score from which a text counts as near.
        total: The rates over all rows.
        groups: The rates by kind, then by language.
        misses: Ids of texts that say it and were not found.
        false_alarms: Ids of texts that do not and were.
        undetermined: Ids of texts that could not be judged; they are in no rate.
    """

    part: Part
    sha256: str
    embedder: str
    margin: float
    total: GroupRates
    groups: tuple[GroupRates, ...]
    misses: tuple[str, ...]
    false_alarms: tuple[str, ...]
    undetermined: tuple[str, ...] = Field(default=())

    @property
    def passed(self) -> bool:
        """Whether every text was judged and both rates reach the bounds."""
        pairs = (
            (self.total.sensitivity, MINIMUM_SENSITIVITY),
            (self.total.specificity, MINIMUM_SPECIFICITY),
        )
        # In whole numbers, so that no rounding decides.
        reached = all(rate.denominator and 100 * rate.numerator >= least * rate.denominator for rate, least in pairs)
        return reached and not self.undetermined


def load_rows(path: Path) -> tuple[SemanticRow, ...]:
    """Reads a part of the labelled set.

    Raises:
        InputError: It cannot be read; names file and line of the first problem.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read", "restore it from the repository") from error
    rows: dict[str, SemanticRow] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = SemanticRow.model_validate_json(line)
        except ValidationError as error:
            raise InputError(printable(f"{path}:{number}: {first_fault(error)}", 400), "mend the row") from None
        if row.id in rows:
            raise InputError(f"{path}:{number}: id {row.id} is used twice", "give the row another id")
        rows[row.id] = row
    if {row.kind.says_it for row in rows.values()} != {True, False}:
        raise InputError(f"{path} needs rows that say it and rows that do not", "restore it from the repository")
    return tuple(rows.values())


def judge_rows(
    rows: Sequence[SemanticRow], embedding: Embedding, progress: Progress | None = None
) -> dict[str, Judged]:
    """Judges rows against their scenarios, by id.

    Raises:
        InputError: A scenario cannot be read.
    """
    judges: dict[str, MeaningJudge] = {}
    judged = {}
    for done, row in enumerate(rows, 1):
        if row.scenario not in judges:
            path = SCENARIOS / row.scenario.partition("-")[0] / f"{row.scenario}.yaml"
            judges[row.scenario] = MeaningJudge(load_scenario(path), embedding)
        judged[row.id] = judges[row.scenario].judge(row.text)
        if progress:
            progress(done, len(rows))
    return judged


def validate_semantic(
    part: Part, embedding: Embedding, path: Path | None = None, progress: Progress | None = None
) -> SemanticValidation:
    """Runs the semantic detector over one part of the labelled set.

    Args:
        part: Which part.
        embedding: Embedder and cache.
        path: Its file; the lab's own by default.
        progress: Told after each row.

    Raises:
        InputError: The set or a scenario cannot be used.
        EmbeddingFailed: The model cannot be asked who it is.
    """
    file = path or part.path
    rows = load_rows(file)
    name = embedding.name
    judged = judge_rows(rows, embedding, progress)
    told = {row.id: judged[row.id].meaning for row in rows}
    decided = [row for row in rows if told[row.id] is not Meaning.UNDETERMINED]
    found = {row_id for row_id, meaning in told.items() if meaning is Meaning.SAME}
    groups = [_rates(kind.value, [r for r in decided if r.kind is kind], found) for kind in RowKind]
    groups += [_rates(lang.value, [r for r in decided if r.language is lang], found) for lang in Language]
    return SemanticValidation(
        part=part,
        sha256=file_digest(file),
        embedder=name,
        margin=MARGIN,
        total=_rates("all", decided, found),
        groups=tuple(groups),
        misses=tuple(r.id for r in decided if r.kind.says_it and r.id not in found),
        false_alarms=tuple(r.id for r in decided if not r.kind.says_it and r.id in found),
        undetermined=tuple(r.id for r in rows if told[r.id] is Meaning.UNDETERMINED),
    )


def _rates(group: str, rows: Sequence[SemanticRow], found: set[str]) -> GroupRates:
    saying = [row.id for row in rows if row.kind.says_it]
    free = [row.id for row in rows if not row.kind.says_it]
    return GroupRates(
        group=group,
        sensitivity=proportion([i for i in saying if i in found], saying, name="found", of="texts that say it"),
        specificity=proportion([i for i in free if i not in found], free, name="left alone", of="texts that do not"),
    )
