"""The keyword rule is a function of one fact alone and does what is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import InputError
from lab.retrieval.data.generate import generate
from lab.retrieval.data.keywords import RULE_FILE, keyword_rule, keywords_for, rule_digest, with_keywords
from lab.retrieval.data.load import load_set
from lab.retrieval.testset import Author, Fact

GOOD = Path(__file__).parents[1] / "fixtures" / "sets" / "good"


def fact(text: str, **fields: object) -> Fact:
    return Fact.model_validate({"id": "f", "text": text, **fields})


def test_words_of_both_languages_are_added_those_of_the_fact_first() -> None:
    english = keywords_for(fact("Ana sees the dentist.", language="en"))
    portuguese = keywords_for(fact("Ana vai ao DENTISTA!", language="pt-BR"))
    assert english[:2] == ("teeth", "appointment")
    assert portuguese[:2] == ("dentes", "consulta")
    assert set(english) == set(portuguese)


def test_two_concepts_take_turns() -> None:
    added = keywords_for(fact("The dentist plays the piano.", language="en"))
    assert added[:4] == ("teeth", "instrument", "appointment", "music")
    assert len(added) == keyword_rule().most_keywords


def test_a_word_of_the_text_is_never_added() -> None:
    assert "appointment" not in keywords_for(fact("Her dentist appointment moved.", language="en"))
    assert "música" not in keywords_for(fact("Musica no violão", language="pt-BR"))


def test_an_entity_triggers_too() -> None:
    assert keywords_for(fact("It opens at nine.", entities=["Hotel Aurora"]))
    assert not keywords_for(fact("It opens at nine."))


@pytest.mark.parametrize(
    "alone",
    [
        fact("The dentist is good.", author=Author.THIRD_PARTY),
        fact("dentist " + "and " * 25),
        fact("Nothing here is known."),
        fact("adentist dentes1"),
        fact("???"),
    ],
    ids=["third party", "long", "no concept", "other words", "no word"],
)
def test_facts_left_alone(alone: Fact) -> None:
    assert keywords_for(alone) == ()


def test_the_longest_fact_is_not_left_alone() -> None:
    assert keywords_for(fact("dentist " + "and " * 24))


def test_a_secret_gets_none() -> None:
    secret = fact("The password of the server is hunter2.")
    assert keywords_for(secret)
    assert keywords_for(secret, lambda text: "hunter2" in text) == ()
    assert [bool(f.keywords) for f in with_keywords([secret, fact("a dog")], lambda t: "hunter2" in t)] == [False, True]


def test_the_rule_changes_nothing_but_keywords() -> None:
    before = load_set(GOOD)
    after = load_set(GOOD, keywords=True)
    assert after.digest() != before.digest()
    assert any(f.keywords for f in after.stores["main"])
    assert tuple(f.model_copy(update={"keywords": ()}) for f in after.stores["main"]) == before.stores["main"]
    assert after.topics == before.topics


def test_it_is_the_same_in_every_process() -> None:
    code = (
        "from lab.retrieval.data.generate import generate\nfrom lab.retrieval.data.keywords import with_keywords\n"
        "from lab.records import digest\n"
        "print(digest([f.keywords for f in with_keywords(generate(900, 79, 1).stores['main'])]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
            cwd=RULE_FILE.parents[2],
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_the_lexicon_keeps_its_own_rules() -> None:
    rule = keyword_rule()
    assert len(rule.concepts) >= 150
    for name, concept in rule.concepts.items():
        for trigger in concept.triggers:
            assert 1 <= len(trigger.split()) <= 2, f"{name}: {trigger} is no word and no pair of words"
            assert re.fullmatch(r"[a-z0-9]+( [a-z0-9]+)?\*?", trigger), f"{name}: {trigger} can never be met"
        for keyword in (*concept.en, *concept.pt):
            assert "," not in keyword, f"{name}: {keyword} would become two tags"


def test_some_but_not_all_facts_get_keywords() -> None:
    facts = generate(2_000, 79, 3).stores["main"]
    assert 0.3 <= sum(bool(keywords_for(f)) for f in facts) / len(facts) <= 0.6


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    text = RULE_FILE.read_text(encoding="utf-8")
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_text(text.replace("# body and health", "# another comment"), encoding="utf-8")
    other.write_text(text.replace("teeth, appointment", "appointment, teeth", 1), encoding="utf-8")
    assert keyword_rule(same) == keyword_rule()
    assert keyword_rule(other) != keyword_rule()
    assert re.fullmatch("[0-9a-f]{64}", rule_digest())


@pytest.mark.parametrize(
    ("text", "fault"), [("[", "cannot be read"), ("version: 1\n", "most_words"), ("- a", "broken")]
)
def test_a_broken_rule(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "rule.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=fault) as caught:
        keyword_rule(path)
    assert "\n" not in str(caught.value)
