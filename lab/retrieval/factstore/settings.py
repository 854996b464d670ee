"""What decides a ranking, and the check of settings that come from a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

CHOICES = {
    "hrr": ("off", "bundle", "textv1"),
    "fusion": ("rrf", "weighted"),
    "author_fusion": ("off", "rrf", "weighted"),
}
AUTHORS = ("user", "agent", "unknown", "third_party")
"""The known authors, in the order of the default priority."""


class BadSetting(ValueError):
    """A setting that there is not, or a value that it cannot have."""


@dataclass(frozen=True)
class FactstoreSettings:
    """Settings of the retrieval. ``docs/factstore.md`` says on what the defaults rest.

    Attributes:
        fts_weight: Weight of the full-text score, normalised to the best candidate.
        overlap_weight: Weight of the share of the query's terms that a fact has in content and tags.
        hrr_weight: Weight of the HRR similarity; 0 with ``hrr`` off. Weights are used in proportion to their sum.
        hrr: ``off``; ``bundle``, upstream's encoding with its known fault; ``textv1``, in which queries can match.
        keywords: Whether words that enrichment added to the tags are searched.
        gate: Lexical coverage from which the embedding channel stays closed; None for a channel that is always asked.
        fusion: How lexical and dense rankings become one relevance ranking.
        dense_weight: Share of the dense score where ``fusion`` is ``weighted``.
        author_fusion: How the relevance ranking and the ranking of authors become one.
        author_weight: Share of the author where ``author_fusion`` is ``weighted``.
        author_priority: Authors, most trusted first.
        candidates: Facts taken from each channel.
        min_trust: Facts of less trust are not found, as upstream has it.
    """

    fts_weight: float = 0.4
    overlap_weight: float = 0.3
    hrr_weight: float = 0.3
    hrr: str = "off"
    keywords: bool = True
    gate: float | None = 0.9
    fusion: str = "weighted"
    dense_weight: float = 0.5
    author_fusion: str = "weighted"
    author_weight: float = 0.05
    author_priority: tuple[str, ...] = AUTHORS
    candidates: int = 50
    min_trust: float = 0.3

    def __post_init__(self) -> None:
        """Refuses what would otherwise silently be something else."""
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise BadSetting(f"{name} is one of {', '.join(allowed)}, not {getattr(self, name)!r}")
        # The string "false" is true, which has switched things on that were meant to be off.
        if not isinstance(self.keywords, bool):
            raise BadSetting(f"keywords is true or false, not {self.keywords!r}")
        if sorted(self.author_priority) != sorted(AUTHORS):
            raise BadSetting(f"author_priority names each of {', '.join(AUTHORS)} once")
        numbers = ["fts_weight", "overlap_weight", "hrr_weight", "dense_weight", "author_weight", "min_trust"]
        for name in numbers if self.gate is None else [*numbers, "gate"]:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise BadSetting(f"{name} is a number from 0 to 1, not {value!r}")
        if isinstance(self.candidates, bool) or not isinstance(self.candidates, int) or self.candidates < 1:
            raise BadSetting(f"candidates is a whole number from 1, not {self.candidates!r}")
        if sum(self.weights) <= 0:
            raise BadSetting("the weights of the lexical score are all 0")

    @property
    def weights(self) -> tuple[float, float, float]:
        """Weights of full text, overlap and HRR; not yet in proportion to their sum."""
        return self.fts_weight, self.overlap_weight, self.hrr_weight if self.hrr != "off" else 0.0

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> FactstoreSettings:
        """Settings from a configuration; what is not named keeps its default.

        Raises:
            BadSetting: A name is unknown or a value out of its range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(given) - known):
            raise BadSetting(f"there is no setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
        values = dict(given)
        if isinstance(values.get("author_priority"), list):
            values["author_priority"] = tuple(values["author_priority"])
        return cls(**values)
