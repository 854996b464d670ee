"""The Ollama client against a protocol double over real HTTP. Nothing here says anything of Ollama or its models."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ollama", reason="the bench extra is not installed: pip install -e '.[bench]'")

from lab.errors import EmbeddingFailed, EnvironmentUnusable
from lab.retrieval.embedders.base import Kind
from lab.retrieval.embedders.ollama import OllamaEmbedder
from lab.retrieval.embedders.prefixes import prefixes_of
from lab.retrieval.embedders.select import embedder_for
from tests.doubles.ollama_double import DIGEST, MODEL, VERSION, OllamaDouble, hashed, serving
from tests.ollama_shapes import check, schema_of

PROJECT = Path(__file__).parents[2]
TEXTS = ["Ana likes tea", "Rui likes coffee", "the car is blue"]

# Fields that the embedder reads; Ollama's own description of its API (tests/ollama_shapes.py) demands none.
READ = {
    "/api/version": ("version",),
    "/api/tags": ("models",),
    "/api/show": ("license", "details", "model_info"),
    "/api/embed": ("model", "embeddings"),
}


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with serving() as running:
        yield running


@pytest.fixture
def embedder(double: OllamaDouble) -> Iterator[OllamaEmbedder]:
    made = OllamaEmbedder(MODEL, double.url)
    yield made
    made.close()
    made.close()


def cause(embedder: OllamaEmbedder, timeout: float | None = None, text: str = "a") -> tuple[str, str]:
    with pytest.raises(EmbeddingFailed) as caught:
        embedder.embed([text, "b"], Kind.QUERY, timeout)
    assert caught.value.message
    assert "\n" not in str(caught.value)
    return caught.value.cause, str(caught.value)


@pytest.mark.parametrize("path", READ)
def test_the_double_answers_in_ollamas_shapes(double: OllamaDouble, path: str) -> None:
    _, answer = double.answer(path, {"model": MODEL, "input": TEXTS})
    check(schema_of(path, "response"), answer, *READ[path])


def test_identity_is_pinned_and_says_what_it_is(embedder: OllamaEmbedder) -> None:
    identity = embedder.identity
    assert (identity.backend, identity.model, identity.digest) == ("ollama", MODEL, DIGEST)
    assert (identity.dimensions, identity.version, identity.licence) == (64, VERSION, "MIT")
    assert identity.prefix(Kind.QUERY) == "query: "
    assert identity.notes == ()


def test_what_goes_in_is_prefix_and_text_and_is_never_cut(embedder: OllamaEmbedder, double: OllamaDouble) -> None:
    found = embedder.embed(TEXTS, Kind.DOCUMENT)
    asked = [body for path, body in double.requests if path == "/api/embed"][-1]
    check("EmbedRequest", asked, "truncate")
    assert asked["truncate"] is False
    assert asked["input"] == ["passage: " + text for text in TEXTS]
    assert np.array_equal(found, np.asarray(hashed(asked["input"]), dtype=np.float32))
    embedder.embed(["x"], Kind.QUERY)
    assert double.embedded()[-1] == ["query: x"]
    assert embedder.embed([], Kind.QUERY).shape == (0, 64)


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("bge-m3", "", ""),
        ("bge-m3:567m", "", ""),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("someone/multilingual-e5-large:f16", "query: ", "passage: "),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
    ],
)
def test_known_prefixes(model: str, query: str, document: str) -> None:
    assert prefixes_of(model) == (("query", query), ("document", document))


def test_an_unknown_model_has_no_prefix_and_that_is_said(double: OllamaDouble) -> None:
    assert prefixes_of("mystery") is None
    double.models["mystery:v2"] = "e1" * 32
    embedder = OllamaEmbedder("mystery:v2", double.url)
    assert embedder.identity.prefix(Kind.QUERY) == ""
    assert "no prefix is known for mystery:v2" in embedder.identity.notes[0]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("500", "llama runner process has terminated"),
        ("wrong_count", "1 vectors for 2 texts"),
        ("wrong_dimension", "63 dimensions instead of 64"),
        ("ragged", "no vectors of one length"),
        ("nan", "not finite"),
        ("zero", "length zero"),
        ("broken_json", "cannot be read"),
        ("list", "cannot be read"),
        ("no_vectors", "cannot be read"),
    ],
)
def test_a_bad_answer_is_named(embedder: OllamaEmbedder, double: OllamaDouble, fault: str, words: str) -> None:
    embedder.embed(["a"], Kind.QUERY)
    double.fault = fault
    kind, text = cause(embedder)
    assert kind == "bad_answer"
    assert words in text
    double.fault = ""
    assert embedder.embed(["a"], Kind.QUERY).shape == (1, 64)


def test_vectors_that_are_not_of_unit_length_are_made_so(embedder: OllamaEmbedder, double: OllamaDouble) -> None:
    plain = embedder.embed(TEXTS, Kind.QUERY)
    double.fault = "not_unit"
    scaled = embedder.embed(TEXTS, Kind.QUERY)
    assert np.allclose(plain, scaled, atol=1e-6)
    assert np.allclose(np.linalg.norm(scaled, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("fault", ["hang", "trickle"])
def test_the_limit_holds_for_the_whole_call(embedder: OllamaEmbedder, double: OllamaDouble, fault: str) -> None:
    embedder.embed(["a"], Kind.QUERY)
    double.fault = fault
    started = time.monotonic()
    kind, text = cause(embedder, timeout=0.3)
    assert kind == "timeout"
    assert "0.3 s" in text
    assert time.monotonic() - started < 2
    double.fault = ""
    assert embedder.embed(["a"], Kind.QUERY, 5).shape == (1, 64)


def test_a_server_that_hangs_up_is_gone(embedder: OllamaEmbedder, double: OllamaDouble) -> None:
    embedder.embed(["a"], Kind.QUERY)
    double.fault = "reset"
    assert cause(embedder)[0] == "server_gone"


def test_a_refused_connection_fails_at_once_and_shows_no_password() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        embedder = OllamaEmbedder("bge-m3", f"http://user:secret@127.0.0.1:{held.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(EmbeddingFailed) as caught:
            _ = embedder.identity
    assert caught.value.cause == "server_gone"
    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert time.monotonic() - started < 2


def test_a_server_that_dies_in_mid_run() -> None:
    command = [sys.executable, "-m", "tests.doubles.ollama_double"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as dying:
        assert dying.stdout
        embedder = OllamaEmbedder(MODEL, dying.stdout.readline().strip())
        embedder.embed(["a"], Kind.QUERY)
        dying.kill()
    assert cause(embedder)[0] == "server_gone"
    assert embedder.identity.digest == DIGEST, "who the model was is still known"


def test_a_missing_model_is_named_with_its_mend(double: OllamaDouble) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        _ = OllamaEmbedder("bge-m3", double.url).identity
    assert caught.value.cause == "model_missing"
    assert caught.value.mend == "ollama pull bge-m3"


def test_a_model_that_is_removed_in_mid_run_is_named_by_the_server(
    embedder: OllamaEmbedder, double: OllamaDouble
) -> None:
    embedder.embed(["a"], Kind.QUERY)
    double.models.clear()
    kind, text = cause(embedder)
    assert kind == "model_missing"
    assert f'model "{MODEL}" not found, try pulling it first' in text


def test_another_model_under_the_same_name_is_noticed(embedder: OllamaEmbedder, double: OllamaDouble) -> None:
    embedder.embed(["a"], Kind.QUERY)
    double.models[f"{MODEL}:latest"] = "e1" * 32
    kind, text = cause(embedder)
    assert kind == "model_missing"
    assert "another model now" in text


def test_a_text_beyond_the_context_is_an_error(embedder: OllamaEmbedder) -> None:
    kind, text = cause(embedder, text="long " * 5000)
    assert kind == "bad_answer"
    assert "exceeds the context length" in text


@pytest.mark.parametrize("host", ["http://[bad", "http://x:notaport"])
def test_an_address_that_is_none(host: str) -> None:
    with pytest.raises(EnvironmentUnusable, match="address of Ollama"):
        OllamaEmbedder("bge-m3", host)


def test_by_name(double: OllamaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", double.url)
    assert embedder_for(f"ollama:{MODEL}").identity.digest == DIGEST
    double.models["bge-m3:latest"] = "b3" * 32
    assert embedder_for("ollama").identity.model == "bge-m3"
