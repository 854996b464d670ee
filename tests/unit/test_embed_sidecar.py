"""Vectors in a sidecar: computed once, sealed, resumable, shared by processes; and the exact index over them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lab.errors import EmbeddingFailed, EnvironmentUnusable, InputError
from lab.retrieval.embedders import checked
from lab.retrieval.embedders.base import Embedder, Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.checked import batches
from lab.retrieval.embedders.index import SHORTENED, SILENT_AFTER, DenseIndex, DenseIndexes
from lab.retrieval.embedders.sidecar import SealedVectors, Sidecar, seal, text_digest
from tests.doubles.ollama_double import hashed

TEXTS = [f"fact number {i} about {word}" for i, word in enumerate(["tea", "rum", "beer", "milk", "wine"] * 8)]


class Counting:
    """Hashed vectors, and a record of what was asked."""

    def __init__(self, model: str = "aa", prefixes: tuple[tuple[str, str], ...] = (), stop_after: int = -1) -> None:
        self.identity = ModelIdentity("double", "hashed", model * 32, 64, prefixes, "none", "0")
        self.calls: list[list[str]] = []
        self.limits: list[float | None] = []
        self.failing = ""
        self._left = stop_after

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        self.limits.append(timeout)
        if self.failing:
            raise EmbeddingFailed("planted", cause=self.failing)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
        self.calls.append(list(texts))
        return np.asarray(hashed([self.identity.prefix(kind) + text for text in texts]), dtype=np.float32)

    def close(self) -> None:
        pass


def count(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        (found,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
    return int(found)


def test_batches_are_bounded_by_volume_not_by_rows() -> None:
    texts = ["a" * 3000, "b" * 3000, "c" * 3000, "d" * 9000, "", "e"]
    assert list(batches(texts)) == [[0, 1], [2], [3], [4, 5]]
    assert [len(b) for b in batches(["x" * 10] * 1000)] == [800, 200]
    assert list(batches([])) == []


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    embedder, told = Counting(), []
    file = Sidecar(tmp_path / "v.db")
    first = file.vectors(embedder, ["a", "b", "a"], Kind.DOCUMENT, lambda done, total: told.append((done, total)))
    assert embedder.calls == [["a", "b"]]
    assert told == [(2, 2)]
    assert np.array_equal(first.matrix[0], first.matrix[2])
    second = file.vectors(embedder, ["c", "b"], Kind.DOCUMENT)
    assert embedder.calls[1:] == [["c"]]
    assert np.array_equal(second.matrix[1], first.matrix[1])
    assert second.matrix.dtype == np.float32
    assert np.array_equal(second.matrix, np.asarray(hashed(["c", "b"]), dtype=np.float32))
    assert file.vectors(embedder, [], Kind.DOCUMENT).matrix.shape == (0, 64)


@pytest.mark.parametrize(
    "other",
    [
        (Counting("bb"), Kind.DOCUMENT),
        (Counting(), Kind.QUERY),
        (Counting(prefixes=(("document", "passage: "),)), Kind.DOCUMENT),
    ],
    ids=["model", "kind", "prefix"],
)
def test_model_kind_and_prefix_are_part_of_the_key(tmp_path: Path, other: tuple[Embedder, Kind]) -> None:
    file = Sidecar(tmp_path / "v.db")
    file.vectors(Counting(), ["a"], Kind.DOCUMENT)
    embedder, kind = other
    file.vectors(embedder, ["a"], kind)
    assert count(file.path) == 2


def _run(path: Path, stop_after: int) -> None:
    Sidecar(path).vectors(Counting(stop_after=stop_after), TEXTS, Kind.DOCUMENT)


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "batches", lambda texts: batches(texts, 100))
    path = tmp_path / "v.db"
    process = multiprocessing.get_context("fork").Process(target=_run, args=(path, 3))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    kept = count(path)
    assert 0 < kept < len(TEXTS)
    embedder = Counting()
    found = Sidecar(path).vectors(embedder, TEXTS, Kind.DOCUMENT)
    assert set(embedder.limits) == {checked.BATCH_SECONDS}, "a server that hangs does not hold it up for ever"
    assert sum(map(len, embedder.calls)) == len(TEXTS) - kept
    assert np.array_equal(found.matrix, np.asarray(hashed(TEXTS), dtype=np.float32))


def test_two_processes_fill_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "batches", lambda texts: batches(texts, 30))
    path = tmp_path / "v.db"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_run, args=(path, -1)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert count(path) == len(TEXTS)


def test_vectors_that_another_process_writes_meanwhile_stay(tmp_path: Path) -> None:
    class Overtaken(Counting):
        def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
            Sidecar(tmp_path / "v.db").vectors(Counting(), texts, kind)
            return -super().embed(texts, kind, timeout)

    found = Sidecar(tmp_path / "v.db").vectors(Overtaken(), ["a", "b"], Kind.DOCUMENT)
    assert np.array_equal(found.matrix, np.asarray(hashed(["a", "b"]), dtype=np.float32))


def test_a_failing_model_leaves_the_earlier_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "batches", lambda texts: batches(texts, 100))
    embedder = Counting()

    def fail(done: int, total: int) -> None:
        embedder.failing = "server_gone"

    with pytest.raises(EmbeddingFailed):
        Sidecar(tmp_path / "v.db").vectors(embedder, TEXTS, Kind.DOCUMENT, fail)
    assert 0 < count(tmp_path / "v.db") < len(TEXTS)


def swapped(path: Path, columns: str) -> None:
    """Swaps columns of the first two texts' rows."""
    with sqlite3.connect(path) as connection:
        rows = [
            connection.execute(f"SELECT {columns} FROM vectors WHERE text = ?", (text_digest(t),)).fetchone()
            for t in TEXTS[:2]
        ]
        setting = ", ".join(f"{column} = ?" for column in columns.split(", "))
        for text, values in zip(TEXTS[:2], reversed(rows), strict=True):
            connection.execute(f"UPDATE vectors SET {setting} WHERE text = ?", (*values, text_digest(text)))


@pytest.mark.parametrize("columns", ["vector", "seal", "vector, seal"])
def test_swapped_vectors_in_the_file_are_found(tmp_path: Path, columns: str) -> None:
    file = Sidecar(tmp_path / "v.db")
    file.vectors(Counting(), TEXTS, Kind.DOCUMENT)
    swapped(file.path, columns)
    with pytest.raises(InputError, match="does not fit its seal") as caught:
        file.vectors(Counting(), TEXTS, Kind.DOCUMENT)
    assert "delete the file" in caught.value.mend


def test_a_vector_cut_short_is_found(tmp_path: Path) -> None:
    file = Sidecar(tmp_path / "v.db")
    file.vectors(Counting(), TEXTS, Kind.DOCUMENT)
    with sqlite3.connect(file.path) as connection:
        connection.execute("UPDATE vectors SET vector = substr(vector, 1, 8) WHERE text = ?", (text_digest(TEXTS[3]),))
    with pytest.raises(InputError, match="does not fit its seal"):
        file.vectors(Counting(), TEXTS, Kind.DOCUMENT)


def test_vectors_that_somebody_deletes_meanwhile_are_missed(tmp_path: Path) -> None:
    def delete(done: int, total: int) -> None:
        with sqlite3.connect(tmp_path / "v.db") as connection:
            connection.execute("DELETE FROM vectors WHERE text = ?", (text_digest("a"),))

    with pytest.raises(InputError, match="1 vectors are gone"):
        Sidecar(tmp_path / "v.db").vectors(Counting(), ["a", "b"], Kind.DOCUMENT, delete)


def test_a_file_of_noise(tmp_path: Path) -> None:
    (tmp_path / "v.db").write_bytes(b"noise" * 1000)
    with pytest.raises(InputError, match="damaged"):
        Sidecar(tmp_path / "v.db").vectors(Counting(), ["a"], Kind.DOCUMENT)


def test_a_file_cut_in_half(tmp_path: Path) -> None:
    file = Sidecar(tmp_path / "v.db")
    file.vectors(Counting(), TEXTS * 3, Kind.DOCUMENT)
    data = file.path.read_bytes()
    file.path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="damaged"):
        file.vectors(Counting(), TEXTS, Kind.DOCUMENT)


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory_store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE facts(x)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="no file of vectors"):
        Sidecar(path).vectors(Counting(), ["a"], Kind.DOCUMENT)
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match="cannot be kept"):
        Sidecar(tmp_path / "no" / "v.db").vectors(Counting(), ["a"], Kind.DOCUMENT)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def small(*args: object, **kwargs: object) -> sqlite3.Connection:
        connection = connect(*args, **kwargs)  # type: ignore[call-overload]
        connection.execute("PRAGMA max_page_count = 4")  # SQLite then says what it says of a full disk
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(EnvironmentUnusable, match="full") as caught:
        Sidecar(tmp_path / "v.db").vectors(Counting(), TEXTS * 2, Kind.DOCUMENT)
    assert caught.value.mend == "free disk space"


def index_of(vectors: Sequence[Sequence[float]], ids: Sequence[int], embedder: Embedder) -> DenseIndex:
    matrix = np.asarray(vectors, dtype=np.float32)
    return DenseIndex(ids, SealedVectors(("",) * len(ids), (b"",) * len(ids), matrix, Kind.DOCUMENT), embedder, 1.0)


class Fixed(Counting):
    """Answers every query with one vector."""

    def __init__(self, vector: Sequence[float]) -> None:
        super().__init__()
        self._vector = vector

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        super().embed(texts, kind, timeout)
        return np.asarray([self._vector] * len(texts), dtype=np.float32)


def test_ties_are_settled_by_id_also_at_the_cut() -> None:
    vectors = [[0.6, 0.8], [1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1]]
    index = index_of(vectors, [40, 7, 12, 3, 1], Fixed([1, 0]))
    assert index.nearest("q", 2).pairs == ((7, 1.0), (3, 0.6))
    assert index.nearest("q", 3).pairs == ((7, 1.0), (3, 0.6), (12, 0.6))
    assert index.nearest("q", 99).pairs == ((7, 1.0), (3, 0.6), (12, 0.6), (40, 0.6), (1, 0.0))
    assert set(index.nearest("q", 2).seconds) == {"embed", "dense"}
    assert index.nearest("q", 0).pairs == ()


def test_nearest_is_the_same_as_a_full_sort() -> None:
    draw = np.random.default_rng(5)
    vectors = np.round(draw.normal(size=(300, 3)), 0) + 0.1  # many equal ones
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = draw.permutation(1000)[:300]
    query = np.array([0.6, 0.0, 0.8])
    index = index_of(vectors.tolist(), ids.tolist(), Fixed(query.tolist()))
    cosines = np.round((vectors.astype(np.float32) @ query.astype(np.float32)).astype(float), 6)
    expected = sorted(zip((-cosines).tolist(), ids.tolist(), strict=True))
    for limit in (1, 5, 50, 299, 300):
        assert index.nearest("q", limit).pairs == tuple((i, -c) for c, i in expected[:limit])


def test_a_blank_query_asks_nobody_and_blank_facts_have_no_vector(tmp_path: Path) -> None:
    embedder = Counting()
    index = DenseIndexes(embedder, tmp_path / "v.db")([(1, "tea"), (2, "  \n"), (3, "rum")])
    assert index.fact_ids.tolist() == [1, 3]
    assert index.nearest(" \t", 5).pairs == ()
    assert len(embedder.calls) == 1
    empty = DenseIndexes(embedder, tmp_path / "v.db")([])
    assert empty.nearest("tea", 5).pairs == ()


def test_a_server_that_hangs_costs_less_after_some_timeouts_and_is_still_asked() -> None:
    embedder = Fixed([1, 0])
    index = index_of([[1, 0]], [1], embedder)
    embedder.failing = "timeout"
    for _ in range(SILENT_AFTER + 2):
        with pytest.raises(EmbeddingFailed):
            index.nearest("q", 1)
    assert embedder.limits == [1.0] * SILENT_AFTER + [SHORTENED] * 2
    embedder.failing = ""
    assert index.nearest("q", 1).pairs
    embedder.failing = "server_gone"
    with pytest.raises(EmbeddingFailed):
        index.nearest("q", 1)
    assert embedder.limits[-1] == 1.0


def test_speed_of_many_vectors() -> None:
    draw = np.random.default_rng(1)
    matrix = draw.normal(size=(20_000, 384)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    index = index_of(matrix, range(20_000), Fixed(matrix[7].tolist()))  # type: ignore[arg-type]
    started = time.perf_counter()
    assert index.nearest("q", 10).pairs[0] == (7, 1.0)
    assert time.perf_counter() - started < 1


def test_a_seal_binds_text_model_kind_and_bytes() -> None:
    model, vector = Counting().identity, np.ones(3, dtype=np.float32)
    seals = {
        seal("a", model, Kind.DOCUMENT, vector),
        seal("b", model, Kind.DOCUMENT, vector),
        seal("a", model, Kind.QUERY, vector),
        seal("a", Counting("cc").identity, Kind.DOCUMENT, vector),
        seal("a", Counting(prefixes=(("document", "x"),)).identity, Kind.DOCUMENT, vector),
        seal("a", model, Kind.DOCUMENT, np.nextafter(vector, np.float32(2))),
    }
    assert len(seals) == 6
