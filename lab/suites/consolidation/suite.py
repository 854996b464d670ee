"""Runs the suite: duplicates by two encoders, decay by two ways of typing, and the contradiction scan."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from lab.memories.consolidation.contradictions import OVERLAP, WEIGHTS, WINDOW
from lab.memories.consolidation.contradictions import THRESHOLD as FLAG
from lab.memories.consolidation.decay import FLOOR, SCALE_HOURS, SHAPE
from lab.memories.consolidation.duplicates import THRESHOLD
from lab.retrieval.embedders.base import Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.suites.base import Published, Rate, SuiteContext, SuiteResult
from lab.suites.consolidation.data import Part, load
from lab.suites.consolidation.disputes import (
    dispute_curve,
    dispute_numbers,
    dispute_plants,
    dispute_published,
    dispute_rates,
    merged_rate,
)
from lab.suites.consolidation.forgetting import (
    archived_curve,
    forgetting_numbers,
    forgetting_plants,
    forgetting_published,
    forgetting_rates,
    strength_curve,
)
from lab.suites.consolidation.merging import Merging, characters, merge_curve

NAME = "consolidation"
TITLE = "Consolidation"
QUESTION = "What is merged that is not the same, what is forgotten that should stay, and which contradictions are seen?"

NOTES = (
    "A cosine means nothing without its model: the design's 0.70 was set on another one. A second threshold is chosen "
    "on the development part (least sum of the three errors) and held against the hold-out.",
    "Clusters are linked singly, so pairs may be merged that are farther apart than the threshold.",
    "Characters are a control without a model: what it reaches needs no embedding.",
    "Decay: shape and floor are ours, the design states neither. A memory below the floor is archived, not deleted.",
    "Contradictions: no single signal reaches 0.40 by the weights (at most 0.35), and every two do (at least 0.40), so "
    "the flag counts signals and their weights decide nothing.",
    "Pairs that do not contradict, and foils of duplicates, are hard on purpose: they carry signals and share words. "
    "Precision and false merges are of this mix; a store of unlike memories has fewer of both.",
    "Two denials agree: 'not slow' and 'fast' score 0.60 by negation and antonym, and are flagged.",
    "Pairs of a scene are not independent: intervals are over scenes.",
    "The hold-out was written after the code was done, by the same author; nothing was chosen on it.",
)


def run(context: SuiteContext) -> SuiteResult:
    """Runs it; see ``lab.suites.base.Suite``."""
    parts = load(context.data / NAME)
    indexes = context.tools.indexes
    identity = indexes.embedder.identity
    name = f"{identity.backend} {identity.model}"
    embedded = _embedded(indexes, parts)
    mergings = {
        part.info.name: [
            Merging(part, name, embedded[part.info.name].tellings),
            Merging(part, "characters", characters([telling.text for telling in part.tellings])),
        ]
        for part in parts
    }
    development = mergings[parts[0].info.name]
    thresholds = {merging.name: merging.best() for merging in development}
    total, done = sum(part.cases for part in parts), 0
    rates: list[Rate] = []
    for part in parts:
        for merging in mergings[part.info.name]:
            rates += merging.rates(THRESHOLD, "of the design")
            rates += merging.rates(thresholds[merging.name], "chosen on development")
        rates += forgetting_rates(part)
        rates += dispute_rates(part)
        texts = embedded[part.info.name]
        rates.append(merged_rate(part, name, texts.first, texts.second))
        done += part.cases
        context.progress(done, total)
    return SuiteResult(
        suite=NAME,
        title=TITLE,
        question=QUESTION,
        data=tuple(part.info for part in parts),
        rates=tuple(rates),
        numbers=(
            *(number for several in mergings.values() for merging in several for number in merging.numbers()),
            *forgetting_numbers(),
            *dispute_numbers(),
        ),
        plants=(
            *(plant for several in mergings.values() for merging in several for plant in merging.plants()),
            *(plant for part in parts for plant in forgetting_plants(part)),
            *dispute_plants(),
        ),
        curves=(
            *(merge_curve(mergings[part.info.name], part.info.name) for part in parts),
            strength_curve(),
            *(archived_curve(part) for part in parts),
            *(dispute_curve(part) for part in parts),
        ),
        published=tuple(entry for part in parts for entry in _published(part, mergings[part.info.name][0], rates)),
        notes=NOTES,
        settings={
            "embedder": {
                **dataclasses.asdict(identity),
                "prefixes": dict(identity.prefixes),
                "notes": list(identity.notes),
            },
            "duplicates": {"design": THRESHOLD, "chosen": thresholds, "linkage": "single"},
            "decay": {"scale hours": {str(kind): hours for kind, hours in SCALE_HOURS.items()}}
            | {"shape": SHAPE, "floor": FLOOR},
            "contradictions": {"weights": {str(signal): weight for signal, weight in WEIGHTS.items()}}
            | {"threshold": FLAG, "window days": WINDOW.days, "least overlap of content words": OVERLAP},
        },
    )


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors of one data set's texts, each in the order of their cases."""

    tellings: Vectors
    first: Vectors
    second: Vectors


def _embedded(indexes: DenseIndexes, parts: Sequence[Part]) -> dict[str, Embedded]:
    """Embeds every text once, as a document, for duplicates are sought among what is stored."""
    texts: dict[str, int] = {}
    for part in parts:
        pairs = (text for case in part.disputes for text in (case.first, case.second))
        for text in (*(telling.text for telling in part.tellings), *pairs):
            texts.setdefault(text, len(texts))
    matrix = indexes([(row, text) for text, row in texts.items()]).vectors.matrix
    return {
        part.info.name: Embedded(
            matrix[[texts[telling.text] for telling in part.tellings]],
            matrix[[texts[case.first] for case in part.disputes]],
            matrix[[texts[case.second] for case in part.disputes]],
        )
        for part in parts
    }


def _published(part: Part, embedded: Merging, rates: Sequence[Rate]) -> list[Published]:
    own = [one for one in rates if one.data == part.info.name]
    return [embedded.published(), *forgetting_published(part), dispute_published(part, own)]
