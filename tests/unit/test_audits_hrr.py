"""The HRR audit on planted vectors: ones that tell matches, ones that tell nothing, a way apart that gives it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lab.errors import InputError
from lab.retrieval.audits.hrr import COMPONENTS, audit_hrr, audit_unbinding, separation

CONTENTS = [f"fact {n}" for n in range(30)]


class Planted:
    """Vectors that know the answers, or not: fact n answers topic n."""

    def __init__(self, *, vectors: bool = True) -> None:
        self._random = np.random.default_rng(7)
        self._vectors = vectors

    def similarities(self, query: str) -> dict[str, list[Any]]:
        noise = self._random.normal(0, 0.02, (2, 30))
        noise[1, int(query)] += 0.1
        return {
            "ids": list(range(30)),
            "stored": noise[0].tolist() if self._vectors else [None] * 30,
            "text": noise[1].tolist(),
        }

    def unbinding(self, content: str, others: Sequence[str], entities: Sequence[str]) -> dict[str, Any]:
        assert content not in others
        false = self._random.normal(0, 0.02, (2, len(others))).tolist()
        return {"lost": [self._random.normal(0, 0.02), false[0]], "kept": [1 / (1 + len(entities)), false[1]]}


QUERIES = {f"t{n}": str(n) for n in range(30)}
RELEVANT = {f"t{n}": frozenset({n}) for n in range(25)}


def test_vectors_that_know_stand_out_and_noise_does_not() -> None:
    audit = audit_hrr(Planted(), QUERIES, RELEVANT, CONTENTS)
    assert audit.stored is not None and not audit.stored.stands_out
    assert audit.text.stands_out and audit.text.auroc > 0.99
    # Topics without an answer have no match, and their facts are no evidence of anything.
    assert (audit.text.matches, audit.text.others) == (25, 25 * 29)
    assert audit.span is not None and 0.04 < audit.span < 0.2
    for components in COMPONENTS:
        assert not audit.recovery("lost", components).stands_out
        assert audit.recovery("kept", components).stands_out


def test_a_store_without_vectors_is_no_error() -> None:
    audit = audit_hrr(Planted(vectors=False), QUERIES, RELEVANT, CONTENTS)
    assert audit.stored is None and audit.span is None


def test_ties_count_half() -> None:
    assert separation([0.5, 0.5], [0.5]).auroc == 0.5
    # Equal but for the last digits of floating point.
    assert separation([0.1 + 0.2], [0.3]).auroc == 0.5


def test_nothing_to_tell_apart_is_said() -> None:
    with pytest.raises(InputError):
        audit_hrr(Planted(), QUERIES, {}, CONTENTS)
    with pytest.raises(InputError, match="17"):
        audit_unbinding(Planted(), CONTENTS[:17])
