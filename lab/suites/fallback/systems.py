"""The systems that are compared: one archive, and five ways to decide when it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.memories.hfea.archive import times_opened
from lab.memories.hfea.evidence import THRESHOLD, Question
from lab.memories.hfea.fallback import Answer, Fact, Fallback, Judged, Outcome, Reason, Trigger, evidence_trigger
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.systems.base import Hit, System
from lab.retrieval.systems.bm25 import Bm25
from lab.retrieval.systems.factstore import FactstoreSystem
from lab.suites.fallback.data import FallbackTopic, Kind, World

GRID = tuple(round(0.05 * step, 2) for step in range(8, 21))
"""Shares of content words that are tried on the development topics."""

Score = Callable[[Hit], float]


@dataclass(frozen=True)
class Asked:
    """A topic and how it was answered.

    Attributes:
        topic: The topic.
        answer: The answer.
        opened: How often the archive was opened for it, as the archive itself counts.
    """

    topic: FallbackTopic
    answer: Answer
    opened: int


def normal_route() -> System:
    """The fact store by words alone: what needs no model."""
    return FactstoreSystem(FactstoreSettings(keywords=False))


def lexical_score(hit: Hit) -> float:
    """The fact store's lexical score, 0 to 1, before it is stretched to the best candidate."""
    return (hit.parts["fts"] + hit.parts["overlap"]) * hit.parts["trust"]


def bm25_score(hit: Hit) -> float:
    """Raw BM25, unbounded."""
    return hit.score


def score_trigger(cut: float, score: Score) -> Trigger:
    """What the design says not to do: a low best score asks the archive, any other makes the best fact the answer.

    Args:
        cut: Least score of an answer.
        score: The score of a hit.
    """

    def judge(_asked: Question, found: Sequence[Fact]) -> Judged:
        if not found:
            return Judged(Reason.NO_ANSWER)
        return Judged(Reason.LOW_SCORE) if score(found[0].hit) < cut else Judged(None, (found[0],))

    return judge


def always_trigger(threshold: float = THRESHOLD) -> Trigger:
    """The archive is asked for every question; facts answer as by the trigger of the design."""
    inner = evidence_trigger(threshold)

    def judge(asked: Question, found: Sequence[Fact]) -> Judged:
        judged = inner(asked, found)
        return Judged(judged.reason or Reason.ALWAYS, judged.facts, judged.contradiction)

    return judge


def ask_all(
    world: World, system: System, trigger: Trigger, *, archive: bool = True, threshold: float = THRESHOLD
) -> list[Asked]:
    """Asks every topic of a set.

    Args:
        world: The set.
        system: The normal route.
        trigger: When the archive is asked.
        archive: Whether there is one.
        threshold: Least share of a question's words that a line of the archive must hold.

    Raises:
        SystemFailed: The normal route could not answer.
        InputError: The archive is damaged.
    """
    memory = Fallback(system, world.database, world.archive if archive else None, trigger, threshold)
    rows = []
    try:
        for topic in world.topics:
            before = times_opened(world.path)
            answer = memory.ask(topic.text)
            rows.append(Asked(topic, answer, times_opened(world.path) - before))
    finally:
        memory.close()
    return rows


def supports(asked: Asked, index: int) -> bool:
    """Whether a citation is of a message that answers its topic, and holds a labelled answer to the character."""
    cited = asked.answer.citations[index]
    return cited.message in asked.topic.messages and any(answer in cited.text for answer in asked.topic.answers)


def ended_right(asked: Asked, world: World) -> bool:
    """Whether an answer is what its topic's label says: the labelled source first, the gap, or both sides."""
    topic, answer = asked.topic, asked.answer
    if topic.kind in (Kind.NEITHER, Kind.SENTIMENT):
        return answer.outcome is Outcome.GAP
    if topic.kind is Kind.CONTRADICTION:
        return answer.outcome is Outcome.CONTRADICTION and shows_all_sides(asked)
    if topic.kind is Kind.NORMAL:
        named = {world.labels[label].strip() for label in topic.facts}
        return answer.outcome is Outcome.FACTS and answer.facts[0].statement.text in named
    return answer.outcome is Outcome.ARCHIVE and supports(asked, 0)


def shows_all_sides(asked: Asked) -> bool:
    """Whether each labelled side of a contradiction stands in a fact or citation of the answer."""
    shown = [fact.statement.text for fact in asked.answer.facts] + [cited.text for cited in asked.answer.citations]
    return all(any(side in text for text in shown) for side in asked.topic.answers)


@dataclass(frozen=True)
class Point:
    """A setting of a trigger on the development topics.

    Attributes:
        setting: Threshold or cut.
        needed: Share of the topics that only the archive answers for which it was asked.
        false: Share of the topics that a fact answers for which it was asked.
        right: Topics that ended as labelled.
    """

    setting: float
    needed: float
    false: float
    right: int


def point(setting: float, rows: Sequence[Asked], world: World) -> Point:
    """Where a setting stands."""
    taken = {
        kind: [row.opened > 0 for row in rows if row.topic.kind in kind] for kind in (ONLY_ARCHIVE, (Kind.NORMAL,))
    }
    needed, false = (sum(taken[kind]) / len(taken[kind]) for kind in (ONLY_ARCHIVE, (Kind.NORMAL,)))
    return Point(setting, needed, false, sum(ended_right(row, world) for row in rows))


ONLY_ARCHIVE = (Kind.ARCHIVE, Kind.HOSTED)
"""Kinds of topics that only the archive answers."""


def sweep_evidence(world: World) -> list[Point]:
    """The trigger of the design at every threshold of the grid."""
    return [point(at, ask_all(world, normal_route(), evidence_trigger(at), threshold=at), world) for at in GRID]


def sweep_scores(world: World, make: Callable[[], System], score: Score) -> list[Point]:
    """The trigger by score at every tenth of the best scores of the set's topics.

    What is answered on either side of a cut does not depend on it, so every topic is asked once for each side.
    """
    memory = Fallback(make(), world.database, None)
    best = {topic.id: score(found[0].hit) for topic in world.topics if (found := memory.normal(topic.text))}
    memory.close()
    low, high = (ask_all(world, make(), score_trigger(cut, score)) for cut in (math.inf, -math.inf))
    order = sorted(best.values()) or [0.0]  # a route that finds nothing answers alike on either side of any cut
    points = []
    for cut in sorted({round(order[len(order) * step // 10], 4) for step in range(10)}):
        sides = zip(low, high, strict=True)
        points.append(
            point(cut, [below if best.get(below.topic.id, cut) < cut else above for below, above in sides], world)
        )
    return points


def chosen(points: Sequence[Point]) -> Point:
    """The setting with which most topics end as labelled; of equals, the stricter."""
    return max(points, key=lambda each: (each.right, each.setting))


def bm25_route() -> System:
    """Plain BM25, whose score is raw."""
    return Bm25()
