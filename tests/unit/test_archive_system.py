"""The archive as a system under test: each leg against its yardstick, their fusion against its formula."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.errors import EmbeddingFailed, EnvironmentUnusable, InputError, SystemFailed
from lab.memories.archive import legs, logs, system
from lab.memories.archive.arms import KINDS
from lab.memories.archive.system import Archive
from lab.memories.archive.vectors import VectorStore
from lab.retrieval.arms import Tools, make_arms
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.metrics.ties import admit
from lab.retrieval.systems.base import System
from lab.retrieval.systems.bm25 import Bm25, Tokenizer
from lab.retrieval.systems.dense import Dense
from tests.doubles.ollama_double import hashed

pytest.importorskip("lancedb", reason="the archive extra is not installed")

FACTS = (
    "Ana works at the hospital in São Paulo",
    "Policy POL-358 covers the flat",
    "Policy POL-412 covers the car, number 358",
    "Rui writes C++ and key:value stores with node.js",
    "O cachorro da Ana se chama Pipoca",
    "identical words here",
    "identical words here",
    "A memória 記憶装置 is a store",
    "   ",
    *(f"Note {i}: the {what} of {who} is {i * 7} years old"
      for i in range(24) for what, who in [(["dog", "car", "house"][i % 3], ["Ana", "Rui", "Bia", "Caio"][i % 4])]),
)  # fmt: skip
QUERIES = (
    "where does Ana work", "POL-358", "Ana's dog", "the car of Rui", "identical words here", "記憶", "node.js store",
    "São Paulo", "who is 70 years old", "Bia", "house of Caio", "policy for the flat",
)  # fmt: skip
HOSTILE = (
    "", " \t\n", "???", '"', "'; DROP TABLE lines; --", "text:Ana OR", "(Ana", "a\0b", "NEAR(a b)", "🧠", "x" * 10_000,
    " ".join(f"w{i}" for i in range(2_000)),
)  # fmt: skip


class Embedder:
    """Hashed trigrams; fails when it is told to, and counts what it embeds.

    Each text has a little noise of its own: trigrams are counts, whose cosines are often equal in mathematics and then
    differ in the last bit of either product, which may be the one that decides how they are rounded.
    """

    identity = ModelIdentity("double", "hashed", "aa" * 32, 64, ((Kind.QUERY, "q: "),), "none", "0")

    def __init__(self) -> None:
        self.failing = ""
        self.asked: list[tuple[Kind, int]] = []

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        self.asked.append((kind, len(texts)))
        if self.failing:
            raise EmbeddingFailed("planted", "mend it", cause=self.failing)
        noise = [np.random.default_rng(zlib.crc32(text.encode())).normal(0, 0.01, 64) for text in texts]
        found = np.asarray(hashed(texts)) + np.asarray(noise)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)

    def close(self) -> None:
        pass


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "memory_store.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE facts(fact_id INTEGER PRIMARY KEY, content, tags, trust_score, author)")
        # Row ids that rise in another order than their texts' places in a log, were they sorted as text.
        rows = [(7 + 3 * i, text, "", 0.5, ["user", "agent"][i % 2]) for i, text in enumerate(FACTS)]
        connection.executemany("INSERT INTO facts VALUES(?, ?, ?, ?, ?)", rows)
    return path


@pytest.fixture
def indexes(tmp_path: Path) -> DenseIndexes:
    return DenseIndexes(Embedder(), tmp_path / "vectors.sqlite", timeout=2.0)


def opened(made: System, database: Path) -> System:
    made.open(database)
    return made


def rankings(made: System, k: int = 10) -> list[list[int]]:
    return [[hit.fact_id for hit in made.search(query, k).hits] for query in QUERIES]


@pytest.mark.parametrize("k", [1, 5, 10, 100])
def test_vectors_alone_rank_as_the_yardstick_does(database: Path, indexes: DenseIndexes, k: int) -> None:
    yardstick, archive = Dense(indexes), Archive(lexical=False, indexes=indexes)
    for query in QUERIES:
        expected, found = (opened(each, database).search(query, k) for each in (yardstick, archive))
        assert [hit.fact_id for hit in found.hits] == [hit.fact_id for hit in expected.hits]
        scores = [hit.score for hit in found.hits]
        # Two products of the same float32 vectors differ by some 1e-7, which may be the one that decides the rounding.
        assert scores == pytest.approx([hit.score for hit in expected.hits], rel=0, abs=1.01e-6)
        assert found.confidence == scores[0] == found.hits[0].parts["dense"]
        assert found.channels == ("dense",)
        assert set(found.seconds) == {"embed", "dense"}
    archive.close()


def test_a_shifted_row_of_vectors_is_seen(
    database: Path, indexes: DenseIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rankings(opened(Dense(indexes), database))
    real = VectorStore.sync

    def shifted(store: VectorStore, points: Sequence[str], vectors: Vectors, seals: Sequence[bytes]) -> Any:
        return real(store, points, np.roll(vectors, 1, axis=0), seals)

    archive = Archive(lexical=False, indexes=indexes)
    assert rankings(opened(archive, database)) == expected
    monkeypatch.setattr(VectorStore, "sync", shifted)
    assert rankings(opened(archive, database)) != expected
    archive.close()


def test_words_alone_rank_as_the_yardstick_does_where_facts_have_no_tags(database: Path) -> None:
    archive = opened(Archive(lexical=True, indexes=None), database)
    yardstick = opened(Bm25(Tokenizer.UNICODE61), database)
    for k in (1, 5, 100):
        for query in QUERIES:
            expected, found = yardstick.search(query, k), archive.search(query, k)
            assert [(hit.fact_id, hit.score, dict(hit.parts)) for hit in found.hits] == [
                (hit.fact_id, hit.score, dict(hit.parts)) for hit in expected.hits
            ]
            assert found.channels == expected.channels
            assert found.confidence is None
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE facts SET tags = 'Bia' WHERE fact_id = 7")
    assert rankings(opened(yardstick, database)) != rankings(opened(archive, database)), "tags are no part of a log"
    archive.close()


@pytest.mark.parametrize("pool", [3, 50])
def test_the_fusion_is_that_of_reciprocal_ranks(
    database: Path, indexes: DenseIndexes, monkeypatch: pytest.MonkeyPatch, pool: int
) -> None:
    monkeypatch.setattr(system, "POOL", pool)
    both = opened(Archive(lexical=True, indexes=indexes), database)
    alone = [
        opened(Archive(lexical=True, indexes=None), database),
        opened(Archive(lexical=False, indexes=indexes), database),
    ]
    for query in QUERIES:
        sums: dict[int, float] = {}
        for leg in alone:
            for rank, hit in enumerate(leg.search(query, max(pool, 3)).hits, 1):
                sums[hit.fact_id] = sums.get(hit.fact_id, 0) + 1 / (60 + rank)
        expected = sorted(sums.items(), key=lambda pair: (-round(pair[1], 6), pair[0]))[:3]
        found = both.search(query, 3)
        assert [(hit.fact_id, hit.score) for hit in found.hits] == [(fact, round(score, 6)) for fact, score in expected]
        for hit in found.hits:
            assert set(hit.parts) <= {"rrf_lexical", "rrf_dense"}
            assert sum(hit.parts.values()) == pytest.approx(hit.score, abs=1e-6)
        assert found.confidence == alone[1].search(query, 1).hits[0].score
    assert both.search("Ana's dog", 3).channels == ("lexical", "dense")
    assert set(both.search("Ana's dog", 3).seconds) == {"lexical", "embed", "dense", "fuse"}
    for each in (both, *alone):
        each.close()


@pytest.mark.parametrize("name", KINDS)
def test_every_ranking_is_one_that_the_bench_admits(database: Path, indexes: DenseIndexes, name: str) -> None:
    (arm,) = make_arms([name], Tools(lambda: indexes), KINDS)
    before = database.read_bytes()
    made = opened(arm.make(), database)
    first = rankings(made)
    for query in (*QUERIES, *HOSTILE):
        for k in (0, 1, 2, 10, 60):
            admit(query[:20], made.search(query, k).hits, k)
    assert rankings(made) == first
    assert rankings(opened(made, database)) == first, "opened again"
    assert database.read_bytes() == before
    made.close()
    made.close()
    with pytest.raises(SystemFailed, match="no database is open"):
        made.search("Ana", 5)


def test_a_query_of_nothing_finds_nothing_and_asks_nobody(database: Path, indexes: DenseIndexes) -> None:
    both = opened(Archive(lexical=True, indexes=indexes), database)
    assert (both.search(" \n", 5).hits, both.search(" \n", 5).channels) == ((), ())
    assert both.search("???", 5).channels == ("dense",)
    assert both.search("what is it?", 5).channels == ("dense",), "stopwords are no words to look for"
    both.close()


def test_a_query_that_cannot_be_embedded(database: Path, indexes: DenseIndexes) -> None:
    both = opened(Archive(lexical=True, indexes=indexes), database)
    vectors = opened(Archive(lexical=False, indexes=indexes), database)
    words = opened(Archive(lexical=True, indexes=None), database)
    indexes.embedder.failing = "server_gone"  # type: ignore[attr-defined]
    found = both.search("Ana's dog", 5)
    assert (found.fallback, found.channels, found.confidence) == ("server_gone", ("lexical",), None)
    assert [hit.fact_id for hit in found.hits] == [hit.fact_id for hit in words.search("Ana's dog", 5).hits]
    with pytest.raises(SystemFailed, match="server_gone: planted"):
        vectors.search("Ana's dog", 5)
    for each in (both, vectors, words):
        each.close()


def test_documents_are_embedded_once_for_all_arms(database: Path, indexes: DenseIndexes) -> None:
    embedder = indexes.embedder
    for made in (Dense(indexes), Archive(lexical=True, indexes=indexes), Archive(lexical=False, indexes=indexes)):
        for _ in range(2):
            opened(made, database)
        made.close()
    documents = sum(count for kind, count in embedder.asked if kind is Kind.DOCUMENT)  # type: ignore[attr-defined]
    assert documents == len({text for text in FACTS if text.strip()})


def test_names_and_settings_tell_the_arms_apart(indexes: DenseIndexes) -> None:
    arms = make_arms(list(KINDS), Tools(lambda: indexes), KINDS)
    assert [arm.system for arm in arms] == list(KINDS) == ["archive", "archive-words", "archive-vectors"]
    told = [json.loads(json.dumps(arm.settings)) for arm in arms]
    assert (told[0]["rrf_k"], told[0]["pool"]) == (60, 50)
    assert "embedder" not in told[1]
    assert told[2]["embedder"]["digest"] == "aa" * 32
    assert told[2]["lancedb"]
    with pytest.raises(ValueError, match="finds nothing"):
        Archive(lexical=False, indexes=None)


def test_words_need_neither_model_nor_vector_store(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise EnvironmentUnusable("the package lancedb is not installed")

    def no_model() -> DenseIndexes:
        raise AssertionError

    monkeypatch.setattr(system, "lancedb_version", missing)
    (arm,) = make_arms(["archive-words"], Tools(no_model), KINDS)
    made = opened(arm.make(), database)
    assert made.search("hospital", 1).hits
    made.close()


def test_without_the_vector_store_the_run_ends_before_it_begins(
    indexes: DenseIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise EnvironmentUnusable("the package lancedb is not installed")

    monkeypatch.setattr(system, "lancedb_version", missing)
    with pytest.raises(EnvironmentUnusable, match="not installed"):
        make_arms(["archive"], Tools(lambda: indexes), KINDS)


def test_what_cannot_be_opened_leaves_nothing_behind(
    database: Path, indexes: DenseIndexes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    archive = Archive(lexical=True, indexes=indexes)
    with pytest.raises(EnvironmentUnusable, match="temporary files: No such file"):
        archive.open(database)
    (tmp_path / "scratch").mkdir()
    with pytest.raises(InputError, match="no database"):
        archive.open(tmp_path / "none.db")
    (tmp_path / "noise.db").write_bytes(b"noise" * 500)
    with pytest.raises(InputError):
        archive.open(tmp_path / "noise.db")
    indexes.embedder.failing = "timeout"  # type: ignore[attr-defined]
    with pytest.raises(EmbeddingFailed):
        archive.open(database)
    indexes.embedder.failing = ""  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(legs, "write_log", full)
        with pytest.raises(EnvironmentUnusable, match="temporary files: No space left on device"):
            archive.open(database)
    monkeypatch.setattr(logs, "MAX_LINE", 115)
    with pytest.raises(InputError, match=r"^\d+ facts cannot be put into a session log: the line is too long: \d+"):
        archive.open(database)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_facts_of_a_database_become_messages_without_their_names(database: Path) -> None:
    archive = Archive(lexical=True, indexes=None)
    archive.open(database)
    assert archive._folder is not None
    log = (Path(archive._folder.name) / "logs" / "facts.jsonl").read_text().splitlines()
    first, second = json.loads(log[0]), json.loads(log[1])
    assert (first["id"], first["session"], first["role"], first["text"]) == ("7", legs.SESSION, "user", FACTS[0])
    assert (second["id"], second["role"], second["author"]) == ("10", "assistant", "agent")
    archive.close()
