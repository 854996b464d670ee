"""The hold-out set is what its README says: counts, classes, judgements, identifiers, and what may not be in it."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.retrieval.testset import MAIN_STORE, Author, Fact, Purpose, TestSet, Topic

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "retrieval" / "holdout"

ENGLISH = """
a an and any are as at be because been by did do does for from get go had has have he her him his how i if in is it its
me my no not of off on one or our out over shall she should so than that the their them there these they this those to
up was we were what when where which who why will with would you your
"""
PORTUGUESE = """
a ao aos as com como da das de dele dela do dos e ela ele em entre era essa esse esta este eu foi ha isso ja lhe mais
mas me meu minha muito na nao nas nem no nos nossa nosso o os ou para pela pelo por porque qual quais quando quanto
quantos que quem se sem ser seu sua so sao tem um uma
"""
FUNCTION_WORDS = frozenset((ENGLISH + PORTUGUESE).split())

IDENTIFIER = re.compile(
    r"""
      \w+@[\w.]+                          # an address
    | \#\d+ | \b[A-Z][+\-](?!\w)          # a number sign, a grade
    | \b\w*[A-Za-z]\w*[:]\w+              # key:value
    | \b[\w]+\.(?:svg|ods|ogg)\b          # a file
    | \b[A-Za-z]+[-/. ]{0,2}\d[\w./-]*    # letters and digits: LOT-7741, K. 618, MX410, v1.4.2
    | \b\d+[.-]\d[\d-]*                   # 20.04, 2026-05-15
    | [^\W\d_]'[A-Z]\w+                   # O'Malley
    | [\u4e00-\u9fff\U0001f400-\U0001faff]
    """,
    re.VERBOSE,
)


def _words(text: str) -> set[str]:
    """Words in lower case and without accents, an underscore taken for a space."""
    folded = unicodedata.normalize("NFD", text.lower())
    return set(re.findall(r"[^\W_]+", "".join(c for c in folded if not unicodedata.combining(c))))


def _shared_stems(topic: Topic, fact: Fact) -> set[tuple[str, str]]:
    """Pairs of content words that are equal (from three letters) or begin with the same four letters."""
    names = _words(" ".join(fact.entities))
    asked = _words(topic.text) - FUNCTION_WORDS - names
    stored = _words(fact.text) - FUNCTION_WORDS
    return {
        (a, b)
        for a, b in itertools.product(asked, stored)
        if (a == b and len(a) >= 3) or (min(len(a), len(b)) >= 4 and a[:4] == b[:4])
    }


def _near_duplicates(facts: tuple[Fact, ...]) -> list[tuple[str, str]]:
    """Pairs that have at least half of their words in common and of which none replaces the other."""
    words = {fact.id: _words(fact.text) for fact in facts}
    return [
        (a.id, b.id)
        for a, b in itertools.combinations(facts, 2)
        if a.supersedes != b.id
        and b.supersedes != a.id
        and 2 * len(words[a.id] & words[b.id]) >= len(words[a.id] | words[b.id])
    ]


def _lines(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def qrel_rows() -> list[list[str]]:
    return [line.split("\t") for line in _lines("qrels.tsv")]


@pytest.fixture(scope="module")
def holdout(qrel_rows: list[list[str]]) -> TestSet:
    qrels: dict[str, set[str]] = {}
    for topic, _, fact, _ in qrel_rows:
        qrels.setdefault(topic, set()).add(fact)
    return TestSet(
        name="holdout",
        purpose=Purpose.HOLD_OUT,
        stores={MAIN_STORE: tuple(Fact.model_validate_json(line) for line in _lines("facts.jsonl"))},
        topics=tuple(Topic.model_validate_json(line) for line in _lines("topics.jsonl")),
        qrels={topic: frozenset(facts) for topic, facts in qrels.items()},
    )


@pytest.fixture(scope="module")
def facts(holdout: TestSet) -> tuple[Fact, ...]:
    return holdout.stores[MAIN_STORE]


@pytest.fixture(scope="module")
def by_id(facts: tuple[Fact, ...]) -> dict[str, Fact]:
    return {fact.id: fact for fact in facts}


def _of(holdout: TestSet, topic_class: str) -> list[Topic]:
    return [topic for topic in holdout.topics if topic.topic_class == topic_class]


class TestShape:
    def test_counts_by_class_are_those_of_the_issue(self, holdout: TestSet) -> None:
        counts = Counter(topic.topic_class for topic in holdout.topics)
        assert counts == {"exact": 72, "paraphrase": 27, "third-party": 12, "no-answer": 15}
        assert sum(holdout.answerable(topic) for topic in holdout.topics) == 111

    def test_topics_have_no_answer_exactly_where_their_class_says_so(self, holdout: TestSet) -> None:
        for topic in holdout.topics:
            assert holdout.answerable(topic) != (topic.topic_class == "no-answer"), topic.id

    def test_ids_are_sorted_unique_and_dense(self, holdout: TestSet, facts: tuple[Fact, ...]) -> None:
        assert [fact.id for fact in facts] == [f"h-{n:04d}" for n in range(1, 321)]
        expected = [
            f"{prefix}-{n:02d}"
            for prefix, count in (("hn", 15), ("hp", 27), ("ht", 12), ("hx", 72))
            for n in range(1, count + 1)
        ]
        assert [topic.id for topic in holdout.topics] == expected

    def test_qrels_are_sorted_rows_of_trec_without_a_doublet(self, qrel_rows: list[list[str]]) -> None:
        assert all(len(row) == 4 and row[1] == "0" and row[3] == "1" for row in qrel_rows)
        pairs = [(row[0], row[2]) for row in qrel_rows]
        assert pairs == sorted(set(pairs))

    def test_answerable_topics_have_one_to_three_answers(self, holdout: TestSet) -> None:
        assert {len(relevant) for relevant in holdout.qrels.values()} <= {1, 2, 3}
        assert sum(len(relevant) > 1 for relevant in holdout.qrels.values()) >= 5

    def test_both_languages_have_about_half(self, holdout: TestSet, facts: tuple[Fact, ...]) -> None:
        for rows in (facts, holdout.topics):
            counts = Counter(row.language for row in rows)
            assert set(counts) == {"en", "pt-BR"}
            assert min(counts.values()) >= 0.4 * len(rows)

    def test_authors_and_categories_are_all_there(self, facts: tuple[Fact, ...]) -> None:
        authors = Counter(fact.author for fact in facts)
        assert set(authors) == set(Author)
        assert 0.5 <= authors[Author.USER] / len(facts) <= 0.65
        assert {fact.category for fact in facts} == {"user_pref", "project", "tool", "general"}

    def test_fields_that_hold_the_default_and_keywords_are_left_out(self) -> None:
        fields = {
            name: field.get_default(call_default_factory=True)
            for name, field in Fact.model_fields.items()
            if not field.is_required()
        }
        for line in _lines("facts.jsonl"):
            row = json.loads(line)
            assert "keywords" not in row
            assert not [name for name in row if name in fields and row[name] == fields[name]], row["id"]


class TestTexts:
    def test_texts_are_unique_short_and_printable(self, holdout: TestSet, facts: tuple[Fact, ...]) -> None:
        for texts in ([f.text for f in facts], [t.text for t in holdout.topics]):
            assert len({" ".join(sorted(_words(text))) for text in texts}) == len(texts)
            for text in texts:
                assert text == text.strip() and len(text) <= 300
                assert not [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}], text

    def test_dates_are_iso_in_utc_over_three_years_in_order(self, facts: tuple[Fact, ...]) -> None:
        dates = [datetime.strptime(fact.created_at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) for fact in facts]
        assert dates == sorted(dates)
        assert 2.5 * 365 < (dates[-1] - dates[0]).days < 3.5 * 365

    def test_no_address_outside_the_reserved_domain(self) -> None:
        text = "\n".join(line for path in sorted(FOLDER.iterdir()) for line in _lines(path.name))
        addresses = re.findall(r"[\w.+-]+@[\w.-]+\w", text)
        assert addresses and all(re.search(r"[@.]example\.test$", address) for address in addresses)
        assert "://" not in text


class TestDifficulty:
    def test_near_duplicates(self, facts: tuple[Fact, ...]) -> None:
        assert len(_near_duplicates(facts)) >= 18

    def test_near_duplicates_are_told_from_others(self) -> None:
        one = Fact(id="1", text="The seal of tank TQ-03 is blue")
        other = Fact(id="2", text="The seal of tank TQ-08 is white")
        far = Fact(id="3", text="Ronan takes the bus")
        assert _near_duplicates((one, other, far)) == [("1", "2")]
        assert _near_duplicates((one, other.model_copy(update={"supersedes": "1"}), far)) == []

    def test_a_fact_replaces_an_older_one_once(self, facts: tuple[Fact, ...], by_id: dict[str, Fact]) -> None:
        replaced = [fact.supersedes for fact in facts if fact.supersedes]
        assert len(replaced) == len(set(replaced)) >= 18
        for fact in facts:
            if fact.supersedes:
                assert by_id[fact.supersedes].created_at < fact.created_at, fact.id

    def test_what_was_replaced_answers_nothing(self, holdout: TestSet, facts: tuple[Fact, ...]) -> None:
        replaced = {fact.supersedes for fact in facts if fact.supersedes}
        judged = frozenset().union(*holdout.qrels.values())
        assert not judged & replaced
        asked_for = [fact for fact in facts if fact.supersedes and fact.id in judged]
        assert len(asked_for) >= 18

    def test_exact_topics_have_identifiers(self, holdout: TestSet) -> None:
        exact = _of(holdout, "exact")
        assert sum(bool(IDENTIFIER.search(topic.text)) for topic in exact) >= 36
        together = " ".join(topic.text for topic in exact)
        kinds = (
            "LOT-7741",
            "F12D",
            "sala:12",
            "v1.4.2",
            "rx-77.4",
            "C+",
            "#32",
            "@",
            "O'Malley",
            "20.04",
            "🐐",
            "山羊",
        )
        assert [kind for kind in kinds if kind not in together] == []

    @pytest.mark.parametrize(
        "text", ["LOT-7741", "rx-77.4", "sala:12", "um C+ em", "#32", "K. 618", "20.04", "x_1.ogg"]
    )
    def test_identifiers_are_seen(self, text: str) -> None:
        assert IDENTIFIER.search(text)

    @pytest.mark.parametrize(
        "text", ["How many hives does Tarcísio have?", "Em que dia a Jandira folga?", "well-known: yes"]
    )
    def test_plain_words_are_no_identifiers(self, text: str) -> None:
        assert not IDENTIFIER.search(text)

    def test_exact_topics_share_a_word_or_an_identifier_with_each_answer(
        self, holdout: TestSet, by_id: dict[str, Fact]
    ) -> None:
        for topic in _of(holdout, "exact"):
            squeezed = "".join(re.findall(r"\w", topic.text.lower()))
            for answer in holdout.qrels[topic.id]:
                fact = by_id[answer]
                ids = {"".join(re.findall(r"\w", i.lower())) for i in IDENTIFIER.findall(fact.text)} - {""}
                shared = (_words(topic.text) & _words(fact.text)) - FUNCTION_WORDS
                assert shared or any(i in squeezed for i in ids), (topic.id, answer)

    def test_paraphrases_share_no_stem_with_their_answers(self, holdout: TestSet, by_id: dict[str, Fact]) -> None:
        for topic in _of(holdout, "paraphrase"):
            for answer in holdout.qrels[topic.id]:
                assert not _shared_stems(topic, by_id[answer]), topic.id

    def test_shared_stems_are_seen_and_names_are_let_pass(self) -> None:
        topic = Topic(id="t", text="Onde Ronan guardou o pão?")
        assert _shared_stems(topic, Fact(id="f", text="O queijo foi guardado por Ronan", entities=("Ronan",))) == {
            ("guardou", "guardado")
        }
        assert _shared_stems(topic, Fact(id="f", text="Pao na cesta")) == {("pao", "pao")}
        assert not _shared_stems(topic, Fact(id="f", text="Ronan pôs a broa na cesta", entities=("Ronan",)))

    def test_half_of_the_paraphrases_have_a_decoy(self, holdout: TestSet, facts: tuple[Fact, ...]) -> None:
        decoyed = 0
        for topic in _of(holdout, "paraphrase"):
            asked = {word for word in _words(topic.text) - FUNCTION_WORDS if len(word) >= 3}
            decoyed += any(len(asked & _words(f.text)) >= 3 for f in facts if f.id not in holdout.qrels[topic.id])
        # Not all of them: a decoy that holds every word of the topic would hide what a gate on lexical coverage does.
        assert 13 <= decoyed <= 18

    def test_some_paraphrases_cross_the_languages_both_ways(self, holdout: TestSet, by_id: dict[str, Fact]) -> None:
        ways = Counter(
            (topic.language, by_id[answer].language)
            for topic in _of(holdout, "paraphrase")
            for answer in holdout.qrels[topic.id]
        )
        assert min(ways["en", "pt-BR"], ways["pt-BR", "en"], ways["en", "en"], ways["pt-BR", "pt-BR"]) >= 3

    def test_third_party_topics_rest_on_who_said_it(self, holdout: TestSet, by_id: dict[str, Fact]) -> None:
        authors = Counter(
            by_id[answer].author for topic in _of(holdout, "third-party") for answer in holdout.qrels[topic.id]
        )
        assert set(authors) == {Author.THIRD_PARTY, Author.USER}
        assert authors[Author.USER] >= 3

    def test_topics_without_an_answer_share_words_with_facts(self, holdout: TestSet, facts: tuple[Fact, ...]) -> None:
        stored = set().union(*(_words(fact.text) for fact in facts))
        for topic in _of(holdout, "no-answer"):
            assert {word for word in _words(topic.text) - FUNCTION_WORDS if len(word) >= 3} & stored, topic.id
