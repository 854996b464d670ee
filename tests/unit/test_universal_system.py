"""The universal layer as a system under test: what it takes from a frozen database, and how it answers the bench."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import EmbeddingFailed, InputError, SystemFailed
from lab.memories.universal.arms import KINDS
from lab.memories.universal.fusion import Fusion
from lab.memories.universal.system import UniversalSystem
from lab.retrieval.arms import Tools
from lab.retrieval.build_database import build_database
from lab.retrieval.database import FactContext, open_database, read_context
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.testset import Fact
from tests.factstore_stores import PlantedChannel, fact, ids

FACTS = (
    fact("Ana Souza looks after the otter.", created_at="2024-05-01T10:00:00Z", tags=("zoo",), keywords=("lontra",)),
    fact("The heron fishes with Ana Souza.", trust=0.9),
    fact("The tide turned at 15h30."),
    fact("The tide turned at 16h00."),
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "memory_store.db"
    build_database(FACTS, path)
    return path


def opened(
    database: Path, fusion: Fusion = Fusion.PUBLISHED, cosines: dict[int, float] | None = None
) -> UniversalSystem:
    def index(rows: Sequence[tuple[int, str]]) -> PlantedChannel:
        assert [text for _, text in rows] == [f.text for f in FACTS]
        return PlantedChannel(cosines or {})

    system = UniversalSystem(fusion, index if cosines else None)
    system.open(database)
    return system


def test_times_and_entities_are_read(database: Path) -> None:
    with closing(open_database(database)) as connection:
        context = read_context(connection)
    assert context[1] == FactContext(1714557600.0, ("Ana Souza",))
    assert context[2] == FactContext(None, ("Ana Souza",))
    assert context[3] == FactContext()


def test_an_upstream_database_without_links_is_read(tmp_path: Path) -> None:
    path = tmp_path / "upstream.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content, tags, trust_score)")
        connection.execute("INSERT INTO facts VALUES (7, 'The otter sleeps.', '', 0.5)")
        connection.commit()
        assert read_context(connection) == {7: FactContext()}
    assert ids(opened(path).search("otter", 5)) == [7]


def related(text: str, *targets: str) -> Fact:
    return fact(text, relations=[{"kind": "knows", "target": target} for target in targets])


CHAIN = (
    related("The ferry leaves at dawn.", "Caetana", "Quim"),
    related("A pier without a name.", "Quim", "Dona Rosa"),
    related("The net is torn.", "Dona Rosa"),
    related("The buoy is green.", "Marolas"),
)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.db"
    build_database(CHAIN, path)
    return path


def test_a_stated_relation_is_walked_as_far_as_the_hops_go_and_no_further(chain: Path) -> None:
    # Ferry: 1 hop from Caetana. Pier: 3, by way of the ferry and Quim. Net: 5. Buoy: never.
    ranking = opened(chain).search("Where is Caetana?", 5)
    assert [(hit.fact_id, dict(hit.parts)) for hit in ranking.hits] == [(1, {"graph": 0.2}), (2, {"graph": 0.1})]
    assert ranking.channels == ("graph",)
    assert ids(opened(chain).search("Dona Rosa", 5)) == [2, 3, 1]
    assert ids(opened(chain).search("Who knows Caet?", 5)) == []


@pytest.mark.parametrize("change", ["DELETE FROM fact_relations", "DROP TABLE fact_relations"])
def test_without_a_relation_nothing_is_found_over_it_and_an_older_layout_is_read(chain: Path, change: str) -> None:
    with closing(sqlite3.connect(chain)) as connection:
        connection.execute(change)
        connection.commit()
        assert {context.relations for context in read_context(connection).values()} == {()}
    system = opened(chain)
    assert ids(system.search("Where is Caetana?", 5)) == []
    assert ids(system.search("buoy", 5)) == [4]


def test_a_mention_and_a_relation_lead_on_to_each_other(tmp_path: Path) -> None:
    facts = (fact("The heron fishes with Ana Souza."), related("She mends nets.", "ANA SOUZA", "Marolas"))
    path = tmp_path / "mixed.db"
    build_database(facts, path)
    system = opened(path)
    assert set(ids(system.search("ana souza", 5))) == {1, 2}
    assert ids(system.search("Marolas", 5)) == [2, 1]


def test_words_tags_and_graph_answer_without_vectors(database: Path) -> None:
    system = opened(database)
    assert ids(system.search("otter", 5)) == [1]
    assert ids(system.search("zoo", 5)) == [1]
    assert ids(system.search("lontra", 5)) == []  # added by enrichment, not the fact's own
    ranking = system.search("What does Ana Souza do?", 5)
    assert set(ids(ranking)) == {1, 2}
    assert ranking.channels == ("keyword", "graph")
    assert ranking.hits[0].parts["graph"] == 0.2
    assert ids(system.search("", 5)) == ids(system.search("zebra", 5)) == []


def test_the_two_fusions_rank_as_computed_by_hand(database: Path) -> None:
    cosines = {3: 0.9, 1: 0.8, 4: 0.7, 2: 0.6}
    published = opened(database, Fusion.PUBLISHED, cosines).search("otter", 4)
    assert [(hit.fact_id, hit.score) for hit in published.hits] == [(1, 0.55), (3, 0.5), (4, 0.166667), (2, 0.125)]
    rrf = opened(database, Fusion.RRF, cosines).search("otter", 4)
    assert [(hit.fact_id, hit.score) for hit in rrf.hits] == [
        (1, 0.012983),
        (3, 0.008197),
        (4, 0.007937),
        (2, 0.007812),
    ]
    assert published.confidence == 0.9


def test_contradicted_hits_carry_the_flag(database: Path) -> None:
    system = opened(database)
    flags = {
        system.fact_id(hit.record_id): [system.fact_id(other.record_id) for other in hit.contradicted]
        for hit in system.recall("tide", 5).found
    }
    assert flags == {3: [4], 4: [3]}


def test_a_second_pass_gives_the_same_and_leaves_no_file(database: Path) -> None:
    before = sorted(database.parent.iterdir()), database.read_bytes()
    system = opened(database)
    assert system.search("Ana tide", 5).hits == system.search("Ana tide", 5).hits
    system.close()
    system.close()
    assert (sorted(database.parent.iterdir()), database.read_bytes()) == before
    with pytest.raises(SystemFailed):
        system.search("tide", 5)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no database"):
        UniversalSystem(Fusion.RRF, None).open(tmp_path / "none.db")
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content, tags, trust_score)")
        connection.execute("INSERT INTO facts VALUES (7, 'The otter sleeps.', '', 3.5)")
        connection.commit()
    with pytest.raises(InputError, match="fact 7: trust"):
        UniversalSystem(Fusion.RRF, None).open(path)


def test_facts_that_cannot_be_embedded_end_the_opening(database: Path) -> None:
    def index(rows: Sequence[tuple[int, str]]) -> PlantedChannel:
        raise EmbeddingFailed("it is gone", cause="server_gone")

    system = UniversalSystem(Fusion.RRF, index)
    with pytest.raises(EmbeddingFailed):
        system.open(database)
    with pytest.raises(SystemFailed):
        system.search("otter", 5)


def test_the_arms_differ_in_what_their_names_say() -> None:
    def no_model() -> DenseIndexes:
        raise AssertionError("it asked for a model")

    words = KINDS["universal-words"].make(Tools(no_model))
    assert (words.settings()["embeddings"], words.settings()["fusion"]) == (False, "published")
    assert set(KINDS) == {"universal", "universal-rrf", "universal-words"}
