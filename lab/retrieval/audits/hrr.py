"""HRR audit: what the real plugin's vectors can tell, and what comes back when its facts are taken apart again.

Everything is computed by the plugin's own functions in its own environment; here it is only asked for and summed up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

import numpy as np
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from lab.errors import InputError
from lab.records import Record

COMPONENTS = (1, 2, 3, 5, 9, 17)
"""Parts bundled into a fact: its content and 0, 1, 2, 4, 8, 16 entities."""

SAMPLE = 40
"""Facts that are taken apart, and against whose contents each answer is held."""

LEVEL = 0.001
"""One-sided level at which the truth is said to stand out; with 36 questions, chance has one in about 28 audits."""


class Vectors(Protocol):
    """The plugin's vectors, as ``HolographicPlugin`` gives them."""

    def similarities(self, query: str) -> dict[str, list[Any]]:
        """Similarity of a query to every fact, by ``ids``: ``stored`` and ``text`` vectors."""
        ...

    def unbinding(self, content: str, others: Sequence[str], entities: Sequence[str]) -> dict[str, Any]:
        """By operation: similarity to the truth, and those to other contents."""
        ...


class Separation(Record):
    """How well a similarity tells what belongs together from what does not.

    Attributes:
        matches: Pairs that belong together.
        others: Pairs that do not.
        match_mean: Mean similarity of the former.
        match_sd: Its standard deviation.
        other_mean: Mean similarity of the latter.
        other_sd: Its standard deviation.
        auroc: Probability that a pair that belongs together is above one that does not; ties count half.
        p: One-sided Mann-Whitney test that it is above one half. The pairs of one query are not independent: read it
            as a measure of size, not as a probability of error.
    """

    matches: int
    others: int
    match_mean: float
    match_sd: float
    other_mean: float
    other_sd: float
    auroc: float
    p: float

    @property
    def stands_out(self) -> bool:
        """Whether what belongs together stands out at all."""
        return self.p < LEVEL


class Recovery(Record):
    """One way to take a fact apart, for one number of parts.

    Attributes:
        operation: What was done.
        components: Parts bundled: the content and ``components - 1`` entities.
        separation: Of the true content from those of other facts, in what came back.
    """

    operation: str
    components: int
    separation: Separation


class HrrAudit(Record):
    """What the vectors can tell.

    Attributes:
        stored: Query against the stored vectors, as the plugin's search compares them; None where no fact has one.
        text: Query against the vector of the fact's text alone (``textv1``): both in the same space.
        span: Median over topics of the largest minus the smallest stored similarity of any fact; None without vectors.
        recoveries: Every operation at every number of parts.
        sampled: Facts that were taken apart.
    """

    stored: Separation | None
    text: Separation
    span: float | None
    recoveries: tuple[Recovery, ...]
    sampled: int

    def recovery(self, operation: str, components: int) -> Separation:
        """One of the recoveries."""
        return next(
            one.separation for one in self.recoveries if (one.operation, one.components) == (operation, components)
        )


def separation(matches: Sequence[float], others: Sequence[float]) -> Separation:
    """Measures how far two groups of similarities are apart.

    Raises:
        InputError: One is empty.
    """
    if not len(matches) or not len(others):
        raise InputError("there are no pairs to tell apart", "audit a set that has topics with an answer")
    # Rounded, because an exact equality that floating point blurs would count as a difference in rank.
    high, low = np.round(np.asarray(matches, float), 9), np.round(np.asarray(others, float), 9)
    test = mannwhitneyu(high, low, alternative="greater")
    return Separation(
        matches=high.size,
        others=low.size,
        match_mean=high.mean(),
        match_sd=high.std(),
        other_mean=low.mean(),
        other_sd=low.std(),
        auroc=float(test.statistic) / (high.size * low.size),
        p=float(test.pvalue),
    )


def audit_hrr(
    vectors: Vectors,
    queries: Mapping[str, str],
    relevant: Mapping[str, AbstractSet[int]],
    contents: Sequence[str],
) -> HrrAudit:
    """Measures the plugin's vectors on the database that it has open.

    Args:
        vectors: The plugin.
        queries: Text by topic.
        relevant: Row ids that answer a topic; topics without an entry have no answer and are left out.
        contents: Texts of facts, from which the first ``SAMPLE`` are taken apart.

    Raises:
        InputError: No topic has an answer, or there are too few facts.
        SystemFailed: The plugin has no NumPy, or is gone.
    """
    stored: tuple[list[float], list[float]] = ([], [])
    text: tuple[list[float], list[float]] = ([], [])
    spans = []
    for topic, query in queries.items():
        answers = relevant.get(topic)
        if not answers:
            continue
        told = vectors.similarities(query)
        for fact, by_stored, by_text in zip(told["ids"], told["stored"], told["text"], strict=True):
            group = 0 if fact in answers else 1
            text[group].append(by_text)
            if by_stored is not None:
                stored[group].append(by_stored)
        if known := [value for value in told["stored"] if value is not None]:
            spans.append(max(known) - min(known))
    sample = list(dict.fromkeys(contents))[:SAMPLE]
    return HrrAudit(
        stored=separation(*stored) if all(stored) else None,
        text=separation(*text),
        span=float(np.median(spans)) if spans else None,
        recoveries=audit_unbinding(vectors, sample),
        sampled=len(sample),
    )


def audit_unbinding(vectors: Vectors, contents: Sequence[str]) -> tuple[Recovery, ...]:
    """Takes facts apart again, each against the contents of all others.

    Args:
        vectors: The plugin.
        contents: Different texts, more than the most components.

    Raises:
        InputError: There are too few.
    """
    if len(contents) <= max(COMPONENTS):
        raise InputError(
            f"{len(contents)} facts are too few to take apart", f"audit a store of more than {max(COMPONENTS)}"
        )
    recoveries = []
    for components in COMPONENTS:
        groups: dict[str, tuple[list[float], list[float]]] = {}
        for i, content in enumerate(contents):
            # In turn, so that every fact's content stands beside others in the bundle.
            others = [*contents[i + 1 :], *contents[:i]]
            # Any names do, for an entity's vector is a digest of its name; but others for each fact, because what one
            # key has in common with the plugin's roles by chance would else look like something that came back.
            entities = [f"Entity {n} of Fact {i}" for n in range(1, components)]
            told = vectors.unbinding(content, others, entities)
            for operation, (true, false) in told.items():
                matches, rest = groups.setdefault(operation, ([], []))
                matches.append(true)
                # Of a bundle of pairs, the other pairs' contents are in it, and may come back: that is no success.
                rest += false
        recoveries += [
            Recovery(operation=operation, components=components, separation=separation(*group))
            for operation, group in groups.items()
        ]
    return tuple(recoveries)
