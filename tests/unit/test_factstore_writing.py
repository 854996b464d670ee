"""Adding, removing, enriching: a fact's age stays, and no secret is remembered."""

from __future__ import annotations

import base64
import random
import sqlite3
import string
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.retrieval.factstore.entities import names_in
from lab.retrieval.factstore.lexical import LexicalIndex
from lab.retrieval.factstore.schema import open_store
from lab.retrieval.factstore.secrets import find_secret
from lab.retrieval.factstore.store import FactRefused, FactStore, enrich

AGE = "SELECT created_at, updated_at, trust_score, retrieval_count, helpful_count FROM facts WHERE fact_id = 1"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_store(tmp_path / "store.db")) as store:
        store.execute(
            "INSERT INTO facts (content, tags, created_at, updated_at, trust_score)"
            " VALUES ('Ana drinks matcha', 'drink', '2020-01-01 00:00:00', '2021-01-01 00:00:00', 0.7)"
        )
        yield store


def test_enrichment_adds_words_and_leaves_the_age_alone(connection: sqlite3.Connection) -> None:
    index = LexicalIndex(connection, keywords=True)
    before = tuple(connection.execute(AGE).fetchone())
    assert enrich(connection, 1, ["tea", "Drink", "tea", "  green   tea ", ""]) == ("tea", "green tea")
    assert enrich(connection, 1, ["TEA"]) == ()
    assert tuple(connection.execute("SELECT tags, keywords FROM facts").fetchone()) == (
        "drink,tea,green tea",
        "tea,green tea",
    )
    assert tuple(connection.execute(AGE).fetchone()) == before
    assert [found.fact_id for found in index.search(["green"], 5, 0.0)] == [1]
    words = "SELECT rowid FROM facts_fts WHERE facts_fts MATCH 'tea'"  # upstream's own index follows
    assert [row[0] for row in connection.execute(words)] == [1]


def test_a_trigger_that_would_change_the_age_takes_the_enrichment_back(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TRIGGER touch BEFORE UPDATE OF tags ON facts BEGIN"
        " UPDATE facts SET updated_at = CURRENT_TIMESTAMP WHERE fact_id = new.fact_id; END"
    )
    before = connection.execute("SELECT * FROM facts").fetchall()
    with pytest.raises(FactRefused, match="trigger"):
        enrich(connection, 1, ["tea"])
    assert connection.execute("SELECT * FROM facts").fetchall() == before


@pytest.mark.parametrize("keywords", [["a,b"], ["tea", "ghp_" + "a1B2" * 9], ["password: hunter22"]])
def test_enrichment_refuses_secrets_and_commas_as_a_whole(connection: sqlite3.Connection, keywords: list[str]) -> None:
    with pytest.raises(FactRefused) as refused:
        enrich(connection, 1, keywords)
    assert "hunter22" not in str(refused.value) and "a1B2" not in str(refused.value)
    assert connection.execute("SELECT tags FROM facts").fetchone()[0] == "drink"


def test_a_fact_that_holds_a_secret_is_not_enriched(connection: sqlite3.Connection) -> None:
    store = FactStore(connection)
    fact_id = store.add("The password: hunter22 opens it")
    with pytest.raises(FactRefused, match="password"):
        enrich(connection, fact_id, ["door"])
    with pytest.raises(FactRefused, match="no fact 99"):
        enrich(connection, 99, ["door"])


def test_a_text_is_stored_once_with_its_links(connection: sqlite3.Connection) -> None:
    store = FactStore(connection)
    first = store.add(' "Green Kettle" belongs to Ana Souza\0', author="user")
    assert store.add('"Green Kettle" belongs to Ana Souza') == first
    names = "SELECT name FROM entities JOIN fact_entities USING (entity_id) WHERE fact_id = ?"
    assert {row[0] for row in connection.execute(names, (first,))} == {"Green Kettle", "Ana Souza"}
    assert [fact.author for fact in store.list()] == ["unknown", "user"]
    assert store.find("Kettle") == first and store.find("a") is None
    assert (store.remove(first), store.remove(first)) == (True, False)
    assert connection.execute("SELECT count(*) FROM fact_entities").fetchone()[0] == 0
    for wrong in ({"content": " "}, {"content": "x", "author": "nobody"}):
        with pytest.raises(FactRefused):
            store.add(**wrong)


def _random_token(alphabet: str, length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl"),
        ("AWS access key", "the key AKIAIOSFODNN7EXAMPLE works"),
        ("GitHub token", "ghp_" + "a1B2c3D4e" * 4),
        ("GitLab token", "glpat-" + "x" * 20),
        ("Slack token", "xoxb-123456789012-abc"),
        ("Stripe key", "sk_live_" + "4eC39HqLyjWDarjt"),
        ("API key", "sk-proj-" + "a" * 20),
        ("Google API key", "AIza" + "B" * 35),
        ("JSON web token", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc"),
        ("password in an address", "postgres://ana:s3cret@db.example.test/x"),
        *(
            ("password", text)
            for text in ("password: hunter22", "Senha é abc123!", "API_KEY=abcd", "the token is x9y8z")
        ),
        ("password", f"token: {uuid.UUID(int=7)}"),
        *(("random token", _random_token(string.ascii_letters + string.digits, 24, seed)) for seed in range(5)),
        *(("random token", _random_token("0123456789abcdef", 40, seed)) for seed in range(3)),
        ("random token", base64.b64encode(random.Random(1).randbytes(24)).decode()),
    ],
)
def test_secrets_are_found(kind: str, text: str) -> None:
    assert find_secret(text) == kind
    assert find_secret(f"Note of Ana's: {text} (old)") == kind


@pytest.mark.parametrize(
    "text",
    [
        *("POL-358", "C++", "key:value", "node.js", "pve-01", "INV-2024-000123", "AKIA", "sk-learn", "ghp", "eyJ"),
        "Ticket 3f2b8c1e-7a4d-4e0b-9c55-0d1e2f3a4b5c is closed.",  # bare UUIDs number tickets
        "She forgot her password again.",
        "The password is needed for the door.",
        "A senha é secreta.",
        "The token of her esteem",
        "internationalization-of-the-retrieval-benchmark",
        "TheVeryLongCamelCaseNameOfAClass2024Edition",
        "https://example.test/a/very/long/path/with-words/and_more/2024",
        "ana.souza@example.test",
        "00000000000000000000000000000000",
        "2024-11-30T14:02:36.000000+00:00",
        "DE89370400440532013000",  # an account number is personal, but no key
        "a" * 10_000,
        "password" * 2_000,
    ],
)
def test_identifiers_and_prose_are_not_taken_for_secrets(text: str) -> None:
    assert find_secret(text) == ""


def test_names_in_a_long_text_without_punctuation_are_found_fast() -> None:
    """Upstream's pattern for aliases takes a time that grows with the square of the words: a minute for these."""
    started = time.perf_counter()
    assert names_in("word " * 40_000 + "Ana Souza") == ("Ana Souza",)
    assert time.perf_counter() - started < 5
    assert names_in("Ana AKA Nina") == ("Ana", "Nina")
