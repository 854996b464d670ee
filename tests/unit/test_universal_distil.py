"""Distillation: groups at a threshold, sources kept, nothing blended that contradicts, nothing done twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from lab.errors import EmbeddingFailed
from lab.memories.universal.distil import distil
from lab.memories.universal.records import Draft, RecordKind, StatedRelation
from lab.memories.universal.store import Store
from lab.retrieval.embedders.base import Vectors

ANGLES = {
    "Otters sleep at noon": 0,
    "Around noon the otters are asleep": 10,
    "The otters have a nap at midday": 20,
    "Herons fish at dawn": 90,
    "Herons are out fishing early": 95,
    "The tide turned": 200,
    "Otters never sleep at noon": 2,
}
"""A planted model in the plane: the cosine of two texts is that of the angle between them, in degrees."""
ANIMALS = tuple(ANGLES)[:6]


def embed(texts: Sequence[str]) -> Vectors:
    angles = [math.radians(ANGLES[text]) for text in texts]
    return np.array([[math.cos(a), math.sin(a)] for a in angles], dtype=np.float32)


def cosine(degrees: float) -> float:
    return math.cos(math.radians(degrees))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "universal.db") as opened:
        yield opened


def told(store: Store, *texts: str, agent: str = "ana", trust: Sequence[float] = ()) -> tuple[int, ...]:
    drafts = [
        Draft(content=text, agent_id=agent, created_at=1.0, trust=trust[number] if trust else 0.5)
        for number, text in enumerate(texts)
    ]
    return store.commit(store.stage(drafts))


def groups(store: Store, made: Sequence[int]) -> list[list[int]]:
    return [[source.record_id for source in store.sources_of(record_id)] for record_id in made]


def test_episodes_that_say_the_same_become_one_record_with_its_sources(store: Store) -> None:
    told(store, *ANIMALS, trust=[0.9, 0.4, 0.8, 0.5, 0.5, 0.5])
    made = distil(store, embed, cosine(25), agent_id="ana", now=50.0)
    assert groups(store, made) == [[1, 2, 3], [4, 5]]
    otters = store.get(made[0])
    assert (otters.kind, otters.created_at, otters.trust) == (RecordKind.SEMANTIC, 50.0, 0.4)
    assert otters.content == "Around noon the otters are asleep"  # the middle one
    assert [r.record_id for r in store.live(RecordKind.EPISODIC)] == [1, 2, 3, 4, 5, 6]


def test_the_threshold_holds_between_all_members(store: Store) -> None:
    near, middle, far, *others = ANIMALS
    told(store, middle, near, far, *others)
    # 0 and 20 degrees are each near to 10, but not to each other: no chain.
    assert groups(store, distil(store, embed, cosine(15), agent_id="ana", now=50.0)) == [[1, 2], [4, 5]]


def test_nothing_is_distilled_above_every_cosine(store: Store) -> None:
    told(store, *ANIMALS)
    assert distil(store, embed, cosine(4), agent_id="ana", now=50.0) == ()
    assert store.live(RecordKind.SEMANTIC) == ()


def test_a_statement_and_its_denial_are_not_blended(store: Store) -> None:
    told(store, "Otters sleep at noon", "Otters never sleep at noon")
    assert distil(store, embed, cosine(25), agent_id="ana", now=50.0) == ()


def test_groups_that_say_the_same_of_contradicting_episodes_stay_apart(store: Store) -> None:
    firms = ("Acme", "Globex", "Acme", "Globex")
    drafts = [
        Draft(
            content=ANIMALS[0],
            agent_id="ana",
            created_at=float(number),
            relations=(StatedRelation(subject="Ana", kind="works_at", target=firm),),
        )
        for number, firm in enumerate(firms)
    ]
    store.commit(store.stage(drafts))
    made = distil(store, embed, cosine(25), agent_id="ana", now=50.0)
    assert groups(store, made) == [[1, 3], [2, 4]]
    assert distil(store, embed, cosine(25), agent_id="ana", now=50.0) == ()
    assert [r.record_id for r in store.live(RecordKind.SEMANTIC)] == list(made)


def test_an_episode_from_the_archive_joins_though_its_id_is_the_lowest(store: Store) -> None:
    told(store, *ANIMALS[:3], trust=[0.1, 0.9, 0.9])
    store.touch([2, 3], 20.0)
    assert store.prune(2, 30.0) == (1,)
    made = distil(store, embed, cosine(25), agent_id="ana", now=50.0)
    assert (groups(store, made), store.get(made[0]).trust) == ([[2, 3]], 0.9)
    store.restore(1)
    assert distil(store, embed, cosine(25), agent_id="ana", now=60.0) == made
    assert (groups(store, made), store.get(made[0]).trust) == ([[1, 2, 3]], 0.1)


def test_a_second_run_changes_nothing_and_a_late_episode_joins(store: Store) -> None:
    told(store, *ANIMALS[:2])
    made = distil(store, embed, cosine(25), agent_id="ana", now=50.0)
    assert distil(store, embed, cosine(25), agent_id="ana", now=60.0) == ()
    (late,) = told(store, ANIMALS[2])
    assert distil(store, embed, cosine(25), agent_id="ana", now=70.0) == made
    assert groups(store, made) == [[1, 2, late]]
    assert [r.record_id for r in store.live(RecordKind.SEMANTIC)] == list(made)


def test_agents_are_not_mixed(store: Store) -> None:
    told(store, ANIMALS[0], agent="ana")
    told(store, ANIMALS[1], agent="bia")
    assert distil(store, embed, cosine(25), agent_id="ana", now=50.0) == ()


def test_sources_outlive_their_archiving_and_are_not_distilled_again(store: Store) -> None:
    told(store, *ANIMALS[:3])
    made = distil(store, embed, cosine(25), agent_id="ana", now=50.0)
    store.touch(made, 60.0)
    assert store.prune(1, 70.0) == (1, 2, 3)
    assert [(s.content, s.archived) for s in store.sources_of(made[0])] == [(text, True) for text in ANIMALS[:3]]
    store.restore(2)
    assert distil(store, embed, cosine(25), agent_id="ana", now=80.0) == ()
    store.prune(0, 90.0)
    assert store.get(made[0]).archived
    assert groups(store, made) == [[1, 2, 3]]


def test_a_model_that_fails_changes_nothing(store: Store) -> None:
    told(store, *ANIMALS)

    def dead(texts: Sequence[str]) -> Vectors:
        raise EmbeddingFailed("it is gone", cause="server_gone")

    with pytest.raises(EmbeddingFailed):
        distil(store, dead, 0.5, agent_id="ana", now=50.0)
    assert len(store.live()) == 6
