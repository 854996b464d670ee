"""Vectors of another row: in the sidecar, in the vector store, in an index, in a table of facts, in a plain matrix."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from lab.memories.archive.vectors import TABLE, VectorStore
from lab.retrieval.embedders.base import Embedder, Kind, Vectors
from lab.retrieval.embedders.index import DenseIndex
from lab.retrieval.embedders.integrity import check
from lab.retrieval.embedders.packages import bench_package
from lab.retrieval.embedders.sidecar import SealedVectors, Sidecar, text_digest
from lab.retrieval.factstore import hrr
from lab.retrieval.factstore.entities import names_in
from lab.suites.integrity.cases import Case, Finding, Held, judge, looked, size
from lab.suites.integrity.living import fresh
from lab.suites.integrity.stores import FACT_STORE

FAULT = "vectors of another row"
_TEXTS = (
    "The blue binder lies on the third shelf.",
    "Renata teaches pottery on Thursdays.",
    "O servidor de testes fica em Recife.",
    "The ferry to the island leaves at seven.",
    "A reunião da cooperativa é na primeira segunda-feira.",
    "Otávio repairs old radios in his garage.",
    "The greenhouse is heated with wood pellets.",
    "A chave do depósito está com a vizinha.",
)
"""Short texts of distinct matters, two languages; each is asked for by itself."""

_SAME = 1e-4


@dataclass(frozen=True)
class _Scene:
    """The texts with their true vectors."""

    embedder: Embedder
    sealed: SealedVectors
    work: Path


def vectors(embedder: Embedder, work: Path) -> Iterator[Case]:
    """Gives rows the vectors of others and asks each row for its own.

    Raises:
        EmbeddingFailed: The texts could not be embedded.
        EnvironmentUnusable: LanceDB is not installed.
    """
    sealed = Sidecar(work / "vectors.db").vectors(embedder, _TEXTS, Kind.DOCUMENT)
    scene = _Scene(embedder, sealed, work)
    yield from _sidecars(scene)
    yield from _indexes(scene)
    yield from _matrices(scene)
    yield _facts(work)
    yield from _lance(scene)


def _case(
    store: str, way: str, read: Callable[[], Finding], path: Path, before: int, *, baseline: bool = False
) -> Case:
    finding = looked(read)
    return Case(
        store=store,
        fault=FAULT,
        way=way,
        baseline=baseline,
        before=Held(rows=len(_TEXTS), bytes=before),
        after=Held(rows=None if finding.found is None else len(finding.found), bytes=size(path)),
        verdict=judge({*_TEXTS}, finding),
        told=finding.told,
    )


def _own(sealed: SealedVectors, matrix: Vectors) -> frozenset[str]:
    """The texts whose vector in a matrix is their own."""
    near = np.abs(matrix - sealed.matrix).max(axis=1) < _SAME
    return frozenset(text for text, own in zip(_TEXTS, near, strict=True) if own)


_SWAP = """
UPDATE vectors SET {what} = (SELECT {what} FROM kept WHERE kept.text = CASE vectors.text WHEN :a THEN :b ELSE :a END)
WHERE text IN (:a, :b)
"""


def _sidecars(scene: _Scene) -> Iterator[Case]:
    columns = {
        "two vectors swapped": ("vector",),
        "two vectors swapped with their seals": ("vector", "seal"),
        "a row removed": (),
    }
    source = scene.work / "vectors.db"
    for way, swapped in columns.items():
        path = fresh(scene.work, "sidecar", way) / "vectors.db"
        path.write_bytes(source.read_bytes())
        keys = {"a": text_digest(_TEXTS[0]), "b": text_digest(_TEXTS[1])}
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM vectors")
            for column in swapped:
                connection.execute(_SWAP.format(what=column), keys)
            if not swapped:
                connection.execute("DELETE FROM vectors WHERE text = ?", (keys["a"],))

        def read(path: Path = path) -> Finding:
            found = Sidecar(path).vectors(scene.embedder, _TEXTS, Kind.DOCUMENT)
            return Finding(found=_own(scene.sealed, found.matrix))

        yield _case("sidecar of vectors", way, read, path, size(source))


def _lance(scene: _Scene) -> Iterator[Case]:
    """The table is changed by LanceDB itself, behind the store's back; the store is then brought up and asked."""
    points, dimensions = [text_digest(text) for text in _TEXTS], scene.sealed.matrix.shape[1]
    for way, with_seals in (("two vectors swapped", False), ("two vectors swapped with their seals", True)):
        folder = fresh(scene.work, "lance", way) / "store"
        VectorStore(folder, dimensions).sync(points, scene.sealed.matrix, scene.sealed.seals)
        before = size(folder)
        table = bench_package("lancedb").connect(folder).open_table(TABLE)
        for row, other in ((0, 1), (1, 0)):
            values = {"vector": scene.sealed.matrix[other].tolist()}
            if with_seals:
                values["seal"] = scene.sealed.seals[other].hex()
            table.update(where=f"point = '{points[row]}'", values=values)

        def read(folder: Path = folder) -> Finding:
            store = VectorStore(folder, dimensions)
            store.sync(points, scene.sealed.matrix, scene.sealed.seals)
            return Finding(
                found=_nearest_own(scene.sealed.matrix, lambda vector: points.index(store.nearest(vector, 1)[0][0]))
            )

        yield _case("vector store", f"{way}, then brought up", read, folder, before)


def _nearest_own(matrix: Vectors, nearest: Callable[[Vectors], int]) -> frozenset[str]:
    """The texts that are nearest to their own vector."""
    return frozenset(text for row, text in enumerate(_TEXTS) if nearest(matrix[row]) == row)


def _indexes(scene: _Scene) -> Iterator[Case]:
    """An index whose row ids are shifted by one against its vectors: with the lab's check, and without."""
    rows = list(enumerate(_TEXTS, start=1))
    shifted = DenseIndex([fact_id % len(rows) + 1 for fact_id, _ in rows], scene.sealed, scene.embedder)

    def asked() -> Finding:
        cosines = [np.argsort(-(shifted.vectors.matrix @ vector))[0] for vector in scene.sealed.matrix]
        named = [int(shifted.fact_ids[row]) for row in cosines]
        return Finding(
            found=frozenset(text for (fact_id, text), said in zip(rows, named, strict=True) if fact_id == said)
        )

    def checked() -> Finding:
        found = asked().found
        told = [finding.text for finding in check(shifted, rows).findings if finding.check == "rows"]
        return Finding(found=found, told="; ".join(told))

    path = scene.work / "vectors.db"
    yield _case("dense index", "row ids shifted, checked before the run", checked, path, size(path))
    yield _case("dense index", "row ids shifted, not checked", asked, path, size(path), baseline=True)


def _matrices(scene: _Scene) -> Iterator[Case]:
    """The usual way: a matrix in a file, its rows in the order of the facts as they once were."""
    for way, shift in (("rows shifted", 1), ("rows as they were written", 0)):
        path = fresh(scene.work, "matrix", way) / "vectors.npy"
        np.save(path, scene.sealed.matrix)
        before = size(path)
        np.save(path, np.roll(np.load(path), shift, axis=0))

        def read(path: Path = path) -> Finding:
            return Finding(found=_own(scene.sealed, np.load(path)))

        yield _case("plain matrix", way, read, path, before, baseline=True)


def _facts(work: Path) -> Case:
    """The vectors that the agent's plugin keeps beside its facts."""
    place = fresh(work, "hrr")
    with closing(FACT_STORE.open(place, "one")) as handle:
        handle.add(_TEXTS)
    path = place / FACT_STORE.file
    before = size(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        kept = connection.execute("SELECT hrr_vector FROM facts WHERE fact_id <= 2 ORDER BY fact_id DESC").fetchall()
        connection.executemany("UPDATE facts SET hrr_vector = ? WHERE fact_id = ?", [(*kept[0], 1), (*kept[1], 2)])
    way = "two HRR vectors swapped, opened by the store"
    return _case(FACT_STORE.name, way, partial(_right_hrr, place), path, before)


def _right_hrr(place: Path) -> Finding:
    FACT_STORE.read(place)
    with closing(sqlite3.connect(place / FACT_STORE.file)) as connection:
        rows: Sequence[tuple[str, bytes]] = connection.execute("SELECT content, hrr_vector FROM facts").fetchall()
    right = (text for text, stored in rows if hrr.to_bytes(hrr.encode_fact(text, names_in(text))) == stored)
    return Finding(found=frozenset(right))
