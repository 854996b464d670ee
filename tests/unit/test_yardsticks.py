"""The yardsticks: plain BM25 and embeddings alone, on a database of the agent's shape."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lab.errors import EmbeddingFailed, InputError, SystemFailed
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.stopwords import STOPWORDS, folded, stopwords
from lab.retrieval.systems.base import System
from lab.retrieval.systems.bm25 import Bm25, Match, Tokenizer, match_expression
from lab.retrieval.systems.dense import Dense
from tests.doubles.ollama_double import hashed

FACTS = (
    ("Ana works at the hospital in São Paulo", "work", ""),
    ("Policy POL-358 covers the flat", "", "insurance"),
    ("Policy POL-412 covers the car, number 358", "", ""),
    ("Rui writes C++ and key:value stores with node.js", "", ""),
    ("Her birthday is on the twelfth of May", "", "aniversário"),
    ("O cachorro da Ana se chama Pipoca", "", ""),
    ("identical words here", "", ""),
    ("identical words here", "", ""),
    ("A memória 記憶装置 is a store", "", ""),
    ("Running shoes of the runner", "", ""),
)
HOSTILE = (
    "", " \t\n", "???", "*", '"', "'; DROP TABLE memory; --", "O'Brien", 'say "hello', "(Ana", "Ana AND", "NEAR(a b)",
    "content:Ana", "tags:x OR", "-Ana", "^Ana", "Ana*", "a\0b", "\ud800", "pve-01", "20.04", "ana@example.test", "🧠",
    "記憶", "{Ana}", "+ + +", "AND OR NOT", "x" * 10_000, "word " * 2_000, " ".join(f"w{i}" for i in range(2_000)),
)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "memory_store.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE facts(fact_id INTEGER PRIMARY KEY, content TEXT, tags TEXT, trust_score REAL, keywords TEXT)"
        )
        connection.executemany(
            "INSERT INTO facts(content, tags, trust_score, keywords) VALUES(?, ?, 0.5, ?)",
            [(content, ",".join(filter(None, (tags, keywords))), keywords) for content, tags, keywords in FACTS],
        )
    connection.close()
    return path


def opened(system: System, database: Path) -> System:
    system.open(database)
    return system


def found(system: System, query: str, k: int = 10) -> list[int]:
    return [hit.fact_id for hit in system.search(query, k).hits]


@pytest.mark.parametrize("match", Match)
@pytest.mark.parametrize("tokenizer", Tokenizer)
def test_no_query_breaks_it(database: Path, tokenizer: Tokenizer, match: Match) -> None:
    system = opened(Bm25(tokenizer, match), database)
    for query in HOSTILE:
        ranking = system.search(query, 5)
        ids = [hit.fact_id for hit in ranking.hits]
        assert len(ids) <= 5
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("query", ["", " ", "???", "*", "what is it?", "quem é?", "🧠"])
def test_a_query_without_a_term_finds_nothing_and_says_that_nothing_ran(database: Path, query: str) -> None:
    ranking = opened(Bm25(), database).search(query, 5)
    assert ranking.hits == ()
    assert ranking.channels == ()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("POL-358", 2),
        ("which policy is POL-412?", 3),
        ("C++", 4),
        ("key:value", 4),
        ("node.js", 4),
        ("sao paulo", 1),
        ("SÃO PAULO", 1),
        (unicodedata.normalize("NFD", "São Paulo"), 1),
        ("Ana's dog Pipoca", 6),
        ("O cachorro da Ana", 6),
        ("(Ana AND hospital", 1),
        ("記憶装置", 9),
    ],
)
def test_stated_behaviour(database: Path, query: str, first: int) -> None:
    assert found(opened(Bm25(Tokenizer.UNICODE61), database), query)[0] == first


def test_what_it_cannot_do_is_stated_too(database: Path) -> None:
    system = opened(Bm25(), database)
    assert found(system, "記憶") == [], "a run of CJK signs is one term"
    assert found(system, "C#") == found(system, "C++"), "signs are no part of a term"


def test_porter_takes_endings_off_and_unicode61_does_not(database: Path) -> None:
    assert found(opened(Bm25(Tokenizer.PORTER), database), "runs") == [10]
    assert found(opened(Bm25(Tokenizer.UNICODE61), database), "runs") == []


def test_stopwords_are_left_out_of_the_query_alone(database: Path) -> None:
    query = "what is in the hospital"
    assert found(opened(Bm25(), database), query) == [1]
    assert len(found(opened(Bm25(languages=()), database), query)) > 1


def test_and_finds_no_sentence(database: Path) -> None:
    sentence = "where does Ana work as a doctor"
    assert found(opened(Bm25(match=Match.OR), database), sentence)
    assert found(opened(Bm25(match=Match.AND), database), sentence) == []
    assert found(opened(Bm25(match=Match.AND), database), "Ana hospital") == [1]


def test_keywords_are_found_only_where_they_are_indexed(database: Path) -> None:
    assert found(opened(Bm25(keywords=True), database), "aniversário") == [5]
    assert found(opened(Bm25(keywords=False), database), "aniversario") == []
    assert found(opened(Bm25(keywords=False), database), "work")[0] == 1, "a fact's own tags always are"


def test_ties_are_ordered_by_id_also_at_the_cut(database: Path) -> None:
    system = opened(Bm25(), database)
    assert found(system, "identical words") == [7, 8]
    assert found(system, "identical words", 1) == [7]
    hits = system.search("identical words", 2).hits
    assert hits[0].score == hits[1].score == round(hits[0].score, 6)
    assert dict(hits[0].parts) == {"bm25": hits[0].score}
    assert found(system, "identical", 0) == []


def test_scores_are_those_of_fts5(database: Path) -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE VIRTUAL TABLE plain USING fts5(content, tags)")
        connection.executemany("INSERT INTO plain VALUES(?, ?)", [(c, t) for c, t, _ in FACTS])
        expected = connection.execute(
            "SELECT rowid, -bm25(plain) FROM plain WHERE plain MATCH 'ana OR hospital' ORDER BY 2 DESC, 1"
        ).fetchall()
    hits = opened(Bm25(Tokenizer.UNICODE61), database).search("Ana hospital", 10).hits
    assert [(hit.fact_id, pytest.approx(hit.score, abs=1e-6)) for hit in hits] == expected


def test_terms_are_quoted_and_asked_once() -> None:
    assert match_expression('Ana "OR" ana', frozenset({"or"}), Match.OR) == '"Ana" OR "ana"'
    assert match_expression("POL-358", frozenset(), Match.OR) == '"POL" OR "358" OR "POL 358"'
    assert match_expression("POL-358", frozenset(), Match.AND) == '"POL" AND "358"'
    assert match_expression("Ana's", stopwords(("en",)), Match.OR) == '"Ana"'


def test_names_and_settings_tell_systems_apart() -> None:
    systems = [Bm25(t, m, keywords=k) for t in Tokenizer for m in Match for k in (False, True)]
    assert len({system.name for system in systems}) == len(systems)
    assert len({json.dumps(system.settings()) for system in systems}) == len(systems)
    assert Bm25("porter", "and").name == "bm25-porter-and"  # type: ignore[arg-type]
    assert Bm25(languages=("en",)).settings() != Bm25().settings()
    with pytest.raises(InputError, match="no stopwords are known"):
        Bm25(languages=("xx",))


def test_stopwords_are_folded_and_leave_negations_alone() -> None:
    assert {len(words) > 110 for words in STOPWORDS.values()} == {True}
    for words in STOPWORDS.values():
        assert words == {folded(word) for word in words}
        assert not words & {"not", "no", "never", "nao", "nunca", "sem"} - {"no"}
    assert "no" in STOPWORDS["pt"], "Portuguese: in the"
    assert "no" not in STOPWORDS["en"]
    assert folded("Você") in stopwords(("pt",))


@pytest.mark.parametrize("system", [Bm25(), Dense(DenseIndexes(None, Path("v.db")))])  # type: ignore[arg-type]
def test_a_system_that_is_not_open(system: System, tmp_path: Path) -> None:
    with pytest.raises(SystemFailed):
        system.search("Ana", 5)
    with pytest.raises(InputError, match="no database"):
        system.open(tmp_path / "none.db")
    (tmp_path / "noise.db").write_bytes(b"noise" * 500)
    with pytest.raises(InputError):
        system.open(tmp_path / "noise.db")
    system.close()
    system.close()


class Embedder:
    """Hashed trigrams; fails when it is told to."""

    identity = ModelIdentity("double", "hashed", "aa" * 32, 64, ((Kind.QUERY, "q: "),), "none", "0")
    failing = ""

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        if self.failing:
            raise EmbeddingFailed("planted", "mend it", cause=self.failing)
        return np.asarray(hashed(texts), dtype=np.float32)

    def close(self) -> None:
        pass


def test_dense_ranks_by_cosine(database: Path, tmp_path: Path) -> None:
    embedder = Embedder()
    system = Dense(DenseIndexes(embedder, tmp_path / "v.db", timeout=2.0))
    system.open(database)
    ranking = system.search("policy POL-358 of the flat", 3)
    assert ranking.hits[0].fact_id == 2
    assert len(ranking.hits) == 3
    assert ranking.confidence == ranking.hits[0].score == ranking.hits[0].parts["dense"]
    assert ranking.channels == ("dense",)
    assert set(ranking.seconds) == {"embed", "dense"}
    assert found(system, "identical words here", 2) == [7, 8]
    blank = system.search(" ", 3)
    assert (blank.hits, blank.confidence, blank.channels) == ((), None, ())
    settings = json.loads(json.dumps(system.settings()))
    assert settings["embedder"]["digest"] == embedder.identity.digest
    assert settings["embedder"]["prefixes"] == {"query": "q: "}
    assert settings["timeout"] == 2.0
    embedder.failing = "server_gone"
    with pytest.raises(SystemFailed, match="server_gone: planted"):
        system.search("Ana", 3)
