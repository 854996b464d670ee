"""Distils episodes that say nearly the same into one semantic record, which keeps them as its sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lab.memories.universal.contradiction import Statement, contradiction
from lab.memories.universal.records import Draft, MemoryRecord, RecordKind
from lab.memories.universal.store import Store
from lab.retrieval.embedders.base import Vectors

Embed = Callable[[Sequence[str]], Vectors]
"""Turns texts into unit vectors, one row each. May raise ``EmbeddingFailed``."""


def distil(store: Store, embed: Embed, threshold: float, *, agent_id: str, now: float) -> tuple[int, ...]:
    """Makes a semantic record of every group of an agent's live episodes that say nearly the same.

    In the order of their ids, an episode joins the first group in which its cosine with *every* member is at least the
    threshold and which it contradicts in no member: groups cannot drift by a chain of small steps, and no record blends
    a statement with its denial. Groups of one are left alone. Groups that were distilled before come first and take
    new episodes in as further sources, so a second run over the same episodes changes nothing.

    The record says what its middle episode says (the one nearest to the others in sum; the first of equals), is as
    trusted as the least trusted of its sources, also of those that join later, and never expires: its sources may.

    Args:
        store: The store; vectors are not kept in it.
        embed: The model.
        threshold: Least cosine. One of one model is of no use with another.
        agent_id: Whose episodes.
        now: Time of creation of what is made.

    Returns:
        Ids of the semantic records that were made or that took in sources.

    Raises:
        EmbeddingFailed: The episodes could not be embedded; nothing was changed.
    """
    done = store.distilled()
    fresh = [record for record in store.live(RecordKind.EPISODIC, agent_id) if record.record_id not in done]
    made = store.live(RecordKind.SEMANTIC, agent_id)
    groups = [list(store.sources_of(record.record_id)) for record in made]
    everyone = [*(source for group in groups for source in group), *fresh]
    if not fresh or len(everyone) < 2:
        return ()
    vectors = dict(zip((e.record_id for e in everyone), embed([e.content for e in everyone]), strict=True))
    statements = store.statements(vectors.keys())
    sizes = [len(group) for group in groups]
    for episode in fresh:
        for group in groups:
            if all(_belongs(episode, member, vectors, statements, threshold) for member in group):
                group.append(episode)
                break
        else:
            groups.append([episode])
            sizes.append(1)
    changed = []
    for place, group in enumerate(groups):
        if len(group) > sizes[place]:
            record = made[place] if place < len(made) else None
            changed.append(_draft(record, group, vectors, agent_id, now))
    return store.commit(store.stage(changed)) if changed else ()


def _belongs(
    one: MemoryRecord,
    other: MemoryRecord,
    vectors: dict[int, Vectors],
    statements: dict[int, Statement],
    threshold: float,
) -> bool:
    cosine = round(float(vectors[one.record_id] @ vectors[other.record_id]), 6)
    return cosine >= threshold and contradiction(statements[one.record_id], statements[other.record_id]) is None


def _draft(
    record: MemoryRecord | None, group: list[MemoryRecord], vectors: dict[int, Vectors], agent_id: str, now: float
) -> Draft:
    """The semantic record of a group; one that was made before keeps all that identifies it."""
    sources = tuple(member.record_id for member in group)
    if record is not None:
        # An episode that comes back from the archive may join with a lower id than the founder's.
        sources = tuple(sorted(sources, key=lambda source: source != record.founder))
        return Draft(
            content=record.content,
            agent_id=record.agent_id,
            kind=record.kind,
            created_at=record.created_at,
            trust=record.trust,
            sources=sources,
        )
    matrix = np.stack([vectors[source] for source in sources])
    middle = int(np.argmax(np.round((matrix @ matrix.T).sum(axis=1), 6)))
    return Draft(
        content=group[middle].content,
        agent_id=agent_id,
        kind=RecordKind.SEMANTIC,
        created_at=now,
        trust=min(member.trust for member in group),
        sources=sources,
    )
