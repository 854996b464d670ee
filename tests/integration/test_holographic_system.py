"""The agent's real holographic plugin as a system under test, and what the audits find in it."""

from __future__ import annotations

import dataclasses
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.agents.hermes.recipe import containers_directory
from lab.errors import EnvironmentUnusable, InputError, SystemFailed
from lab.isolation.base import Backend, PreparedEnvironment
from lab.records import file_digest
from lab.retrieval.audits.hostile_queries import QUERIES, Behaviour, audit_hostile_queries
from lab.retrieval.audits.hrr import COMPONENTS, audit_hrr
from lab.retrieval.audits.tables import hostile_table, hrr_table, terms_table
from lab.retrieval.audits.terms import audit_terms, explained_terms
from lab.retrieval.systems.base import System
from lab.retrieval.systems.holographic import HolographicPlugin, Mode, plugin_program
from lab.retrieval.systems.sandboxed import SystemRefused, WorkerProgram

pytestmark = pytest.mark.agent

DOCUMENT = containers_directory().parent / "docs" / "upstream-queries.md"

PEOPLE = ("Ana", "Bruno", "Clara", "Davi", "Elena", "Fabio")
THINGS = (
    ("drives", "a blue electric van", "which vehicle does {} drive, a van"),
    ("plays", "the cello in a city orchestra", "what instrument does {} play in the orchestra"),
    ("studies", "marine biology at night", "what subject does {} study, biology"),
    ("avoids", "peanuts because of an allergy", "which food allergy does {} have"),
)
FACTS = tuple(f"{who} {verb} {what}" for who in PEOPLE for verb, what, _ in THINGS)
QUERIES_BY_TOPIC = {f"t{n}": THINGS[n % 4][2].format(PEOPLE[n // 4]) for n in range(len(FACTS))}
RELEVANT = {f"t{n}": frozenset({n + 1}) for n in range(len(FACTS))}

# Upstream's schema, with what the lab's own databases add to it.
SCHEMA = """
CREATE TABLE facts (fact_id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL UNIQUE,
  category TEXT DEFAULT 'general', tags TEXT DEFAULT '', trust_score REAL DEFAULT 0.5,
  retrieval_count INTEGER DEFAULT 0, helpful_count INTEGER DEFAULT 0, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, hrr_vector BLOB, author TEXT, keywords TEXT DEFAULT '');
CREATE VIRTUAL TABLE facts_fts USING fts5(content, tags, content=facts, content_rowid=fact_id);
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
  INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags); END;
CREATE TRIGGER facts_au AFTER UPDATE ON facts BEGIN
  INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags);
  INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags); END;
CREATE TABLE fact_labels (label TEXT PRIMARY KEY, fact_id INTEGER NOT NULL);
"""

Prepared = Callable[[str], tuple[Backend, PreparedEnvironment]]


def database(path: Path, facts: tuple[str, ...] = FACTS) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO facts (content, author) VALUES (?, 'user')", [(one,) for one in facts])
        connection.execute("INSERT INTO fact_labels SELECT 'f' || fact_id, fact_id FROM facts")
        connection.commit()
    return path


def program(prepared: Prepared, backend: str, *, numpy: bool = True) -> WorkerProgram:
    prepared(backend)
    try:
        return plugin_program(backend, numpy=numpy)
    except EnvironmentUnusable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def with_numpy(prepared: Prepared) -> WorkerProgram:
    return program(prepared, "bwrap")


@pytest.fixture(scope="module")
def plugin(with_numpy: WorkerProgram) -> Iterator[HolographicPlugin]:
    """One sandbox for most tests; each opens its own database."""
    made = HolographicPlugin(program=with_numpy, rebuild=True)
    yield made
    made.close()


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    return database(tmp_path / "facts.db")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """What the plugin makes its own database of."""
    path = tmp_path / "empty.db"
    path.touch()
    return path


@pytest.mark.bwrap
def test_it_ranks_in_the_agents_environment(plugin: HolographicPlugin, facts: Path) -> None:
    system: System = plugin
    system.open(facts)
    settings = system.settings()
    assert (settings["agent"], settings["numpy"]) == ("hermes-agent 0.19.0", "2.4.3")
    assert settings["vectors"] == "all"
    assert settings["weights"] == {"fts": 0.4, "jaccard": 0.3, "hrr": 0.3}
    assert settings["legs"] == ["fts", "jaccard", "hrr"] and settings["depth"] is None
    ranking = system.search("which vehicle does Clara drive, a van", 10)
    assert FACTS[ranking.hits[0].fact_id - 1] == "Clara drives a blue electric van"
    scores = [hit.score for hit in ranking.hits]
    assert scores == sorted(scores, reverse=True)
    assert len({hit.fact_id for hit in ranking.hits}) == len(scores) > 5
    assert ranking.hits[0].parts["trust"] == 0.5 and ranking.seconds["plugin"] > 0
    assert len(system.search("Clara drives", 3).hits) == 3
    assert system.search("zyzzyva", 10).hits == ()


@pytest.mark.docker
def test_it_ranks_the_same_under_docker(plugin: HolographicPlugin, prepared: Prepared, facts: Path) -> None:
    plugin.open(facts)
    other = HolographicPlugin(program=program(prepared, "docker"), rebuild=True)
    try:
        other.open(facts)
        for query in list(QUERIES_BY_TOPIC.values())[:6]:
            assert other.search(query, 10).hits == plugin.search(query, 10).hits
        assert {**other.settings(), "backend": "bwrap"} == plugin.settings()
    finally:
        other.close()


@pytest.mark.bwrap
def test_prefetch_gives_the_first_five_of_the_search(
    plugin: HolographicPlugin, with_numpy: WorkerProgram, facts: Path
) -> None:
    plugin.open(facts)
    prefetch = HolographicPlugin(Mode.PREFETCH, program=with_numpy, rebuild=True)
    try:
        prefetch.open(facts)
        assert prefetch.depth == prefetch.settings()["depth"] == 5
        for query in list(QUERIES_BY_TOPIC.values())[:5]:
            injected = prefetch.search(query, 10).hits
            # Its search looks at three times as many candidates as it returns, so it is asked for as many.
            assert [hit.fact_id for hit in injected] == [hit.fact_id for hit in plugin.search(query, 5).hits]
            assert len(injected) == 5 and [hit.score for hit in injected] == [-1, -2, -3, -4, -5]
        assert len(prefetch.search("Clara", 2).hits) == 2
        assert prefetch.search("", 10).hits == prefetch.search("zyzzyva", 10).hits == ()
    finally:
        prefetch.close()


@pytest.mark.bwrap
def test_facts_with_line_breaks_are_told_apart_or_it_is_said(with_numpy: WorkerProgram, tmp_path: Path) -> None:
    prefetch = HolographicPlugin(Mode.PREFETCH, program=with_numpy)
    try:
        lines = "the heron nests\nin the old mill\n- [0.5] by the weir"
        prefetch.open(database(tmp_path / "clear.db", (lines, "a heron flew by\n\nagain")))
        assert {hit.fact_id for hit in prefetch.search("heron", 5).hits} == {1, 2}
        # The first fact's text is the second's line and the third's: two facts that read as one.
        double = "the heron nests\n- [0.5] the heron flies"
        prefetch.open(database(tmp_path / "double.db", (double, "the heron nests", "the heron flies")))
        with pytest.raises(SystemFailed, match="in 2 ways"):
            prefetch.search("heron nests flies", 5)
    finally:
        prefetch.close()


@pytest.mark.bwrap
def test_without_hrr_and_without_numpy(with_numpy: WorkerProgram, prepared: Prepared, facts: Path) -> None:
    ranked = {}
    for name, given, weight in (
        ("off", with_numpy, 0.0),
        ("plain", program(prepared, "bwrap", numpy=False), 0.3),
        ("no vectors", with_numpy, 0.3),
    ):
        system = HolographicPlugin(hrr_weight=weight, program=given)
        try:
            system.open(facts)
            ranked[name] = system.settings(), system.search(QUERIES_BY_TOPIC["t0"], 5)
        finally:
            system.close()
    settings, ranking = ranked["off"]
    assert settings["weights"] == {"fts": 0.4, "jaccard": 0.3, "hrr": 0} and ranking.channels == ("fts", "jaccard")
    # Configured with .3 all the same: a plain installation has no NumPy, and the plugin gives the weight to the others.
    settings, ranking = ranked["plain"]
    assert settings["hrr_weight"] == 0.3 and settings["numpy"] is None
    assert settings["weights"] == {"fts": 0.6, "jaccard": 0.4, "hrr": 0} and ranking.channels == ("fts", "jaccard")
    settings, ranking = ranked["no vectors"]
    assert (
        settings["weights"]["hrr"] == 0.3 and settings["vectors"] == "none" and settings["legs"] == ["fts", "jaccard"]
    )
    # What a fact without a vector gets is a constant: .3 × .5 × trust.
    without = {hit.fact_id: hit.score for hit in ranked["off"][1].hits}
    for hit in ranking.hits:
        assert hit.score == pytest.approx(without[hit.fact_id] + 0.3 * 0.5 * 0.5)


@pytest.mark.bwrap
def test_each_opening_is_a_fresh_copy_in_the_same_sandbox(plugin: HolographicPlugin, facts: Path) -> None:
    before = file_digest(facts)
    plugin.open(facts)
    worker = plugin._worker
    assert worker is not None
    assert plugin.search_facts("cello", 10)
    plugin.add([{"content": "Zoe plays the cello at home"}])
    assert len(plugin.search_facts("cello", 10)) == len(PEOPLE) + 1
    plugin.open(facts)
    assert plugin._worker is worker
    assert len(plugin.search_facts("cello", 10)) == len(PEOPLE)
    assert len(list(worker._home.glob("*.db"))) == 1
    assert file_digest(facts) == before


@pytest.mark.bwrap
def test_what_is_no_database_is_named_and_the_next_one_opens(
    plugin: HolographicPlugin, facts: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, whatever it is called" * 100)
    with pytest.raises(InputError, match=r"cannot open broken\.db: DatabaseError"):
        plugin.open(broken)
    with pytest.raises(SystemFailed, match="no database open"):
        plugin.search("Clara", 5)
    with pytest.raises(InputError, match="no database at"):
        plugin.open(tmp_path / "absent.db")
    plugin.open(facts)
    assert plugin.search("Clara", 5).hits


@pytest.mark.bwrap
def test_a_sandbox_that_died_is_an_error_of_the_topic_and_is_started_anew(
    plugin: HolographicPlugin, facts: Path
) -> None:
    plugin.open(facts)
    worker = plugin._worker
    assert worker is not None
    worker._stop.set()
    worker._thread.join(20)
    with pytest.raises(SystemFailed, match="it ended"):
        plugin.search("Clara", 5)
    with pytest.raises(SystemFailed, match="not running"):
        plugin.search("Clara", 5)
    plugin.open(facts)
    assert plugin.search("Clara", 5).hits


@pytest.mark.bwrap
def test_the_worker_leaves_terms_that_do_not_explain_the_score(with_numpy: WorkerProgram, facts: Path) -> None:
    # The plugin's own trust is what the score is multiplied by; a worker that forgot it must not go unnoticed.
    wrong = with_numpy.source.replace(b'one["trust"] * sum(', b"sum(")
    assert wrong != with_numpy.source
    system = HolographicPlugin(program=dataclasses.replace(with_numpy, source=wrong))
    try:
        system.open(facts)
        with pytest.raises(SystemRefused, match="the terms give"):
            system.terms("Clara drives", 5)
    finally:
        system.close()


@pytest.mark.bwrap
def test_the_hrr_term_is_a_constant_and_a_little_noise(plugin: HolographicPlugin, facts: Path) -> None:
    plugin.open(facts)
    audit = audit_terms(explained_terms(plugin, QUERIES_BY_TOPIC, 10))
    fts, jaccard, hrr = audit.rows
    # Published: a span of about .04, and .147 to .152 added to everything.
    assert 0.02 < hrr.median_range < 0.06
    assert hrr.mean_contribution == pytest.approx(0.15, abs=0.003)
    assert hrr.variance_share is not None and abs(hrr.variance_share) < 0.05
    assert fts.variance_share is not None and jaccard.variance_share is not None
    assert fts.variance_share + jaccard.variance_share > 0.95
    assert fts.taken_out.top5_order > hrr.taken_out.top5_order
    assert audit.factor.top5_order == 0  # all have the same trust
    assert terms_table(audit)


@pytest.mark.bwrap
def test_nothing_comes_back_of_a_bundle_by_its_entity_and_text_against_text_separates(
    plugin: HolographicPlugin, facts: Path
) -> None:
    plugin.open(facts)
    audit = audit_hrr(plugin, QUERIES_BY_TOPIC, RELEVANT, FACTS)
    assert audit.stored is not None and not audit.stored.stands_out
    assert audit.text.stands_out and audit.text.auroc > 0.8
    for components in COMPONENTS:
        for operation in ("content by entity", "content by entity, as probe compares"):
            found = audit.recovery(operation, components)
            assert not found.stands_out and abs(found.match_mean) < 0.03
        # The checks that can fail: what is really bound to the key comes back, alone and out of a bundle.
        assert audit.recovery("bound pair, not bundled", components).match_mean == pytest.approx(1)
        assert audit.recovery("bound pairs, bundled", components).stands_out
        assert audit.recovery("content by role", components).stands_out
    # A text against the vector of its own fact: the same number whatever it says.
    own = audit.recovery("text against the fact, as search compares", 1)
    assert own.match_mean == pytest.approx(-0.0428, abs=0.0001) and own.match_sd < 1e-9
    assert audit.recovery("content by role", 1).match_mean == pytest.approx(1)
    assert hrr_table(audit)


@pytest.mark.bwrap
def test_hostile_queries_do_what_the_document_says(plugin: HolographicPlugin, empty: Path) -> None:
    plugin.open(empty)
    findings = audit_hostile_queries(plugin)
    told = {(one.query, one.way): one.told for one in findings}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in DOCUMENT.read_text().splitlines()]
    documented = {row[0]: (row[2], row[3]) for row in rows if len(row) == 4 and row[0] in {q.name for q in QUERIES}}
    assert documented == {q.name: (told[q.name, "search"], told[q.name, "search_facts"]) for q in QUERIES}
    counts = {str(one): sum(f.behaviour is one for f in findings if f.way == "search") for one in Behaviour}
    (sentence,) = re.findall(r"`search` answers (\d+) of (\d+) rightly", DOCUMENT.read_text())
    assert sentence == (str(counts["right"]), str(len(QUERIES)))
    assert hostile_table(findings)
