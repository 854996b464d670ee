"""The fact store as a system under test: candidates, the gate, fusion, authors, and queries that break others."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from lab.errors import EmbeddingFailed, InputError, SystemFailed
from lab.retrieval.factstore.fusion import author_rank, ranked, reciprocal
from lab.retrieval.factstore.settings import AUTHORS, BadSetting, FactstoreSettings
from lab.retrieval.systems.factstore import FactstoreSystem
from tests.factstore_stores import AGENT, THIRD, USER, PlantedChannel, fact, ids, opened

ALWAYS = FactstoreSettings(gate=None)
RECIPROCAL = FactstoreSettings(gate=None, fusion="rrf", author_fusion="rrf")
IDENTIFIERS = (
    "The policy POL-358 covers the house.",
    "The policy POL-853 covers the car of number 358.",
    "She writes C++ at work.",
    "She learns C# in the evening.",
    "The vitamin C is in the cupboard.",
    "The setting is key:value in the file.",
    "The value has no key.",
    "The server runs node.js behind a proxy.",
    "The third node of the js cluster is down.",
    "Backups go to pve-01 every night.",
    "Backups go to pve-02 every week.",
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        *(("POL-358", 1), ("what does pol-853 cover?", 2), ("C++", 3), ("c#", 4), ("key:value", 6)),
        *(("node.js", 8), ("pve-01", 10), ("where is PVE-02?", 11), ("pol 358", 1)),
    ],
)
def test_identifiers_are_found_and_told_apart(tmp_path: Path, query: str, first: int) -> None:
    assert ids(opened(tmp_path, IDENTIFIERS).search(query, 10))[0] == first


def test_what_no_identifier_query_may_match(tmp_path: Path) -> None:
    system = opened(tmp_path, IDENTIFIERS)
    assert 11 not in ids(system.search("pve-01", 10))
    assert 2 not in ids(system.search("POL-358", 10))


@pytest.mark.parametrize(
    "query",
    ["", "   ", "???", "*", '"', "'\"'", "()", "AND OR NOT", "what is it?", "o que é isso?", "🦦🔥", "\0", "- -"],
)
def test_a_query_without_content_finds_nothing(tmp_path: Path, query: str) -> None:
    ranking = opened(tmp_path, ["Ana likes tea and coffee."]).search(query, 5)
    assert (ranking.hits, ranking.coverage, ranking.fallback) == ((), 0.0, "")


@pytest.mark.parametrize(
    "query",
    [
        *('"Otávio', "(Otávio", "Otávio AND", "Otávio NOT", "NEAR(Otávio, 2)", "Ana/Otávio", "Otávio*", "^Otávio"),
        *("otavio", "OTÁVIO", "🦦 Otávio 🔥", "a\0Otávio", "Otávio's", "O Otávio?", "'; DROP TABLE facts; -- Otávio"),
        *(unicodedata.normalize("NFD", "Otávio"), unicodedata.normalize("NFC", "Otávio"), "Otávio " + "x" * 10_000),
        "Otávio " + " ".join(f"word{n}" for n in range(2000)),
    ],
)
def test_operators_and_odd_characters_are_only_text(tmp_path: Path, query: str) -> None:
    assert ids(opened(tmp_path, ["Nothing of the kind.", "Otávio mora em Olinda."]).search(query, 5)) == [2]


def test_only_the_first_terms_of_a_long_query_are_searched(tmp_path: Path) -> None:
    system = opened(tmp_path, ["The otter sleeps."])
    padding = " ".join(f"word{n}" for n in range(70))
    assert ids(system.search(f"otter {padding}", 5)) == [1]
    assert ids(system.search(f"{padding} otter", 5)) == []


@pytest.mark.parametrize(("query", "found"), [("記憶", [1]), ("東京", [2]), ("憶記", []), ("日本の記憶", [])])
def test_a_word_inside_a_run_without_spaces(tmp_path: Path, query: str, found: list[int]) -> None:
    facts = ["彼は長い記憶を日本の家に残した", "東京に住んでいる"]
    assert ids(opened(tmp_path, facts).search(query, 5)) == found


def test_a_compound_is_searched_as_a_phrase(tmp_path: Path) -> None:
    system = opened(tmp_path, ["Otávio wrote the content.", "Content: Otávio."])
    assert ids(system.search("content:Otávio", 5)) == [2]


def test_emoji_are_words(tmp_path: Path) -> None:
    system = opened(tmp_path, ["A 🔥 in the calendar is a deadline.", "A 🐢 in the calendar is a day off."])
    assert ids(system.search("what is 🐢?", 5)) == [2] and ids(system.search("🐢", 5)) == [2]


def test_stopwords_of_both_languages_carry_nothing(tmp_path: Path) -> None:
    system = opened(tmp_path, ["Quando ela foi para o parque?", "What did he do there?", "The otter sleeps."])
    assert ids(system.search("o que ela foi fazer para o otter e what did he do", 5)) == [3]


def test_nothing_is_written_and_a_second_pass_is_the_same(tmp_path: Path) -> None:
    system = opened(tmp_path, IDENTIFIERS)
    first = [system.search(query, 10).hits for query in ("policy", "backups", "C++")]
    before = (tmp_path / "store-0.db").read_bytes()
    assert [system.search(query, 10).hits for query in ("policy", "backups", "C++")] == first
    assert (tmp_path / "store-0.db").read_bytes() == before


def test_the_score_is_what_its_parts_say(tmp_path: Path) -> None:
    facts = [fact("Ana drinks green tea", trust=0.9), fact("Ana drinks coffee", trust=0.4), fact("green tea")]
    for hit in opened(tmp_path, facts, FactstoreSettings(author_fusion="off", hrr="textv1")).search("Ana tea", 5).hits:
        parts = hit.parts
        assert hit.score == pytest.approx((parts["fts"] + parts["overlap"] + parts["hrr"]) * parts["trust"], abs=1e-6)
    channel = PlantedChannel({3: 0.8, 2: 0.7})
    for settings, name in ((RECIPROCAL, "rrf"), (ALWAYS, "weighted")):
        hits = opened(tmp_path, facts, settings, lambda rows: channel).search("Ana", 5).hits
        assert {hit.fact_id for hit in hits} == {1, 2, 3}
        for hit in hits:
            assert hit.score == pytest.approx(hit.parts[f"{name}_relevance"] + hit.parts["author"], abs=1e-6)
            assert hit.parts.get("dense") == channel.cosines.get(hit.fact_id)
    legs = {
        h.fact_id: (h.parts.get("rrf_lexical"), h.parts.get("rrf_dense"))
        for h in opened(tmp_path, facts, RECIPROCAL, lambda rows: channel).search("Ana", 5).hits
    }
    assert legs == {1: (1 / 61, None), 2: (1 / 62, 1 / 62), 3: (None, 1 / 61)}


def test_trust_orders_equal_matches_and_hides_what_is_not_trusted(tmp_path: Path) -> None:
    facts = [fact("tea one", trust=0.3), fact("tea two", trust=0.9), fact("tea three", trust=0.29)]
    channel = PlantedChannel({3: 0.99})
    ranking = opened(tmp_path, facts, ALWAYS, lambda rows: channel).search("tea", 5)
    assert ids(ranking) == [2, 1] and ranking.confidence is None
    assert opened(tmp_path, facts, FactstoreSettings(min_trust=0.0)).search("tea", 5).hits[-1].fact_id == 3


def test_equal_scores_are_ordered_by_id_and_never_more_than_k(tmp_path: Path) -> None:
    system = opened(tmp_path, [f"tea number {n}" for n in range(80)])
    assert ids(system.search("tea", 7)) == [1, 2, 3, 4, 5, 6, 7]
    assert len(set(ids(system.search("tea", 70)))) == 70
    assert ranked({2: 0.1000001, 1: 0.1, 3: 0.2}) == [3, 1, 2]


class TestKeywords:
    FACTS = (
        fact("Ana drinks matcha.", tags=("drink",), keywords=("tea", "green beverage")),
        fact("Tea is in the box."),
    )

    def test_on_they_are_searched_and_off_only_own_tags_are(self, tmp_path: Path) -> None:
        off = FactstoreSettings(keywords=False)
        assert ids(opened(tmp_path, self.FACTS).search("beverage", 5)) == [1]
        assert ids(opened(tmp_path, self.FACTS, off).search("beverage", 5)) == []
        assert ids(opened(tmp_path, self.FACTS, off).search("drink", 5)) == [1]
        assert ids(opened(tmp_path, self.FACTS, off).search("tea", 5)) == [2]

    def test_a_keyword_that_is_a_tag_already_does_not_take_the_tag_along(self, tmp_path: Path) -> None:
        facts = [fact("Ana has matcha.", tags=("drink",), keywords=("Drink", "tea"))]
        assert ids(opened(tmp_path, facts, FactstoreSettings(keywords=False)).search("drink", 5)) == [1]
        assert ids(opened(tmp_path, facts, FactstoreSettings(keywords=False)).search("tea", 5)) == []

    def test_both_arms_run_on_one_database_at_once(self, tmp_path: Path) -> None:
        on = opened(tmp_path, self.FACTS)
        off = FactstoreSystem(FactstoreSettings(keywords=False))
        off.open(tmp_path / "store-0.db")
        assert [ids(system.search("beverage", 5)) for system in (on, off, on)] == [[1], [], [1]]

    def test_a_keyword_never_closes_the_gate(self, tmp_path: Path) -> None:
        channel = PlantedChannel({2: 0.9})
        system = opened(tmp_path, self.FACTS, FactstoreSettings(), lambda rows: channel)
        asked = system.search("green beverage", 5)
        assert asked.coverage == 0.0 and asked.channels == ("lexical", "dense")


class TestGate:
    FACTS = ("Ana drinks green tea at noon.", "Ana drinks coffee.", "The green house.", "Tea leaves.")

    @pytest.mark.parametrize(
        ("query", "coverage", "open_"),
        [
            ("Does Ana drinks green tea?", 1.0, False),  # "does" is a stopword; one fact has all the words
            ("Ana drinks green coffee", 0.75, True),  # only two facts together have all the words
            ("Ana drinking tea", 2 / 3, True),  # not stemmed
            ("zebra", 0.0, True),
        ],
    )
    def test_coverage_is_that_of_one_fact(self, tmp_path: Path, query: str, coverage: float, open_: bool) -> None:
        channel = PlantedChannel({4: 0.9})
        ranking = opened(tmp_path, self.FACTS, FactstoreSettings(), lambda rows: channel).search(query, 5)
        assert ranking.coverage == pytest.approx(coverage)
        assert ("dense" in ranking.channels, bool(channel.asked)) == (open_, open_)

    def test_the_threshold_itself_closes_it_and_none_never_does(self, tmp_path: Path) -> None:
        nine_of_ten = "alpha beta gamma delta epsilon zeta eta theta iota missing"
        facts = [nine_of_ten.removesuffix(" missing")]
        for threshold, open_ in ((0.9, False), (0.91, True), (None, True)):
            settings = FactstoreSettings(gate=threshold)
            ranking = opened(tmp_path, facts, settings, lambda rows: PlantedChannel({1: 0.5})).search(nine_of_ten, 5)
            assert ("dense" in ranking.channels) is open_

    def test_coverage_is_seen_without_a_channel_too(self, tmp_path: Path) -> None:
        assert opened(tmp_path, self.FACTS).search("coffee", 5).coverage == 1.0


class TestChannel:
    FACTS = ("Ana drinks green tea.", "Ana has a cat.", "A cup of matcha.", "The cat sleeps.")

    def test_a_fact_without_a_shared_word_is_found_by_meaning(self, tmp_path: Path) -> None:
        ranking = opened(tmp_path, self.FACTS, ALWAYS, lambda rows: PlantedChannel({3: 0.9, 1: 0.8})).search("tea", 5)
        assert set(ids(ranking)) == {1, 3} and ranking.confidence == 0.9

    def test_the_index_gets_all_rows(self, tmp_path: Path) -> None:
        got: list[tuple[int, str]] = []
        opened(tmp_path, self.FACTS, ALWAYS, lambda rows: got.extend(rows) or PlantedChannel({}))
        assert got == list(enumerate(self.FACTS, start=1))

    def test_rows_that_are_not_there_are_left_out(self, tmp_path: Path) -> None:
        ranking = opened(tmp_path, self.FACTS, ALWAYS, lambda rows: PlantedChannel({99: 0.99, 2: 0.5})).search("tea", 5)
        assert set(ids(ranking)) == {1, 2} and ranking.confidence == 0.5

    @pytest.mark.parametrize("cause", ["timeout", "server_gone", "model_missing", "bad_answer"])
    def test_when_it_fails_the_ranking_is_the_lexical_one(self, tmp_path: Path, cause: str) -> None:
        class Failing:
            def nearest(self, query: str, limit: int) -> PlantedChannel:
                raise EmbeddingFailed("gone", cause=cause)

        lexical = opened(tmp_path, self.FACTS).search("cat tea", 5)
        fallen = opened(tmp_path, self.FACTS, ALWAYS, lambda rows: Failing()).search("cat tea", 5)
        assert fallen.fallback == cause and fallen.hits == lexical.hits and lexical.hits
        assert fallen.channels == lexical.channels == ("lexical",) and fallen.confidence is None

    def test_a_weighted_fusion_weighs_normalised_scores(self, tmp_path: Path) -> None:
        channel = PlantedChannel({3: 0.90, 4: 0.85, 1: 0.80})
        order = {}
        for share in (0.1, 0.9):
            settings = FactstoreSettings(gate=None, fusion="weighted", dense_weight=share)
            order[share] = ids(opened(tmp_path, self.FACTS, settings, lambda rows: channel).search("tea", 5))
        assert order == {0.1: [1, 3, 4], 0.9: [3, 4, 1]}


class TestAuthors:
    FACTS = (fact("tea", author=THIRD), fact("tea two", author=USER), fact("the third tea", author=AGENT))

    def test_with_one_author_the_order_is_that_of_relevance(self, tmp_path: Path) -> None:
        facts = [fact(f"tea {'tea ' * (n % 7)} number {n}", author=USER) for n in range(60)]
        orders = [
            ids(opened(tmp_path, facts, FactstoreSettings(author_fusion=how)).search("tea number 5", 60))
            for how in ("off", "rrf", "weighted")
        ]
        assert orders[0] == orders[1] == orders[2]

    def test_among_near_equals_the_user_comes_first(self, tmp_path: Path) -> None:
        assert ids(opened(tmp_path, self.FACTS, FactstoreSettings(author_fusion="off")).search("tea", 5)) == [1, 2, 3]
        assert ids(opened(tmp_path, self.FACTS, RECIPROCAL).search("tea", 5)) == [2, 1, 3]
        near = [fact("The otter of Olinda", author=AGENT), fact("The otter of Recife", author=USER)]
        assert ids(opened(tmp_path, near, FactstoreSettings(author_fusion="off")).search("otter", 5)) == [1, 2]
        assert ids(opened(tmp_path, near).search("otter", 5)) == [2, 1]

    def test_a_third_party_is_not_put_behind_everything_of_the_users(self, tmp_path: Path) -> None:
        mother = fact("Her mother says that the green kettle leaks", author=THIRD)
        facts = [mother, *(fact(f"the kettle of shop {n}", author=USER) for n in range(40))]
        for settings, last in ((FactstoreSettings(), 1), (RECIPROCAL, 3)):
            assert 1 in ids(opened(tmp_path, facts, settings).search("which kettle leaks, says her mother", last))

    def test_a_fact_is_overtaken_from_at_most_two_places_below(self) -> None:
        scores = {place: reciprocal(place) + reciprocal(author_rank("user", AUTHORS)) for place in range(2, 50)}
        scores[1] = reciprocal(1) + reciprocal(author_rank("third_party", AUTHORS))
        assert ranked(scores)[:4] == [2, 3, 1, 4]
        assert author_rank("nobody known", AUTHORS) == author_rank("unknown", AUTHORS) == 3

    def test_the_priority_can_be_turned_round(self, tmp_path: Path) -> None:
        turned = FactstoreSettings(author_priority=tuple(reversed(AUTHORS)), author_fusion="rrf")
        assert ids(opened(tmp_path, self.FACTS, turned).search("tea", 5)) == [1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"hrr": "on"}, {"fusion": "sum"}, {"gate": 1.5}, {"gate": "0.9"}, {"keywords": "false"}, {"candidates": 0}),
        *({"author_priority": ["user"]}, {"colour": 1}, {"fts_weight": 0.0, "overlap_weight": 0.0}),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        FactstoreSettings.from_mapping(wrong)
    assert FactstoreSettings.from_mapping({"hrr": "textv1", "gate": None}).hrr == "textv1"


def test_files_that_are_no_store(tmp_path: Path) -> None:
    system = FactstoreSystem(FactstoreSettings())
    broken, empty = tmp_path / "broken.db", tmp_path / "none.db"
    broken.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    for path in (broken, empty, tmp_path):
        with pytest.raises(InputError):
            system.open(path)
    assert not empty.exists()
    with pytest.raises(SystemFailed):
        system.search("tea", 5)
    system.close()
    system.close()
