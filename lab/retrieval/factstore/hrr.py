"""Holographic reduced representations in phase form: upstream's encoding of facts, and one in which queries can match.

A vector is ``DIMENSIONS`` angles. Binding adds angles, bundling takes the angle of the sum of the unit phasors
(Plate 1995; the atoms are upstream's, from SHA-256, so that vectors are the same bytes). Needs numpy.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .tokens import terms

Phases = NDArray[np.float64]
"""Shape (DIMENSIONS,), radians in [0, 2π)."""

DIMENSIONS = 1024
_FULL_TURN = 2.0 * math.pi
_STEPS = 1 << 16
_ANGLES = np.arange(_STEPS, dtype=np.float64) * (_FULL_TURN / _STEPS)
# An atom's angles are multiples of a 65536th of a turn, so all phasors of all atoms stand in one table of 1 MB.
_PHASORS = np.exp(1j * _ANGLES)
_VALUES_PER_HASH = 16
_COUNTERS = tuple(str(block).encode() for block in range(DIMENSIONS // _VALUES_PER_HASH))
_PUNCTUATION = ".,!?;:\"'()[]{}"
_NOTHING, _CONTENT_ROLE, _ENTITY_ROLE = "__hrr_empty__", "__hrr_role_content__", "__hrr_role_entity__"


@lru_cache(maxsize=1 << 15)
def _atom(word: str) -> NDArray[np.uint16]:
    seed = f"{word}:".encode()
    blocks = [hashlib.sha256(seed + counter).digest() for counter in _COUNTERS]
    return np.frombuffer(b"".join(blocks), dtype="<u2")


def _bundle_words(words: Sequence[str]) -> Phases:
    if not words:
        return _angles(_NOTHING)
    return _angle_of(np.add.reduce(_PHASORS[np.stack([_atom(word) for word in words])], axis=0))


def _angles(word: str) -> Phases:
    return np.asarray(_ANGLES[_atom(word)])


def _angle_of(phasors: NDArray[np.complex128]) -> Phases:
    return np.asarray(np.angle(phasors) % _FULL_TURN)


def bundle(vectors: Iterable[Phases]) -> Phases:
    """Superposition: the angle of the sum of the vectors' phasors, added up in the order given."""
    return _angle_of(np.add.reduce([np.exp(1j * vector) for vector in vectors], axis=0))


def encode_words(text: str) -> Phases:
    """Upstream's vector of a text, which it also makes of a query: the bundle of the atoms of all its words."""
    stripped = (word.strip(_PUNCTUATION) for word in text.lower().split())
    return _bundle_words([word for word in stripped if word])


def encode_fact(content: str, entities: Iterable[str]) -> Phases:
    """Upstream's vector of a fact: content and entities, each bound to the atom of its role, bundled.

    A query is *not* bound to a role, so it is in another space than this: similarities are noise around 0 of standard
    deviation ``1/sqrt(2 * DIMENSIONS)``. The fault is kept in mode ``bundle`` because it is what was published.
    """
    parts = [(encode_words(content) + _angles(_CONTENT_ROLE)) % _FULL_TURN]
    parts += [(_angles(name.lower()) + _angles(_ENTITY_ROLE)) % _FULL_TURN for name in entities]
    return bundle(parts)


@lru_cache(maxsize=1 << 10)
def encode_terms(text: str) -> Phases:
    """The vector of mode ``textv1``: the bundle of a text's content terms, made alike of facts and of queries.

    Without stopwords, which nearly all texts share, a text that has nothing in common with a query is near 0.
    """
    return _bundle_words(terms(text))


def similarities(query: Phases, vectors: Sequence[Phases]) -> NDArray[np.float64]:
    """Mean cosine of the differences of angles, -1 to 1, for each vector."""
    if not vectors:
        return np.zeros(0)
    return np.asarray(np.cos(np.stack(vectors) - query).mean(axis=1))


def to_bytes(vector: Phases) -> bytes:
    """The stored form: float64, as upstream."""
    return vector.tobytes()


def from_bytes(stored: bytes | None) -> Phases | None:
    """A stored vector; None where there is none or it has another dimension, which must not end a search."""
    if stored is None or len(stored) != DIMENSIONS * 8:
        return None
    return np.frombuffer(stored, dtype=np.float64)
