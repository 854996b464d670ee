"""Keyword enrichment that makes a fact look younger, or makes a secret easier to find."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from lab.retrieval.data.keywords import keywords_for
from lab.retrieval.factstore.schema import open_store
from lab.retrieval.factstore.secrets import find_secret
from lab.retrieval.factstore.store import FactStore, enrich
from lab.retrieval.testset import Fact
from lab.suites.integrity.cases import Case, Finding, Held, judge, looked, size, told_by
from lab.suites.integrity.living import fresh
from lab.suites.integrity.stores import FACT_STORE

AGE, SECRET = "enrichment touches age", "enrichment lets a secret in"
_OLD = "2025-01-05 08:00:00"
_TRIGGER = """
CREATE TRIGGER touch BEFORE UPDATE OF tags ON facts BEGIN
    UPDATE facts SET updated_at = '2020-01-01 00:00:00' WHERE fact_id = new.fact_id;
END
"""
"""A trigger that many schemas have in some form: every write changes the row's time."""

# Put together here, so that no scanner of this repository takes them for real ones.
SECRETS = {
    "assigned password": "The staging password: " + "tulip-" + "4471",
    "password in prose": "A senha é " + "tulipa" + "4471",
    "password of something, in prose": "A senha do roteador é " + "tulipa" + "4471",
    "API key": "Use s" + "k-" + "T3stOnly" * 4 + " for the demo",
    "access key": "The bucket key is AK" + "IA" + "ABCDEFGH12345678",
    "code host token": "Push with gh" + "p_" + "a1B2c3D4e5" * 4,
    "private key": "-----BEGIN " + "PRIVATE KEY-----",
    "address": "https://demo:" + "hunter22" + "@db.example.test/",
    "random token": "Session " + "q7Xk2Vb9Lm" + "T4rZs8WdY3nHc6",
    "PIN": "O PIN do cofre é " + "4471",
}
"""Synthetic secrets by kind. The last one has no shape that a detector could know: four digits."""


def enrichments(work: Path) -> Iterator[Case]:
    """Enriches facts by the lab's own code and by the update that is usually written."""
    yield _aged(work, "by the fact store", _own)
    yield _aged(work, "by the fact store, beside a trigger that touches age", _own, trigger=True)
    yield _aged(work, "by an update that sets updated_at", _usual, baseline=True)
    for name, text in SECRETS.items():
        yield _leaked(work, f"{name} in the fact, by the fact store", text, ("server",), _own)
        yield _leaked(work, f"{name} as a keyword, by the fact store", "The demo machine.", (text,), _own)
        yield _ruled(f"{name}, by the keyword rule", text)
    name, text = next(iter(SECRETS.items()))
    yield _leaked(work, f"{name} in the fact, by a plain update", text, ("server",), _usual, baseline=True)


Enrich = Callable[[sqlite3.Connection, int, tuple[str, ...]], object]


def _own(connection: sqlite3.Connection, fact_id: int, keywords: tuple[str, ...]) -> object:
    return enrich(connection, fact_id, keywords)


def _usual(connection: sqlite3.Connection, fact_id: int, keywords: tuple[str, ...]) -> object:
    query = "UPDATE facts SET tags = ?, updated_at = CURRENT_TIMESTAMP WHERE fact_id = ?"
    return connection.execute(query, (",".join(keywords), fact_id))


def _aged(work: Path, way: str, act: Enrich, *, trigger: bool = False, baseline: bool = False) -> Case:
    path = fresh(work, AGE, way) / FACT_STORE.file
    with closing(open_store(path)) as connection:
        fact_id = FactStore(connection).add("The blue binder lies on the third shelf.")
        connection.execute("UPDATE facts SET created_at = ?, updated_at = ?", (_OLD, _OLD))
        if trigger:
            connection.execute(_TRIGGER)
        before = size(path)

        def read() -> Finding:
            told = told_by(lambda: act(connection, fact_id, ("shelf",)))
            row = connection.execute("SELECT created_at, updated_at FROM facts").fetchone()
            return Finding(found=frozenset(n for n, v in zip(_AGES, row, strict=True) if v == _OLD), told=told)

        return _case(AGE, way, read, frozenset(_AGES), path, before, baseline=baseline)


_AGES = ("created_at", "updated_at")


def _leaked(work: Path, way: str, text: str, keywords: tuple[str, ...], act: Enrich, *, baseline: bool = False) -> Case:
    path = fresh(work, SECRET, way) / FACT_STORE.file
    with closing(open_store(path)) as connection:
        fact_id = FactStore(connection).add(text)
        before = size(path)

        def read() -> Finding:
            told = told_by(lambda: act(connection, fact_id, keywords))
            (tags,) = connection.execute("SELECT tags FROM facts").fetchone()
            return Finding(found=frozenset(() if tags else (_KEPT,)), told=told)

        return _case(SECRET, way, read, frozenset((_KEPT,)), path, before, baseline=baseline)


_KEPT = "no keyword makes the secret easier to find"


def _ruled(way: str, text: str) -> Case:
    """The rule of the test sets is asked with a fact that speaks of things it has keywords for, and the secret."""
    fact = Fact(id="f", text=f"My sister's car. {text}", language="en")
    if not keywords_for(fact):
        raise AssertionError("the fact triggers no keyword, so nothing is tested")
    found = frozenset(() if keywords_for(fact, lambda said: bool(find_secret(said))) else (_KEPT,))
    finding = Finding(found=found)
    return Case(
        store="keyword rule",
        fault=SECRET,
        way=way,
        before=Held(rows=1, bytes=len(fact.text.encode())),
        after=Held(rows=len(found), bytes=len(fact.text.encode())),
        verdict=judge({_KEPT}, finding),
    )


def _case(
    fault: str,
    way: str,
    read: Callable[[], Finding],
    expected: frozenset[str],
    path: Path,
    before: int,
    *,
    baseline: bool,
) -> Case:
    finding = looked(read)
    return Case(
        store=FACT_STORE.name,
        fault=fault,
        way=way,
        baseline=baseline,
        before=Held(rows=len(expected), bytes=before),
        after=Held(rows=None if finding.found is None else len(finding.found), bytes=size(path)),
        verdict=judge(expected, finding),
        told=finding.told,
    )
