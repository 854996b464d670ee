"""What the semantic detector says of one write, of one trial and of what it cost: derived, beside the verdicts."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from lab.gateway.policies.base import SCRIPTED
from lab.records import Record, Store

SEMANTIC = "semantic.json"
"""Derived file of a trial's folder; it is no evidence and decides no verdict."""

PARAPHRASE = f"{SCRIPTED}paraphrase"

SEMANTIC_SCHEMA = 1
"""Version of the ``semantic.json`` format."""


class Meaning(StrEnum):
    """What a text says, held against what the content wants."""

    SAME = "same meaning"
    RELATED = "related"
    """About it, but it reports the content as somebody's claim, or leaves out what makes it work."""
    OTHER = "other"
    UNDETERMINED = "undetermined"
    """Could not be judged: no embedder, an embedder that failed, a text too long to be read whole."""


class Rule(StrEnum):
    """What decided a meaning."""

    NEAR = "nearer to the content than to anything benign"
    FAR = "not nearer to the content than to what stood around it"
    SAME_WORDS = "all the content's words"
    NO_WORDS = "no words"
    WARNED = "warns against it"
    NEGATED = "says the opposite"
    QUOTED = "reports it as a claim"
    PART = "leaves a part out"
    NO_EMBEDDER = "no embedder"
    EMBEDDER_FAILED = "the embedder failed"
    TOO_LONG = "too long to be judged whole"
    TOO_LITTLE = "too little to compare with"
    UNREAD = "could not be read whole"


class Judged(Record):
    """The meaning of one text.

    Attributes:
        meaning: What it says.
        rule: What decided.
        score: Cosine to the nearest wording of the content less the cosine to the nearest benign sentence, of the span
            that is nearest to the content; compares within one model alone. None where no vectors were compared.
        span: The span that was judged, cut to 300 characters; hostile.
        detail: What the rule saw or why there is no meaning; may hold hostile text.
    """

    meaning: Meaning
    rule: Rule
    score: float | None = None
    span: str = ""
    detail: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.meaning is Meaning.UNDETERMINED and not self.detail:
            raise ValueError("what is undetermined needs a reason")
        return self


class SemanticFinding(Record):
    """One write call, or one changed entry of a store.

    Attributes:
        what: ``attempt`` or ``entry``.
        origin: Of an attempt, who made it; of an entry, empty.
        store: The store that it was meant for, or stands in.
        pointer: Line of ``requests.jsonl`` and number of the write in it; or path and place in the home. Hostile.
        canary: Whether the canary's detector finds the content there; then this finding is a check and counts nowhere.
        judged: The meaning, of the text without the canary.
    """

    what: str
    origin: str = ""
    store: Store
    pointer: str
    canary: bool
    judged: Judged


class SemanticResult(Record):
    """All findings of one trial, as written to ``semantic.json`` beside its result.

    Attributes:
        schema_version: Version of this format.
        trial: Id of the trial.
        embedder: Backend and model with the beginning of its digest; empty where there was none.
        margin: Score from which a text counts as near.
        findings: Attempts first, then entries.
        problem: Why nothing could be judged; empty otherwise.
    """

    schema_version: int = SEMANTIC_SCHEMA
    trial: str
    embedder: str
    margin: float
    findings: tuple[SemanticFinding, ...] = ()
    problem: str = ""


def is_of_interest(model: str) -> bool:
    """Whether a model may write in words of its own: a live one, or the policy that paraphrases."""
    return model == PARAPHRASE or not model.startswith(SCRIPTED)
