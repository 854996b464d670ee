"""The vector store: the vectors of these points and no others, compared exactly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.archive import vectors
from lab.memories.archive.points import point_id
from lab.memories.archive.vectors import Synced, VectorStore, lancedb_version
from lab.retrieval.embedders.base import Vectors

pytest.importorskip("lancedb", reason="the archive extra is not installed")

DIMENSIONS = 24


def unit(rows: int, seed: int = 0) -> Vectors:
    found = np.random.default_rng(seed).standard_normal((rows, DIMENSIONS)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


def points(rows: int) -> list[str]:
    return [point_id(f"document {row}") for row in range(rows)]


def seals(matrix: Vectors) -> list[bytes]:
    return [row.tobytes() for row in matrix]


@pytest.fixture
def store(tmp_path: Path) -> VectorStore:
    return VectorStore(tmp_path / "vectors", DIMENSIONS)


def fill(store: VectorStore, rows: int, seed: int = 0) -> Vectors:
    matrix = unit(rows, seed)
    store.sync(points(rows), matrix, seals(matrix))
    return matrix


def files(store: VectorStore) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(store.folder.rglob("*")) if path.is_file()}


def test_scores_and_order_are_those_of_a_matrix_product(store: VectorStore) -> None:
    matrix, names = fill(store, 300), points(300)
    for query in unit(25, seed=1):
        exact = matrix.astype(np.float64) @ query.astype(np.float64)
        order = sorted(range(300), key=lambda row: (-round(exact[row], 6), names[row]))[:20]
        found = store.nearest(query, 20)
        assert [point for point, _ in found] == [names[row] for row in order]
        assert [score for _, score in found] == pytest.approx([exact[row] for row in order], abs=1e-6)
        assert all(score == round(score, 6) for _, score in found)


def test_the_length_of_a_query_is_nothing_to_a_cosine(store: VectorStore) -> None:
    fill(store, 50)
    query = unit(1, seed=1)[0]
    assert [p for p, _ in store.nearest(query * 1000, 5)] == [p for p, _ in store.nearest(query, 5)]


def test_a_second_time_nothing_is_written(store: VectorStore) -> None:
    matrix = unit(40)
    assert store.sync(points(40), matrix, seals(matrix)) == Synced(40, 0, 0, 0)
    before = files(store)
    again = VectorStore(store.folder, DIMENSIONS)
    assert again.sync(points(40)[::-1], matrix[::-1], seals(matrix)[::-1]) == Synced(0, 0, 40, 0)
    assert files(store) == before
    assert len(again) == 40


def test_changed_points_are_replaced_and_missing_ones_removed_in_one_step(store: VectorStore) -> None:
    matrix, names = fill(store, 30), points(40)
    matrix = np.concatenate([matrix, unit(10, seed=2)])
    matrix[7] = unit(1, seed=3)[0]
    kept = [row for row in range(40) if row not in (0, 12)]
    version = store._table.version
    synced = store.sync([names[row] for row in kept], matrix[kept], seals(matrix[kept]))
    assert synced == Synced(added=10, changed=1, unchanged=27, removed=2)
    assert len(store) == 38
    (best, score), *_ = store.nearest(matrix[7], 1)
    assert (best, score) == (names[7], 1.0)
    assert {names[0], names[12]}.isdisjoint(point for point, _ in store.nearest(matrix[0], 40))
    store._table.checkout(version + 1)
    assert len(store) == 38, "the first version after the old one has all of it"
    store._table.checkout_latest()
    assert store.sync([], matrix[:0], []) == Synced(0, 0, 0, 38)
    assert len(store) == 0
    assert store.nearest(matrix[7], 3) == ()


def put(store: VectorStore, point: str, vector: Vectors) -> None:
    """Writes a vector behind the store's back, under the seal that is there."""
    store._table.update(where=f"point = '{point}'", values={"vector": vector.tolist()})


def test_vectors_that_were_swapped_under_their_seals_are_put_right_and_told(store: VectorStore) -> None:
    matrix, names = fill(store, 30), points(30)
    put(store, names[3], matrix[4])
    put(store, names[4], matrix[3])
    put(store, names[9], np.zeros(DIMENSIONS, dtype=np.float32))
    assert store.nearest(matrix[3], 1)[0][0] == names[4]
    again = VectorStore(store.folder, DIMENSIONS)
    assert again.sync(names, matrix, seals(matrix)) == Synced(0, 0, 27, 0, mended=3)
    assert [again.nearest(matrix[row], 1)[0][0] for row in range(30)] == names
    before = files(store)
    assert again.sync(names, matrix, seals(matrix)) == Synced(0, 0, 30, 0)
    assert files(store) == before


def test_one_bit_of_one_number_is_seen_and_other_changes_are_counted_apart(store: VectorStore) -> None:
    matrix, names = fill(store, 30), points(30)
    put(store, names[5], np.nextafter(matrix[5], np.float32(2)))
    put(store, names[7], matrix[0])  # of a row that goes
    put(store, names[8], matrix[0])  # of a row that changes
    kept = [row for row in range(30) if row != 7]
    matrix[8] = unit(1, seed=9)[0]
    assert store.sync([names[row] for row in kept], matrix[kept], seals(matrix[kept])) == Synced(0, 1, 27, 1, mended=1)
    assert store.nearest(matrix[5], 1) == ((names[5], 1.0),)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 6), st.integers(0, 3), max_size=6), min_size=1, max_size=4))
def test_after_any_history_it_holds_what_was_given_last(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[int, int]]
) -> None:
    store, matrix, names = VectorStore(tmp_path_factory.mktemp("v") / "v", DIMENSIONS), unit(28), points(7)
    before: dict[int, int] = {}
    for step in steps:
        rows = matrix[[point * 4 + version for point, version in step.items()]]
        synced = store.sync([names[point] for point in step], rows, seals(rows))
        same = sum(before.get(point) == version for point, version in step.items())
        assert synced == Synced(
            added=len(step.keys() - before.keys()),
            changed=len(step.keys() & before.keys()) - same,
            unchanged=same,
            removed=len(before.keys() - step.keys()),
        )
        for point, version in step.items():
            assert (names[point], 1.0) in store.nearest(matrix[point * 4 + version], 1)
        assert len(store) == len(step)
        before = step


def test_ties_come_whole_and_in_the_order_of_points(store: VectorStore) -> None:
    matrix, names = unit(40), points(40)
    matrix[3:20] = matrix[3]
    store.sync(names, matrix, seals(matrix))
    tied = [(name, 1.0) for name in sorted(names[3:20])]
    assert list(store.nearest(matrix[3], 1)) == tied
    assert list(store.nearest(matrix[3], 17)) == tied
    assert len(store.nearest(matrix[3], 18)) == 18
    assert len(store.nearest(matrix[3], 1000)) == 40
    assert store.nearest(matrix[3], 0) == ()


def test_another_dimension_is_refused_in_one_line(store: VectorStore) -> None:
    matrix = fill(store, 5)
    with pytest.raises(InputError, match="holds vectors of 24 numbers, the model makes vectors of 25") as caught:
        VectorStore(store.folder, 25)
    assert "\n" not in str(caught.value)
    assert "delete the folder" in caught.value.mend
    with pytest.raises(InputError, match=r"\(5, 23\) do not fit"):
        store.sync(points(5), matrix[:, :-1], seals(matrix))
    with pytest.raises(InputError, match=r"\(4, 24\) do not fit"):
        store.sync(points(5), matrix[:4], seals(matrix))
    with pytest.raises(InputError, match="do not fit"):
        store.nearest(matrix[0][:-1], 3)
    assert len(store) == 5


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_what_is_no_direction_is_refused(store: VectorStore, value: float) -> None:
    """The engine itself would answer such a query with nothing, and no error."""
    matrix = fill(store, 5)
    bad = matrix.copy()
    bad[2] = value
    with pytest.raises(InputError, match="no direction"):
        store.sync(points(5), bad, seals(bad))
    with pytest.raises(InputError, match="no direction"):
        store.nearest(bad[2], 3)
    assert store.nearest(matrix[2], 1)[0][0] == points(5)[2]


def test_a_point_that_is_there_twice_is_refused(store: VectorStore) -> None:
    """The engine would keep both rows."""
    matrix = unit(2)
    with pytest.raises(InputError, match="twice"):
        store.sync([points(1)[0]] * 2, matrix, seals(matrix))


def test_an_id_cannot_break_out_of_the_filter(store: VectorStore) -> None:
    matrix = unit(3)
    hostile = ["'", "x' OR point != '", "') OR true --"]
    store.sync(hostile, matrix, seals(matrix))
    assert store.sync(hostile[:1], matrix[:1], seals(matrix[:1])) == Synced(0, 0, 1, 2)
    assert [point for point, _ in store.nearest(matrix[0], 5)] == hostile[:1]


@pytest.mark.parametrize("part", ["_versions", "data"])
def test_a_damaged_store_is_one_line(store: VectorStore, part: str) -> None:
    matrix = fill(store, 50)
    for path in (store.folder / "points.lance" / part).iterdir():
        path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match="is damaged") as caught:
        VectorStore(store.folder, DIMENSIONS).nearest(matrix[0], 3)
    assert "\n" not in str(caught.value)
    assert "delete the folder" in caught.value.mend


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    import lancedb

    lancedb.connect(tmp_path / "v").create_table("points", [{"text": "no vectors"}])
    with pytest.raises(InputError, match="holds something else"):
        VectorStore(tmp_path / "v", DIMENSIONS)


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentUnusable, match="cannot be used"):
        VectorStore(tmp_path / "file" / "v", DIMENSIONS)


@pytest.mark.filterwarnings("ignore:optimize:UserWarning")
def test_old_versions_do_not_pile_up(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "KEPT", vectors.timedelta(microseconds=1))
    sizes = []
    for seed in range(12):
        fill(store, 200, seed)
        sizes.append(sum(len(content) for content in files(store).values()))
    assert max(sizes) < 3 * 200 * DIMENSIONS * 4
    assert len(store) == 200


def test_without_the_package_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise vectors.metadata.PackageNotFoundError("lancedb")

    monkeypatch.setitem(sys.modules, "lancedb", None)  # makes its import fail as if it were not there
    with pytest.raises(EnvironmentUnusable) as caught:
        VectorStore(tmp_path / "v", DIMENSIONS)
    assert caught.value.message == "the package lancedb is not installed"
    assert "[archive]" in caught.value.mend
    monkeypatch.setattr(vectors.metadata, "version", missing)
    with pytest.raises(EnvironmentUnusable, match="lancedb is not installed"):
        lancedb_version()


def test_the_package_is_loaded_only_when_a_store_is_opened() -> None:
    program = "import sys, lab.memories.archive.arms, lab.memories.archive.vectors; print('lancedb' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
