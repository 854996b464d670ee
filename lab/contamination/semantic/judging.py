"""Says of one text whether it means what a content wants: similarity against matched references, then the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.semantic.records import Judged, Meaning, Rule
from lab.contamination.semantic.rules import against, exact
from lab.contamination.semantic.wordings import MOST_SPANS, References, references, sentences, spans, words
from lab.contamination.semantic.wordings import without_canary as masked
from lab.errors import EmbeddingFailed
from lab.retrieval.embedders.base import Embedder, Kind, Vectors
from lab.retrieval.embedders.sidecar import Sidecar

MARGIN = 0.3
"""Score from which a text counts as near to the content; chosen on the development part of the labelled set alone.

The score is a difference of cosines in units of the spread of the scenario's own benign sentences, so that it does not
hang on the height or the narrowness of a model's cosines."""

_NEAREST = 3
"""Nearest benign sentences whose mean a wording has to beat: of one alone, chance decides."""

_LEAST_SPREAD = 1e-6
"""Below it, the cosines between benign sentences differ by rounding alone."""

_SHOWN = 300


@dataclass(frozen=True)
class Embedding:
    """An embedder with its cache.

    Attributes:
        embedder: The model.
        sidecar: File of vectors; None to compute each anew.
    """

    embedder: Embedder
    sidecar: Path | None = None

    @property
    def name(self) -> str:
        """Backend, model and the beginning of its digest."""
        model = self.embedder.identity
        return f"{model.backend}: {model.model} ({model.digest[:12]})"

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (texts, dimensions).

        Raises:
            EmbeddingFailed: The model gave none.
            InputError: The file of vectors is damaged.
            EnvironmentUnusable: The file of vectors cannot be written.
        """
        # Both sides are statements: e5 wants its query prefix on both where nothing is searched.
        if self.sidecar is None:
            return self.embedder.embed(texts, Kind.QUERY)
        return Sidecar(self.sidecar).vectors(self.embedder, texts, Kind.QUERY).matrix


class MeaningJudge:
    """Judges texts against one scenario; vectors of its references are made once.

    Args:
        scenario: The scenario.
        embedding: Embedder and cache; None where there is none, so that the rules alone can say something.
        lacking: Why there is no embedder.
        paraphrase: Whether the scenario's own paraphrase may serve as a wording; not where it may be what is judged.
    """

    def __init__(
        self, scenario: Scenario, embedding: Embedding | None, lacking: str = "", *, paraphrase: bool = True
    ) -> None:
        self.canary = scenario.canary
        self.references: References = references(scenario, paraphrase=paraphrase)
        self.embedding = embedding
        self._lacking = lacking or "no embedder was given"
        self._compared: tuple[Vectors, Vectors, float] | None = None

    def judge(self, text: str) -> Judged:
        """The meaning of a text, its canary taken out.

        Raises:
            InputError: The file of vectors is damaged.
            EnvironmentUnusable: The file of vectors cannot be written.
        """
        text = masked(self.canary, text)
        if not words(text):
            return Judged(meaning=Meaning.OTHER, rule=Rule.NO_WORDS)
        if self.embedding is None:
            if exact(text, self.references.wordings):
                return Judged(meaning=Meaning.SAME, rule=Rule.SAME_WORDS, span=text[:_SHOWN])
            return _unknown(Rule.NO_EMBEDDER, self._lacking)
        wanted, benign = self.references.wordings, self.references.benign
        if not wanted or len(benign) <= _NEAREST:
            return _unknown(
                Rule.TOO_LITTLE, f"{len(wanted)} wordings and {len(benign)} benign sentences to compare with"
            )
        try:
            return self._compare(text, self.embedding)
        except EmbeddingFailed as error:
            return _unknown(Rule.EMBEDDER_FAILED, str(error))

    def _compare(self, text: str, embedding: Embedding) -> Judged:
        """What the spans that are near to the content say; one that says it is enough."""
        places = spans(text) or {text: text}
        read = list(places)[:MOST_SPANS]
        scores = dict(zip(read, self._scores(read, embedding), strict=True))
        ordered = sorted(read, key=lambda span: -scores[span])
        judged = [self._ruled(places[span], scores[span], text) for span in ordered if scores[span] >= MARGIN]
        for found in judged:
            if found.meaning is Meaning.SAME:
                return found
        if len(places) > MOST_SPANS:
            return _unknown(Rule.TOO_LONG, f"{len(places)} spans, of which {MOST_SPANS} were compared")
        return judged[0] if judged else _judged(Meaning.OTHER, Rule.FAR, ordered[0], scores[ordered[0]])

    def _ruled(self, span: str, score: float, text: str) -> Judged:
        found = against(span, _around(span, text), self.references.wordings)
        if found is None:
            return _judged(Meaning.SAME, Rule.NEAR, span, score)
        meaning, rule, seen = found
        return _judged(meaning, rule, span, score, seen)

    def _scores(self, texts: Sequence[str], embedding: Embedding) -> list[float]:
        """Score of each text: how much nearer the content is than the nearest benign sentences, in their spread."""
        if self._compared is None:
            wanted = embedding.vectors(self.references.wordings)
            benign = embedding.vectors(self.references.benign)
            between = (benign @ benign.T)[np.triu_indices(len(benign), 1)]
            if not (spread := float(between.std())) > _LEAST_SPREAD:
                raise EmbeddingFailed(
                    "the model gives every sentence the same vector", "take another embedder", cause="bad_answer"
                )
            self._compared = wanted, benign, spread
        wanted, benign, spread = self._compared
        vectors = embedding.vectors(texts)
        best, nearest = (vectors @ wanted.T).max(axis=1), np.sort(vectors @ benign.T, axis=1)[:, -_NEAREST:]
        over_one, over_some = best - nearest[:, -1], best - nearest.mean(axis=1)
        # What is nearer to one benign sentence than to the content, or is that sentence, is not near to the content.
        return [float(score) / spread for score in np.where(over_one > 0, over_some, over_one)]


def _unknown(rule: Rule, detail: str) -> Judged:
    return Judged(meaning=Meaning.UNDETERMINED, rule=rule, detail=detail[:_SHOWN])


def _judged(meaning: Meaning, rule: Rule, span: str, score: float, seen: str = "") -> Judged:
    return Judged(meaning=meaning, rule=rule, score=round(score, 3), span=span[:_SHOWN], detail=seen[:_SHOWN])


def _around(span: str, text: str) -> str:
    """A span with the sentences before and after it: where a warning or a source is named."""
    told = sentences(text)
    if span not in told:
        return span
    place = told.index(span)
    return "\n".join(told[max(0, place - 1) : place + 2])
