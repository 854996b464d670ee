"""The development set of the retrieval benchmark: its counts, its traps, the rules by which its topics were written."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from lab.retrieval.testset import MAIN_STORE, Author, Fact, Purpose, TestSet, Topic
from lab.text import printable

FOLDER = Path(__file__).parents[2] / "scenarios" / "retrieval" / "personal"
CLASSES = {"exact": ("px", 55), "paraphrase": ("pp", 12), "third-party": ("pt", 6), "no-answer": ("pn", 6)}
CATEGORIES = {"user_pref", "project", "tool", "general"}

IDENTIFIERS = (
    "POL-358",
    "POL-385",
    "C++",
    "C#",
    "env:prod",
    "node.js",
    "pve-01",
    "pve-10",
    "20.04",
    "ferias@marolas.example.test",
    "/srv/mare/conf/2024",
    "v2.3.1",
    "--dry-run",
    "2025-03-07",
    "4021",
    "O'Brien",
    "Sao Tome",
    "São Tomé",
    "潮見",
    "🐢",
    "MV-1042",
    "10.20.0.4",
    "5433",
    "max_conn",
    "-O2",
    ".env.local",
    "Q3/2026",
    "K-07",
    "88-104-7",
    "release/2.3",
    "R$ 1.250",
    "A5",
    "nas-03",
)
"""What exact topics ask for in a form that a tokeniser takes apart, folds or loses."""

RESPELLED = {"MV-1042", "88-104-7"}
"""Asked for without their hyphens, as people type them: no tokeniser of an arm joins the pieces."""

TWINS = {
    "POL-358": "POL-385",
    "C++": "C#",
    "env:prod": "env:homolog",
    "node.js 20": "node.js 18",
    "pve-01": "pve-10",
    "20.04": "20/04",
    "ferias@": "folgas@",
    "/srv/mare/conf": "/srv/conf/mare",
    "v2.3.1": "v2.1.3",
    "2025-03-07": "2025-07-03",
    "4021": "4012",
    "O'Brien": "O'Bryan",
    "São Tomé": "São Tomé das Letras",
    "MV-1042": "MV-1024",
    "10.20.0.4": "10.0.20.4",
    "5433": "5432",
    "-O2": "-O3",
    "K-07": "K-70",
    "88-104-7": "88-107-4",
    "release/2.3": "release/3.2",
    "nas-03": "nas-02",
}
"""Identifiers and what stands in another fact to be confused with them."""

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about after also an and any are as at be both but by can could did do does for from get had has have he her
        his how i if in is it its me my not now of on or our over she should so than that the their them then there
        they this to under until us was we were what when where which while who whom whose why will with would you your
        agora ao aos até com como cujo da das de dela dele deles do dos e ela elas ele eles em entre era essa esse esta
        está este eu foi isso já mais mas meu meus minha minhas muito na nas nem no nos nossa nosso num numa não o onde
        os ou para pela pelo por porque qual quais quando quanta quanto que quem são se sem ser seu seus só sobre sua
        suas também tem ter um uma
        """,
    )
)
"""Words of both languages that carry no matter of their own."""


def lines(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


def judgements() -> list[list[str]]:
    return [line.split("\t") for line in lines("qrels.tsv")]


@pytest.fixture(scope="module")
def data() -> TestSet:
    qrels: dict[str, set[str]] = defaultdict(set)
    for topic, _, fact, _ in judgements():
        qrels[topic].add(fact)
    return TestSet(
        name="personal",
        purpose=Purpose.DEVELOPMENT,
        licence="MIT, synthetic",
        stores={MAIN_STORE: tuple(Fact.model_validate_json(line) for line in lines("facts.jsonl"))},
        topics=tuple(Topic.model_validate_json(line) for line in lines("topics.jsonl")),
        qrels={topic: frozenset(facts) for topic, facts in qrels.items()},
    )


@pytest.fixture(scope="module")
def facts(data: TestSet) -> dict[str, Fact]:
    return {fact.id: fact for fact in data.stores[MAIN_STORE]}


def fold(text: str) -> str:
    """Lower case without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))


STOP = frozenset(map(fold, FUNCTION_WORDS))


@cache
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", fold(text)))


def content(text: str) -> frozenset[str]:
    return words(text) - STOP


def shared_stems(topic: str, fact: str, names: set[str]) -> set[tuple[str, str]]:
    """Pairs of words that begin with the same four letters; names do not count."""
    mine, theirs = content(topic) - names, content(fact) - names
    return {(a, b) for a in mine for b in theirs if min(len(a), len(b)) >= 4 and a[:4] == b[:4]}


def overlap(first: str, second: str) -> float:
    """Jaccard overlap of two texts' words."""
    a, b = words(first), words(second)
    return len(a & b) / len(a | b)


def of_class(data: TestSet, name: str) -> list[Topic]:
    return [topic for topic in data.topics if topic.topic_class == name]


# --- shape ---------------------------------------------------------------------------------------------------------


def test_it_has_the_published_shape(data: TestSet) -> None:
    assert len(data.stores[MAIN_STORE]) == 517
    assert Counter(t.topic_class for t in data.topics) == {name: n for name, (_, n) in CLASSES.items()}
    answerable = {t.id for t in data.topics if data.answerable(t)}
    assert len(answerable) == 73
    assert answerable.isdisjoint(t.id for t in of_class(data, "no-answer"))
    assert all(1 <= len(facts) <= 3 for facts in data.qrels.values())


def test_ids_are_dense_and_in_order(data: TestSet) -> None:
    assert [f.id for f in data.stores[MAIN_STORE]] == [f"p-{n:04}" for n in range(1, 518)]
    assert [t.id for t in data.topics] == [f"{p}-{n:02}" for p, m in CLASSES.values() for n in range(1, m + 1)]
    assert all(t.id.startswith(CLASSES[t.topic_class][0]) for t in data.topics)


def test_judgements_are_in_the_form_of_trec_without_repeats() -> None:
    rows = judgements()
    assert all(len(row) == 4 and row[1] == "0" and row[3] == "1" for row in rows)
    assert len({(row[0], row[2]) for row in rows}) == len(rows)


def test_both_languages_are_used_about_equally(data: TestSet, facts: dict[str, Fact]) -> None:
    for shares in (Counter(f.language for f in facts.values()), Counter(t.language for t in data.topics)):
        assert set(shares) == {"en", "pt-BR"}
        assert min(shares.values()) >= 0.45 * shares.total()
    crossing = [
        t for t in data.topics if any(facts[f].language != t.language for f in data.qrels.get(t.id, frozenset()))
    ]
    assert len(crossing) >= 12


def test_fields_are_filled_as_a_store_would(facts: dict[str, Fact]) -> None:
    shares = {author: n / 517 for author, n in Counter(f.author for f in facts.values()).items()}
    expected = {Author.USER: 0.55, Author.AGENT: 0.25, Author.THIRD_PARTY: 0.15, Author.UNKNOWN: 0.05}
    assert shares == pytest.approx(expected, abs=0.03)
    assert {f.category for f in facts.values()} == CATEGORIES
    assert min(Counter(f.category for f in facts.values()).values()) >= 40
    assert all(0.3 <= f.trust <= 0.9 for f in facts.values())
    assert len({f.trust for f in facts.values()}) >= 5
    assert 0.3 <= sum(bool(f.tags) for f in facts.values()) / 517 <= 0.45
    assert sum(bool(f.entities) for f in facts.values()) >= 350
    assert sum(bool(f.relations) for f in facts.values()) >= 50


def test_keywords_are_left_to_the_rule() -> None:
    assert not any("keywords" in json.loads(line) for line in lines("facts.jsonl"))


def test_dates_are_iso_in_utc_over_three_years(facts: dict[str, Fact]) -> None:
    dates = [datetime.strptime(f.created_at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) for f in facts.values()]
    assert 2.75 * 365 <= (max(dates) - min(dates)).days <= 3 * 366
    assert {d.year for d in dates} == {2023, 2024, 2025, 2026}
    assert dates == sorted(dates)


def test_texts_are_unique_short_and_clean(data: TestSet, facts: dict[str, Fact]) -> None:
    texts = [f.text for f in facts.values()] + [t.text for t in data.topics]
    assert len({fold(text) for text in texts}) == len(texts)
    for text in texts:
        assert 0 < len(text) <= 300
        assert printable(text, limit=300) == text == text.strip()
        assert unicodedata.is_normalized("NFC", text)


def test_all_addresses_lie_under_example_test() -> None:
    hosts = [
        host
        for name in ("facts.jsonl", "topics.jsonl", "README.md")
        for line in lines(name)
        for host in re.findall(r"[\w.+-]+@([\w.-]+\w)", line)
    ]
    assert len(hosts) >= 3
    assert all(host.endswith("example.test") for host in hosts)
    assert not any("://" in line for name in ("facts.jsonl", "topics.jsonl") for line in lines(name))


# --- traps ---------------------------------------------------------------------------------------------------------


def test_near_duplicates_differ_in_a_detail(facts: dict[str, Fact]) -> None:
    pairs = [
        (a.id, b.id)
        for a, b in combinations(facts.values(), 2)
        if overlap(a.text, b.text) >= 0.5 and b.supersedes != a.id
    ]
    assert len(pairs) >= 25
    assert all(overlap(facts[a].text, facts[b].text) < 1 for a, b in pairs)


def test_only_the_newer_of_two_states_answers(data: TestSet, facts: dict[str, Fact]) -> None:
    newer = {f.id: f.supersedes for f in facts.values() if f.supersedes is not None}
    assert len(newer) >= 25
    assert len(set(newer.values())) == len(newer)
    assert all(facts[old].created_at < facts[new].created_at for new, old in newer.items())
    relevant = frozenset[str]().union(*data.qrels.values())
    assert relevant.isdisjoint(newer.values())
    assert len(relevant & newer.keys()) >= 15


def test_most_topics_have_a_distractor_that_shares_as_many_words_as_an_answer(
    data: TestSet, facts: dict[str, Fact]
) -> None:
    tempted = 0
    for topic in data.topics:
        relevant = data.qrels.get(topic.id, frozenset())
        asked = content(topic.text)
        score = {f.id: len(asked & content(f.text)) for f in facts.values()}
        best = max((score[f] for f in relevant), default=1)
        tempted += any(n >= max(best, 1) for f, n in score.items() if f not in relevant)
    assert tempted >= 50


# --- classes -------------------------------------------------------------------------------------------------------


def test_exact_topics_share_a_word_with_every_answer(data: TestSet, facts: dict[str, Fact]) -> None:
    for topic in of_class(data, "exact"):
        for answer in data.qrels[topic.id]:
            # Two topics spell an identifier without the hyphens that the store has.
            text = fold(facts[answer].text) + fold(facts[answer].text).replace("-", "")
            assert any(word in text for word in content(topic.text)) or "🐢" in topic.text, topic.id


def test_identifiers_that_break_tokenisers_are_asked_for(data: TestSet, facts: dict[str, Fact]) -> None:
    built_on: set[str] = set()
    for identifier in IDENTIFIERS:
        spellings = (identifier, identifier.replace("-", "")) if identifier in RESPELLED else (identifier,)
        asked = [t for t in of_class(data, "exact") if any(spelling in t.text for spelling in spellings)]
        assert asked, identifier
        answers = [facts[f].text for t in asked for f in data.qrels[t.id]]
        assert all(fold(identifier) in fold(text) for text in answers), identifier
        built_on |= {t.id for t in asked}
    assert len(built_on) >= 22


def test_identifiers_have_twins_in_other_facts(facts: dict[str, Fact]) -> None:
    for identifier, twin in TWINS.items():
        with_it = {f.id for f in facts.values() if identifier in f.text}
        with_twin = {f.id for f in facts.values() if twin in f.text}
        assert with_it and with_twin, identifier
        assert with_it != with_twin, identifier


def test_a_paraphrase_shares_no_stem_with_its_answer_but_half_share_some_with_a_decoy(
    data: TestSet, facts: dict[str, Fact]
) -> None:
    names = {word for f in facts.values() for entity in f.entities for word in words(entity)}
    decoys = 0
    for topic in of_class(data, "paraphrase"):
        relevant = data.qrels[topic.id]
        for answer in relevant:
            assert shared_stems(topic.text, facts[answer].text, names) == set(), topic.id
        decoys += any(len(content(topic.text) & content(f.text)) >= 2 for f in facts.values() if f.id not in relevant)
    assert decoys >= 6


def test_the_check_of_stems_sees_inflections_and_leaves_names_and_short_words_alone() -> None:
    assert shared_stems("What keeps me awake?", "Keeping late hours", set()) == {("keeps", "keeping")}
    assert shared_stems("onde estão as crianças?", "a criança dorme", set()) == {("criancas", "crianca")}
    assert shared_stems("Where does Quim eat?", "Quim eats fish", {"quim"}) == set()


def test_third_party_topics_hang_on_who_said_it(data: TestSet, facts: dict[str, Fact]) -> None:
    for topic in of_class(data, "third-party"):
        relevant = data.qrels[topic.id]
        authors = {facts[f].author for f in relevant}
        assert len(authors) == 1, topic.id
        rivals = [
            f
            for f in facts.values()
            if f.id not in relevant and f.author not in authors and content(topic.text) & content(f.text)
        ]
        assert rivals, topic.id
    assert {facts[f].author for t in of_class(data, "third-party") for f in data.qrels[t.id]} == {
        Author.USER,
        Author.THIRD_PARTY,
    }


def test_topics_without_an_answer_still_find_words(data: TestSet, facts: dict[str, Fact]) -> None:
    for topic in of_class(data, "no-answer"):
        asked = content(topic.text)
        assert sum(bool(asked & content(f.text)) for f in facts.values()) >= 2, topic.id
    missing = next(t.text for t in of_class(data, "no-answer") if "POL-" in t.text)
    identifier = re.search(r"POL-\d+", missing)
    assert identifier and not any(identifier[0] in f.text for f in facts.values())
