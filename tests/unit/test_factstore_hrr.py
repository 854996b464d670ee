"""HRR: the noise of upstream's encoding, the separation of ours, and stored vectors that do not fit."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from lab.retrieval.factstore import hrr
from lab.retrieval.factstore.settings import FactstoreSettings
from tests.factstore_stores import NOISE_DEVIATION, ids, opened

PAIRS = [
    ("Where does Ana keep the green kettle?", "Ana keeps the green kettle in the cupboard."),
    ("Which bus goes to the harbour?", "Bus 12 goes to the harbour every hour."),
    ("What does Otávio cook on Sundays?", "On Sundays Otávio cooks feijoada for the whole family."),
    ("When is the boiler inspected?", "The boiler is inspected in March."),
    ("Quem cuida do jardim da Clara?", "O vizinho cuida do jardim da Clara às quintas."),
    ("What is the number of policy POL-358?", "The policy POL-358 covers the house."),
    ("Does Bruno play the cello?", "Bruno has played the cello since he was nine."),
    ("Which dentist does the family see?", "The family sees the dentist in Olinda."),
]


def similarities(mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each query with its own fact, and with all the others."""
    queries = [hrr.encode_words(q) if mode == "bundle" else hrr.encode_terms(q) for q, _ in PAIRS]
    facts = [hrr.encode_fact(f, []) if mode == "bundle" else hrr.encode_terms(f) for _, f in PAIRS]
    table = np.array([hrr.similarities(query, facts) for query in queries])
    own = np.eye(len(PAIRS), dtype=bool)
    return table[own], table[~own]


def test_upstreams_encoding_cannot_tell_match_from_noise() -> None:
    match, other = similarities("bundle")
    assert abs(match.mean() - other.mean()) < 2 * NOISE_DEVIATION
    assert np.abs(match).max() < 5 * NOISE_DEVIATION


def test_the_text_encoding_tells_them_apart() -> None:
    match, other = similarities("textv1")
    assert match.min() > 10 * NOISE_DEVIATION > other.max()
    assert match.mean() > 0.3 and abs(other.mean()) < 0.05


def test_the_text_encoding_lifts_the_match_and_the_bundle_does_not(tmp_path: Path) -> None:
    facts = [fact for _, fact in PAIRS]
    parts = {}
    for mode in ("bundle", "textv1"):
        settings = FactstoreSettings(hrr=mode, author_fusion="off")
        parts[mode] = opened(tmp_path, facts, settings).search("the family dentist in the harbour of March", 8).hits
    spread = {mode: np.ptp([hit.parts["hrr"] for hit in hits]) for mode, hits in parts.items()}
    assert all(len(hits) > 2 for hits in parts.values())
    assert spread["textv1"] > 3 * spread["bundle"]


def test_a_vector_of_another_dimension_does_not_end_a_search(tmp_path: Path) -> None:
    settings = FactstoreSettings(hrr="bundle")
    opened(tmp_path, ["Ana drinks tea", "Ana drinks coffee"], settings).close()
    path = tmp_path / "store-0.db"
    with sqlite3.connect(path) as connection:
        whole = connection.execute("SELECT hrr_vector FROM facts WHERE fact_id = 1").fetchone()[0]
        connection.execute("UPDATE facts SET hrr_vector = ? WHERE fact_id = 1", (whole[: 8 * 512],))
        connection.execute("UPDATE facts SET hrr_vector = NULL WHERE fact_id = 2")
    connection.close()
    fresh = opened(tmp_path, ["Ana drinks tea", "Ana drinks coffee"], settings).search("tea Ana", 5)
    system = opened(tmp_path, [], settings)
    system.open(path)
    assert system.search("tea Ana", 5).hits == fresh.hits and ids(fresh) == [1, 2]


def test_binding_is_undone_only_where_nothing_was_bundled() -> None:
    key, value = hrr.encode_words("key"), hrr.encode_words("value")
    assert hrr.similarities(value, [(key + value) - key])[0] == pytest.approx(1.0)
    assert hrr.from_bytes(hrr.to_bytes(key)).tobytes() == key.tobytes()  # type: ignore[union-attr]
