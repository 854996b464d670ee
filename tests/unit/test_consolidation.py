"""Consolidation: clusters at a cosine, decay by type, the contradiction scan and what its weights imply, the plan."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.memories.consolidation.contradictions import (
    THRESHOLD,
    WEIGHTS,
    Signal,
    same_matter,
    scan,
    score,
    signals,
)
from lab.memories.consolidation.decay import FLOOR, SCALE_HOURS, is_archived, lifetime, strength
from lab.memories.consolidation.duplicates import duplicate_clusters
from lab.memories.consolidation.kinds import Memory, MemoryType, guess_type
from lab.memories.consolidation.plan import consolidate

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def at_angles(*degrees: float) -> np.ndarray:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def memory(name: str, text: str, days: float = 0, language: str = "en", **more: MemoryType) -> Memory:
    return Memory(name, text, language, NOW - timedelta(days=days), **more)


# Clusters


def test_clusters_form_at_the_threshold_and_chain() -> None:
    # cos 45° = 0.7071 and cos 46° = 0.6947: on either side of 0.70.
    assert duplicate_clusters("ab", at_angles(0, 45)) == (("a", "b"),)
    assert duplicate_clusters("ab", at_angles(0, 46)) == ()
    # a and c are 80° apart and only b links them.
    assert duplicate_clusters("abcd", at_angles(0, 40, 80, 170)) == (("a", "b", "c"),)
    assert duplicate_clusters("abcd", at_angles(0, 40, 80, 170), 0.99) == ()


def test_a_cosine_that_equals_the_threshold_counts() -> None:
    vectors = np.array([[1, 0], [0.6, 0.8]], dtype=np.float32)
    assert duplicate_clusters("ab", vectors, 0.6) == (("a", "b"),)
    assert duplicate_clusters("ab", vectors, 0.600002) == ()


def test_more_memories_than_a_block() -> None:
    vectors = np.zeros((2100, 3), dtype=np.float32)
    vectors[np.arange(2100), np.arange(2100) % 3] = 1
    clusters = duplicate_clusters([str(number) for number in range(2100)], vectors)
    assert [len(cluster) for cluster in clusters] == [700, 700, 700]


@pytest.mark.parametrize(
    ("ids", "vectors"),
    [
        (["a"], at_angles(0, 1)),
        (["a", "a"], at_angles(0, 1)),
        (["a", "b"], at_angles(0, 1) * 2),
        (["a", "b"], np.array([[1, 0], [math.nan, 0]], dtype=np.float32)),
    ],
    ids=["too few names", "a name twice", "no unit length", "no number"],
)
def test_vectors_that_are_none_are_refused(ids: list[str], vectors: np.ndarray) -> None:
    with pytest.raises(InputError):
        duplicate_clusters(ids, vectors)


def test_no_memory_has_no_cluster() -> None:
    assert duplicate_clusters([], np.zeros((0, 4), dtype=np.float32)) == ()


# Decay


def test_strength_at_the_scale_is_1_over_e_at_every_shape() -> None:
    assert SCALE_HOURS == {MemoryType.OBSERVATION: 336, MemoryType.WORKING_FACT: 2160}
    for kind, scale in SCALE_HOURS.items():
        for shape in (0.5, 1, 3):
            assert strength(kind, scale, shape=shape) == pytest.approx(math.exp(-1))
    assert strength(MemoryType.OBSERVATION, 672, shape=2) == pytest.approx(math.exp(-4))


@pytest.mark.parametrize("kind", [MemoryType.PREFERENCE, MemoryType.PROCEDURE, MemoryType.ERROR_PATTERN])
def test_exempt_types_never_fade(kind: MemoryType) -> None:
    assert strength(kind, 1e9) == 1
    assert lifetime(kind) == math.inf
    assert not is_archived(kind, 1e9)


@given(st.sampled_from(list(SCALE_HOURS)), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.2, 4))
def test_strength_never_grows_with_age(kind: MemoryType, one: float, two: float, shape: float) -> None:
    young, old = sorted((one, two))
    assert 0 <= strength(kind, old, shape=shape) <= strength(kind, young, shape=shape) <= 1


def test_a_memory_is_archived_when_its_lifetime_is_over() -> None:
    for kind in SCALE_HOURS:
        assert not is_archived(kind, lifetime(kind) * 0.999)
        assert is_archived(kind, lifetime(kind) * 1.001)
        assert strength(kind, lifetime(kind)) == pytest.approx(FLOOR)


def test_a_clock_that_is_behind_makes_no_memory_stronger() -> None:
    assert strength(MemoryType.OBSERVATION, -5) == 1
    for bad in ({"age_hours": math.nan}, {"age_hours": 1, "shape": 0}):
        with pytest.raises(ValueError, match="shape"):
            strength(MemoryType.OBSERVATION, **bad)
    with pytest.raises(ValueError, match="floor"):
        lifetime(MemoryType.OBSERVATION, floor=0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ana prefers short answers.", MemoryType.PREFERENCE),
        ("A Ana não gosta de reuniões.", MemoryType.PREFERENCE),
        ("The importer fails on empty dates.", MemoryType.ERROR_PATTERN),
        ("Primeiro pare o serviço, depois rode o script.", MemoryType.PROCEDURE),
        ("O servidor roda em Linux.", MemoryType.WORKING_FACT),
        ("It rained on Sunday.", MemoryType.OBSERVATION),
        ("She unlikely came.", MemoryType.OBSERVATION),  # "like" within a word is no cue
    ],
)
def test_types_are_guessed_by_whole_words(text: str, kind: MemoryType) -> None:
    assert guess_type(text) is kind


# Contradictions


def test_no_single_signal_reaches_the_threshold_and_every_two_do() -> None:
    assert {signal.value: weight for signal, weight in WEIGHTS.items()} == {
        "negation": 0.35,
        "antonym": 0.25,
        "numeric": 0.25,
        "temporal": 0.15,
    }
    assert all(score([signal]) < THRESHOLD for signal in Signal)
    assert all(score(pair) >= THRESHOLD for pair in combinations(Signal, 2))
    assert score(Signal) == 1


@pytest.mark.parametrize(
    ("language", "first", "second", "expected"),
    [
        ("en", "The gate is open.", "The gate isn’t open.", {Signal.NEGATION}),
        ("en", "The gate is open.", "The gate is closed.", {Signal.ANTONYM}),
        ("en", "The limit is 1,200 rows.", "The limit is 1.300 rows.", {Signal.NUMERIC}),
        ("en", "The limit is 1,200 rows.", "The limit is 1200 rows.", set()),
        ("en", "It has three doors.", "It has 4 doors.", {Signal.NUMERIC}),
        ("en", "It has three doors.", "It has 3 doors.", set()),
        ("en", "Planning is on Monday at 10:30.", "Planning is on Tuesday at 11:30.", {Signal.TEMPORAL}),
        ("en", "Ana sings.", "Ana used to sing.", {Signal.TEMPORAL}),
        ("en", "Ana sings.", "Ana no longer sings.", {Signal.NEGATION, Signal.TEMPORAL}),
        ("pt-BR", "A loja fica no centro.", "A loja não fica no centro.", {Signal.NEGATION}),
        ("pt-BR", "A loja abre no centro.", "A loja fica no centro.", set()),  # "no" denies nothing in Portuguese
        ("pt-BR", "O café está quente.", "O café está frio.", {Signal.ANTONYM}),
        ("pt-BR", "A taxa é de R$ 1.800.", "A taxa é de R$ 2.000.", {Signal.NUMERIC}),
        ("pt-BR", "A prova é em 3 de março.", "A prova é em 9 de março.", {Signal.TEMPORAL}),
        ("pt-BR", "O Davi fuma.", "O Davi não fuma mais.", {Signal.NEGATION, Signal.TEMPORAL}),
    ],
)
def test_each_signal_and_its_twin(language: str, first: str, second: str, expected: set[Signal]) -> None:
    assert signals(first, second, language) == expected
    assert signals(second, first, language) == expected


def test_another_matter_is_no_contradiction() -> None:
    assert same_matter("The front gate is locked.", "The front gate is not locked anymore.", "en")
    assert not same_matter("The front gate is locked.", "Lena does not sing anymore.", "en")
    assert scan([memory("1", "The front gate is locked."), memory("2", "Lena does not sing anymore.")]) == ()


def test_the_window_is_seven_days_and_languages_are_kept_apart() -> None:
    first, second = "Sueli leads the store.", "Sueli no longer leads the store."
    (found,) = scan([memory("new", second), memory("old", first, days=7)])
    assert (found.first, found.second, found.score) == ("old", "new", 0.5)
    assert scan([memory("new", second), memory("old", first, days=7.01)]) == ()
    assert scan([memory("new", second), memory("old", first, days=7.01)], window=timedelta(days=8))
    assert scan([memory("new", second), memory("old", first, language="pt-BR")]) == ()


def test_a_known_flaw_of_the_weights_two_denials_agree_and_are_flagged() -> None:
    (found,) = scan([memory("1", "The build is fast."), memory("2", "The build is not slow.")])
    assert found.signals == {Signal.NEGATION, Signal.ANTONYM}


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["en", "pt-BR", "de", ""]))
def test_any_text_is_read_and_a_text_never_contradicts_itself(first: str, second: str, language: str) -> None:
    assert signals(first, second, language) == signals(second, first, language)
    assert signals(first, first, language) == set()


# The plan


def test_a_plan_names_duplicates_disputes_and_what_has_faded() -> None:
    memories = [
        memory("1", "The gate is locked at night."),
        memory("2", "At night the gate is locked."),
        memory("3", "The pump works."),
        memory("4", "The pump no longer works."),
        memory("5", "It rained.", days=60),
        memory("6", "Ana prefers tea.", days=600, kind=MemoryType.PREFERENCE),
    ]
    vectors = np.eye(6, dtype=np.float32)[[0, 0, 2, 2, 4, 5]]
    plan = consolidate(memories, vectors, NOW)
    assert plan.merged == (("1", "2"),)
    assert plan.disputed == (("3", "4"),)  # to merge them would settle the contradiction by accident
    assert plan.archived == ("5",)
    assert [(pair.first, pair.second) for pair in plan.contradictions] == [("3", "4")]
