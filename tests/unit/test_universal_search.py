"""The search of the universal layer: its legs, their fusion, flags of contradiction, and what may be found at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lab.errors import EmbeddingFailed
from lab.memories.universal.contradiction import Reason, Statement, contradiction
from lab.memories.universal.fusion import WEIGHTS, Fusion, fuse, places
from lab.memories.universal.graph import FRONTIER, HOPS, find_related
from lab.memories.universal.keywords import find_words
from lab.memories.universal.records import Draft, Scope, StatedRelation
from lab.memories.universal.search import Contradicted, Search
from lab.memories.universal.store import Store
from tests.factstore_stores import PlantedChannel

NOW = Scope(now=100.0)


def draft(content: str, **fields: object) -> Draft:
    return Draft.model_validate({"content": content, "agent_id": "ana", "created_at": 100.0, **fields})


def filled(store: Store, *drafts: Draft | str) -> tuple[int, ...]:
    return store.commit(store.stage([d if isinstance(d, Draft) else draft(d) for d in drafts]))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "universal.db") as opened:
        yield opened


# --- words

IDENTIFIERS = (
    "The policy POL-358 covers the house.",
    "The policy POL-853 covers the car of number 358.",
    "She writes C++17 at work.",
    "She learns C# in the evening.",
    "The vitamin C is in the cupboard.",
    "The setting is key:value in the file.",
    'He said "good night" to the otter.',
    "The arrow => points to the left.",
    "We heard The Who in 1979.",
    "Otávio mora em São Luís. 🦦",
    "日本の記憶",
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        *(("POL-358", [1]), ("pol-853?", [2]), ("C++", [3]), ("C#", [4]), ("key:value", [6]), ('"good night"', [7])),
        *(("=>", [8]), ("The Who", [9]), ("who", [9]), ("🦦", [10]), ("otavio", [10]), ("SÃO LUÍS", [10])),
        *(("記憶", [11]), ("upboar", [5]), ("\0otter\0", [7]), ("otter\ud800", [7]), ("otter' OR 1=1; --", [7])),
        *(("NEAR(otter, 2)", [7]), ("otter*", [7]), ("^otter", [7]), ("otter AND zebra", [7])),
    ],
)
def test_a_literal_match_is_found_whatever_its_signs(store: Store, query: str, expected: list[int]) -> None:
    filled(store, *IDENTIFIERS)
    assert [record_id for record_id, _ in find_words(store.connection, query, 1, NOW)] == expected


@pytest.mark.parametrize("query", ["C", "c"])
def test_a_bare_letter_is_found_beside_its_kin(store: Store, query: str) -> None:
    filled(store, *IDENTIFIERS)
    assert {3, 4, 5} == {record_id for record_id, _ in find_words(store.connection, query, 9, NOW)}


@pytest.mark.parametrize(
    "query", ["", " ", "\0", "\ud800", "zebra", '"', "*", "AND OR NOT", "POL-999", "%", "_", "content:otter"]
)
def test_what_stands_nowhere_is_not_found(store: Store, query: str) -> None:
    filled(store, "The otter sleeps in the house", "The policy POL-358 covers the house")
    assert find_words(store.connection, query, 9, NOW) == []
    assert Search(store)(query, 9, NOW).found == ()


def test_tags_are_searched_too(store: Store) -> None:
    one, _ = filled(store, draft("She sleeps.", tags=("otter", "R$ 38")), "He sleeps.")
    assert [i for i, _ in find_words(store.connection, "otter", 9, NOW)] == [one]
    assert [i for i, _ in find_words(store.connection, "$", 9, NOW)] == [one]


# --- graph


def test_the_hops_of_the_graph_and_its_bound(store: Store) -> None:
    def link(subject: str, target: str) -> StatedRelation:
        return StatedRelation(subject=subject, kind="knows", target=target)

    ids = filled(
        store,
        draft("1 names Ana and Bia", relations=(link("Ana Souza", "Bia"),)),
        draft("2 names Bia", entities=("Bia",)),
        draft("3 names Bia and Caio", entities=("Bia", "Caio")),
        draft("4 names Caio: 4 links from Ana", entities=("Caio",)),
        draft("5 names nobody"),
        draft("6 only says Ana Souza"),
    )
    found = dict(find_related(store.connection, "where does ANA  SOUZA live?", 9, NOW))
    assert found == {ids[0]: 1.0, ids[1]: 0.5, ids[2]: 0.5}
    # From Caio: 4 and 3 name it; Bia stands beside it in 3, so 1 and 2 are three links away.
    found = dict(find_related(store.connection, "Caio", 9, NOW))
    assert found == {ids[2]: 1.0, ids[3]: 1.0, ids[0]: 0.333333, ids[1]: 0.333333}
    assert HOPS == 3
    assert find_related(store.connection, "Ana", 9, NOW) == []


def test_two_named_entities_add_up_and_cycles_end(store: Store) -> None:
    ring = [StatedRelation(subject=a, kind="knows", target=b) for a, b in ("AB", "BC", "CA", "AA")]
    both, first, _ = filled(
        store,
        draft("both", entities=("Node A", "Node B")),
        draft("first", entities=("Node A",)),
        draft("ring", relations=tuple(ring)),
    )
    found = find_related(store.connection, "node a, node b", 9, NOW)
    assert found[0] == (both, 2.0)
    assert dict(found)[first] == 1.333333


def test_no_link_is_walked_that_only_an_archived_or_expired_record_states(store: Store) -> None:
    link = StatedRelation(subject="Ana", kind="knows", target="Bia")
    stating, naming = filled(store, draft("Stated.", relations=(link,), ttl=10.0), draft("Bia.", entities=("Bia",)))
    assert [i for i, _ in find_related(store.connection, "Ana", 9, NOW)] == [stating, naming]
    assert find_related(store.connection, "Ana", 9, Scope(now=110.0)) == []
    store.expire(110.0)
    assert find_related(store.connection, "Ana", 9, NOW) == []


def test_a_hub_does_not_reach_everything(store: Store) -> None:
    spokes = [draft(f"Spoke {n}.", entities=("Hub", f"Rim {n}")) for n in range(FRONTIER + 50)]
    rims = [draft(f"Rim record {n}.", entities=(f"Rim {n}",)) for n in range(FRONTIER + 50)]
    filled(store, *spokes, *rims)
    found = find_related(store.connection, "hub", 10_000, NOW)
    assert len(found) == FRONTIER + 50 + FRONTIER
    filled(store, draft("A list.", entities=("List", *(f"Rim {n}" for n in range(FRONTIER + 50)))))
    assert len(find_related(store.connection, "list", 10_000, NOW)) == 1 + 2 * FRONTIER


def test_only_the_first_records_of_a_hub_are_walked_through(store: Store) -> None:
    late = draft("Late.", entities=("Hub", "Rim"))
    filled(
        store, *(draft(f"Spoke {n}.", entities=("Hub",)) for n in range(FRONTIER)), late, draft("x", entities=("Rim",))
    )
    assert len(find_related(store.connection, "hub", 10_000, NOW)) == FRONTIER + 1


# --- fusion


def test_fusion_equals_a_hand_computed_example() -> None:
    legs = {"vector": [(1, 0.9), (2, 0.8)], "keyword": [(2, 7.0), (3, 5.0)], "graph": [(3, 1.0)]}
    # published: 1: .5/1; 2: .5/2 + .3/1; 3: .3/2 + .2/1
    published = [(row[0], row[1]) for row in fuse(legs, Fusion.PUBLISHED)]
    assert published == [(2, 0.55), (1, 0.5), (3, 0.35)]
    # rrf: 1: .5/61 = .008197; 2: .5/62 + .3/61 = .012983; 3: .3/62 + .2/61 = .008117
    rrf = [(row[0], row[1]) for row in fuse(legs, Fusion.RRF)]
    assert rrf == [(2, 0.012983), (1, 0.008197), (3, 0.008117)]
    assert dict(WEIGHTS) == {"vector": 0.5, "keyword": 0.3, "graph": 0.2}


def test_the_two_formulas_can_disagree() -> None:
    legs = {"vector": [(1, 0.9), (2, 0.8), (3, 0.7)], "keyword": [(4, 9.0), (5, 8.0), (2, 7.0)]}
    # Second by vector and third by words: .5/2 + .3/3 = .35 against .5 for the first by vector alone.
    assert fuse(legs, Fusion.PUBLISHED)[0][0] == 1
    assert fuse(legs, Fusion.RRF)[0][0] == 2


def test_the_published_formula_lets_only_the_second_by_vectors_pass_the_first() -> None:
    passing = []
    for vector_place in range(2, 51):
        for first_by_words in range(2, 51):
            words = [(1000 + place, 100.0 - place) for place in range(1, 51)]
            words[0], words[first_by_words - 1] = (vector_place, 99.0), (1, words[first_by_words - 1][1])
            legs = {"vector": [(place, 1.0 - place / 100) for place in range(1, 51)], "keyword": words}
            if fuse(legs, Fusion.PUBLISHED)[0][0] != 1:
                passing.append((vector_place, first_by_words))
    assert passing == [(2, place) for place in range(7, 51)]


def test_what_a_leg_cannot_tell_apart_shares_a_place() -> None:
    assert places([(9, 5.0), (4, 3.0), (7, 3.0), (1, 1.0)]) == {9: 1, 4: 2, 7: 2, 1: 4}
    fused = fuse({"keyword": [(4, 3.0), (7, 3.0)]}, Fusion.PUBLISHED)
    assert [(row[0], row[1]) for row in fused] == [(4, 0.3), (7, 0.3)]


def test_ties_of_the_fused_score_are_ordered_by_id() -> None:
    fused = fuse({"vector": [(8, 0.5), (3, 0.5)], "graph": [(5, 1.0)]}, Fusion.RRF)
    assert [row[0] for row in fused] == [3, 8, 5]


# --- contradictions


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("The meeting is on Monday at 15h30", "The meeting is on Monday at 16h00", Reason.NUMBER),
        ("Ana likes green tea", "Ana does not like green tea", None),  # words are not stemmed: stated limit
        ("Ana eats green apples", "Ana never eats green apples", Reason.NEGATION),
        ("Ana can eat green apples", "Ana can't eat green apples", Reason.NEGATION),
        ("O jabuti dorme na caixa", "O jabuti não dorme na caixa", Reason.NEGATION),
        ("Ana eats green apples", "Ana eats green apples", None),
        ("Ana never eats apples", "Ana never, ever eats apples", None),
        ("Ana eats green apples", "Bia never drinks strong coffee", None),
        ("Server pve-03 has 16 GB", "Server pve-04 has 32 GB", None),
        ("Server pve-03 has 16 GB", "Server pve-03 has 32 GB", Reason.NUMBER),
        ("Server pve-03 has 16 GB", "Server pve-03 has 16 GB and 2 disks", None),
        ("The otter eats 16 fish", "The otter eats fish", None),
        ("12 34", "12 35", None),
        ("", "", None),
    ],
)
def test_the_rule_of_contradiction(one: str, other: str, expected: Reason | None) -> None:
    assert contradiction(Statement(one), Statement(other)) is expected
    assert contradiction(Statement(other), Statement(one)) is expected


def test_only_single_valued_relations_contradict() -> None:
    def at(subject: str, kind: str, target: str) -> Statement:
        return Statement(f"{subject} {kind} {target}", ((subject, kind, target),))

    assert contradiction(at("ana", "works_at", "marolas"), at("ana", "works_at", "tides")) is Reason.RELATION
    assert contradiction(at("ana", "works_at", "marolas"), at("ana", "works_at", "marolas")) is None
    assert contradiction(at("ana", "works_at", "marolas"), at("bia", "works_at", "tides")) is None
    assert contradiction(at("ana", "sibling_of", "bia"), at("ana", "sibling_of", "caio")) is None


def test_a_hit_is_flagged_with_the_record_that_contradicts_it(store: Store) -> None:
    old, new, clean = filled(
        store,
        "The budget of the team is 38 thousand",
        "The budget of the team is 26 thousand",
        "The budget of the team was discussed over lunch on Friday",
    )
    flags = {hit.record_id: hit.contradicted for hit in Search(store)("budget of the team", 9, NOW).found}
    assert flags == {old: (Contradicted(new, Reason.NUMBER),), new: (Contradicted(old, Reason.NUMBER),), clean: ()}
    # The one that contradicts need not be among the hits that are returned.
    (best,) = Search(store)("budget team 38", 1, NOW).found
    assert (best.record_id, best.contradicted) == (old, (Contradicted(new, Reason.NUMBER),))


# --- vectors, scope


class Planted:
    """Makes planted channels and notes over which rows."""

    def __init__(self, cosines: dict[int, float]) -> None:
        self.cosines = cosines
        self.made: list[list[int]] = []

    def __call__(self, rows: Sequence[tuple[int, str]]) -> PlantedChannel:
        self.made.append([row[0] for row in rows])
        return PlantedChannel({record_id: self.cosines[record_id] for record_id, _ in rows})


def test_all_legs_go_into_the_score(store: Store) -> None:
    one, two = filled(store, draft("The otter sleeps.", entities=("Otter",)), "The heron fishes.")
    answer = Search(store, Fusion.PUBLISHED, Planted({one: 0.7, two: 0.9}))("otter", 9, NOW)
    assert [(hit.record_id, hit.score) for hit in answer.found] == [(one, 0.75), (two, 0.5)]
    assert answer.found[0].parts == {"vector": 0.25, "keyword": 0.3, "graph": 0.2}
    assert (answer.legs, answer.confidence, answer.fallback) == (("vector", "keyword", "graph"), 0.9, "")


def test_the_channel_follows_what_is_live(store: Store) -> None:
    one, two = filled(store, "One.", "Two.")
    planted = Planted({one: 0.5, two: 0.6, 3: 0.7})
    search = Search(store, Fusion.RRF, planted)
    search("x", 9, NOW)
    search("x", 9, NOW)
    store.touch([one], 200.0)
    search("x", 9, NOW)
    assert planted.made == [[one, two]]
    with Store(store.path) as other:
        filled(other, "Three.")
    assert [hit.record_id for hit in search("x", 9, NOW).found] == [3, two, one]
    store.prune(2, 300.0)
    search("x", 9, NOW)
    assert planted.made == [[1, 2], [1, 2, 3], [1, 3]]


def test_a_channel_that_fails_leaves_words_and_says_so(store: Store) -> None:
    (one,) = filled(store, "The otter sleeps.")

    class Dead:
        def nearest(self, query: str, limit: int) -> PlantedChannel:
            raise EmbeddingFailed("it is gone", cause="server_gone")

    answer = Search(store, Fusion.RRF, lambda rows: Dead())("otter", 9, NOW)
    assert [hit.record_id for hit in answer.found] == [one]
    assert (answer.fallback, answer.legs, answer.confidence) == ("server_gone", ("keyword",), None)


def test_no_leg_finds_what_is_out_of_scope(store: Store) -> None:
    own, others, doubtful, old = filled(
        store,
        *(
            draft("Otter one.", entities=("Otter",)),
            draft("Otter two.", entities=("Otter",), agent_id="bia"),
            draft("Otter three.", entities=("Otter",), trust=0.1),
            draft("Otter four.", entities=("Otter",), ttl=1.0),
        ),
    )
    search = Search(store, Fusion.RRF, Planted({own: 0.1, others: 0.9, doubtful: 0.8, old: 0.7}))
    scope = Scope(now=200.0, agent_id="ana", min_trust=0.3)
    assert [hit.record_id for hit in search("otter", 9, scope).found] == [own]
    everyone = {hit.record_id for hit in search("otter", 9, Scope(now=100.0)).found}
    assert everyone == {own, others, doubtful, old}


def test_records_out_of_scope_take_no_places_of_the_vector_leg(store: Store) -> None:
    ids = filled(store, *(draft(f"Text {n}.", agent_id="bia") for n in range(60)), draft("Mine."))
    cosines = dict.fromkeys(ids, 0.9) | {ids[-1]: 0.1}

    class Bounded(PlantedChannel):
        def nearest(self, query: str, limit: int) -> PlantedChannel:
            best = sorted(self.cosines.items(), key=lambda pair: -pair[1])[:limit]
            return PlantedChannel(dict(best))

    search = Search(store, Fusion.RRF, lambda rows: Bounded({record_id: cosines[record_id] for record_id, _ in rows}))
    assert [hit.record_id for hit in search("x", 5, Scope(now=100.0, agent_id="ana")).found] == [ids[-1]]


def test_a_search_writes_nothing_and_k_bounds_it(store: Store) -> None:
    filled(store, *(f"Otter {n}." for n in range(12)))
    search = Search(store)
    before = store.live()
    assert [len(search("otter", k, NOW).found) for k in (0, 1, 5, 99)] == [0, 1, 5, 12]
    assert search("otter", 12, NOW).found == search("otter", 12, NOW).found
    assert store.live() == before
