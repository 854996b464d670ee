"""The generator gives the published shape at any size, the same everywhere, with one answer for each question."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import islice

import pytest

from lab.errors import InputError
from lab.retrieval.data.generate import generate, generated_facts
from lab.retrieval.data.templates import Pattern, templates
from lab.retrieval.testset import Author, Fact, TestSet

PINNED = "db2b7e37bf79b45b8a45b9df2b3d6807f7312423dfade480dfdb53da08a881f6"


@pytest.fixture(scope="module")
def made() -> TestSet:
    return generate(5_000, 79, 7)


def test_the_same_everywhere(made: TestSet) -> None:
    # Pinned, so that it fails on a version of Python on which another set comes out.
    assert made.digest() == PINNED
    assert generate(5_000, 79, 8).digest() != PINNED


def test_the_shape(made: TestSet) -> None:
    assert len(made.stores["main"]) == 5_000
    assert Counter(t.topic_class for t in made.topics) == {
        "exact": 55,
        "paraphrase": 12,
        "third-party": 6,
        "no-answer": 6,
    }
    assert sum(map(made.answerable, made.topics)) == 73
    assert {t.language for t in made.topics} == {f.language for f in made.stores["main"]} == {"en", "pt-BR"}
    assert {f.author for f in made.stores["main"]} == set(Author)


def test_what_is_built_past_validation_is_valid(made: TestSet) -> None:
    for fact in made.stores["main"][:500]:
        assert Fact.model_validate_json(fact.model_dump_json(), strict=True) == fact


def test_one_statement_for_each_entity_and_attribute(made: TestSet) -> None:
    facts = made.stores["main"]
    replaced = {fact.supersedes for fact in facts} - {None}
    assert replaced
    current = [fact for fact in facts if fact.id not in replaced]
    values: dict[tuple[str, str], set[str]] = {}
    for fact in current:
        values.setdefault((fact.entities[0], fact.relations[0].kind), set()).add(fact.relations[0].target)
    assert all(len(found) == 1 for found in values.values())
    assert len(current) > len(values), "no fact was said twice in other words"
    assert len({fact.text for fact in facts}) == len(facts)


def test_a_topic_is_answered_by_all_that_says_its_value_and_by_nothing_else(made: TestSet) -> None:
    facts = {fact.id: fact for fact in made.stores["main"]}
    asked: Counter[str] = Counter()
    for topic in made.topics:
        relevant = [facts[name] for name in made.qrels.get(topic.id, ())]
        asked[topic.text] += 1
        if topic.topic_class == "no-answer":
            assert not relevant
            continue
        entity, relation = relevant[0].entities[0], relevant[0].relations[0]
        assert entity in topic.text
        same = {f.id for f in facts.values() if f.entities[0] == entity and f.relations[0] == relation}
        assert same == made.qrels[topic.id]
        assert (relevant[0].author is Author.THIRD_PARTY) == (topic.topic_class == "third-party")
    assert max(asked.values()) == 1


def test_what_has_no_answer_is_said_nowhere(made: TestSet) -> None:
    for topic in (t for t in made.topics if t.topic_class == "no-answer"):
        kind, attribute = next(
            (kind, attribute)
            for kind in templates().kinds
            for attribute in kind.attributes
            if re.fullmatch(re.escape(attribute.sentences(topic.language).exact).replace(r"\{e\}", ".+"), topic.text)
        )
        frame = attribute.sentences(topic.language).exact.split("{e}")
        entity = topic.text[len(frame[0]) : len(topic.text) - len(frame[1])]
        about = [f for f in made.stores["main"] if f.entities[0] == entity]
        assert about, "the entity is known"
        assert attribute.key not in {f.relations[0].kind for f in about}
        assert len({f.relations[0].kind for f in about}) == len(kind.attributes) - 1


def test_a_larger_set_begins_with_a_smaller_one_and_topics_change_no_fact(made: TestSet) -> None:
    facts = made.stores["main"]
    assert generate(1_200, 30, 7).stores["main"] == facts[:1_200]
    assert tuple(islice(generated_facts(7), 5_000)) == facts


def test_classes_are_split_by_largest_remainder() -> None:
    assert Counter(t.topic_class for t in generate(2_000, 100, 1).topics) == {
        "exact": 70,
        "paraphrase": 15,
        "third-party": 8,
        "no-answer": 7,
    }


@pytest.mark.parametrize(("facts", "topics", "fault"), [(20, 79, "too few"), (0, 79, "too few"), (100, 0, "0 topics")])
def test_too_small(facts: int, topics: int, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        generate(facts, topics, 1)


@pytest.mark.parametrize("kind", templates().kinds, ids=lambda kind: kind.kind)
def test_names_never_repeat(kind: object) -> None:
    made = templates().kinds[[k is kind for k in templates().kinds].index(True)]
    names = [made.name(number, (7 if made.names() % 7 else 11, 5)) for number in range(3 * made.names() + 10)]
    assert len(set(names)) == len(names)


def test_identifiers_that_break_tokenisers_are_asked_for(made: TestSet) -> None:
    exact = " ".join(t.text for t in generate(5_000, 400, 7).topics if t.topic_class == "exact")
    for shape in (r"[A-Z]{3}-\d{3}", r"\w\+\+", r"\w\.js", r"\w:cli", r"pve-\d"):
        assert re.search(shape, exact), shape


def test_a_paraphrase_shares_no_word_with_its_fact() -> None:
    # Words of up to three letters, and those that every sentence needs.
    common = {"which", "what", "with", "that", "does", "quem", "para", "qual", "como", "each", "from", "must", "need"}
    for attribute in (attribute for kind in templates().kinds for attribute in kind.attributes):
        for language, said in (("en", attribute.en), ("pt-BR", attribute.pt)):
            values = () if isinstance(attribute.values, Pattern) else attribute.values[language]
            told = words(" ".join((said.fact, *values)))
            assert not (words(said.paraphrase) & told) - common, f"{attribute.key}, {language}"
            beginnings = [{word[:3] for word in words(text, 3)} for text in (said.exact, said.fact)]
            assert beginnings[0] & beginnings[1], f"{attribute.key}, {language}"


def words(text: str, least: int = 4) -> set[str]:
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return {word for word in re.findall(r"[a-z]+", bare.replace("{e}", "").replace("{v}", "")) if len(word) >= least}
