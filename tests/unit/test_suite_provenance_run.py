"""The suite of provenance as a whole, its reference extractor, and the patterns that the agent ships."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import lab
from lab.errors import EnvironmentUnusable, InputError, SystemFailed
from lab.isolation.base import Backend, PreparedEnvironment
from lab.retrieval.arms import Tools
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.systems.holographic import plugin_program
from lab.retrieval.systems.sandboxed import WorkerProgram
from lab.retrieval.testset import Author, Purpose
from lab.suites.base import SuiteContext
from lab.suites.provenance import shipped, suite
from lab.suites.provenance.data import UTTERANCES, Labels, Message, Role, load_parts
from lab.suites.provenance.extractor import ReferenceExtractor
from lab.suites.provenance.scoring import rates
from lab.suites.provenance.shipped import ShippedPatterns

SUITES = Path(lab.__file__).parent.parent / "scenarios" / "suites"


def no_indexes() -> DenseIndexes:
    raise AssertionError("the suite embeds nothing")


class NoSandbox(Tools):
    def __init__(self) -> None:
        super().__init__(no_indexes)

    def plugin(self, *, numpy: bool) -> WorkerProgram:
        raise EnvironmentUnusable("no sandbox can be started here", "lab agent check")


class AnySandbox(Tools):
    def __init__(self) -> None:
        super().__init__(no_indexes)

    def plugin(self, *, numpy: bool) -> WorkerProgram:
        return None  # type: ignore[return-value]  # the extractor made of it is planted, too


def data(path: Path, *, holdout: bool) -> Path:
    """A copy of the development part, of which a quarter becomes the hold-out where one is wanted."""
    source = (SUITES / "provenance" / "development" / UTTERANCES).read_text(encoding="utf-8").splitlines()
    cut = len(source) // 4 if holdout else 0
    for folder, lines in (("development", source[cut:]), ("holdout", source[:cut])):
        rows = [json.loads(line) | {"pair": ""} for line in lines]
        if rows:
            (path / "provenance" / folder).mkdir(parents=True)
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (path / "provenance" / folder / UTTERANCES).write_text(text, encoding="utf-8")
    return path


def one(text: str, sent_as: str = "user") -> Labels:
    return ReferenceExtractor().extract([Message.model_validate({"text": text, "sent_as": sent_as})])[0]


def test_without_sandbox_and_hold_out_it_says_so_and_measures_the_rest(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    root = data(tmp_path / "data", holdout=False)
    result = suite.run(SuiteContext(NoSandbox(), root, tmp_path, lambda done, of: seen.append((done, of))))
    assert result.sound and not result.errors
    assert {rate.system for rate in result.rates} == {"all-user", "majority", "reference"}
    notes = "\n".join(result.notes)
    assert "There is no hold-out part" in notes
    assert f"{shipped.NAME} is left out: no sandbox can be started here" in notes
    assert [info.purpose for info in result.data] == [Purpose.DEVELOPMENT]
    assert seen[-1] == (3, 3)
    json.loads(result.model_dump_json())


def test_development_and_hold_out_are_reported_apart(tmp_path: Path) -> None:
    result = suite.run(SuiteContext(NoSandbox(), data(tmp_path / "data", holdout=True), tmp_path))
    assert [info.purpose for info in result.data] == [Purpose.DEVELOPMENT, Purpose.HOLD_OUT]
    sizes = {info.name: info.counts["utterances"] for info in result.data}
    for rate in result.rates:
        if rate.measure == "author kind: right" and not rate.group:
            assert rate.proportion.denominator == sizes[rate.data]
    assert any("whose intervals on development and hold-out do not meet: " in note for note in result.notes)
    assert "There is no hold-out part" not in "\n".join(result.notes)


def test_an_extractor_that_fails_is_an_error_and_no_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(ShippedPatterns):
        def extract(self, messages: Sequence[Message]) -> list[Labels]:
            raise SystemFailed("it ended")

    monkeypatch.setattr(suite, "ShippedPatterns", Failing)
    root = data(tmp_path / "data", holdout=False)
    result = suite.run(SuiteContext(AnySandbox(), root, tmp_path))
    assert list(result.errors) == [f"{shipped.NAME}: it ended"]
    assert all(rate.system != shipped.NAME for rate in result.rates)


def test_a_broken_utterance_ends_the_run_with_its_line(tmp_path: Path) -> None:
    root = data(tmp_path / "data", holdout=False)
    with (root / "provenance" / "development" / UTTERANCES).open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(InputError, match=rf"{UTTERANCES}:\d+: "):
        suite.run(SuiteContext(NoSandbox(), root, tmp_path))


def test_a_measure_that_falls_on_the_hold_out_is_named() -> None:
    part = load_parts(SUITES / "provenance")[0]
    other = part.model_copy(update={"purpose": Purpose.HOLD_OUT})
    answers = ReferenceExtractor().extract([one.message for one in part.utterances])
    blind = [Labels(author=answer.author) for answer in answers]
    found = [*rates(part, answers, "reference", split=False), *rates(other, blind, "reference", split=False)]
    told = suite.fallen(found, (part, other), "reference")
    assert "person: recall (" in told[0] and "author user: recall" not in told[0]
    same = [*rates(part, answers, "reference", split=False), *rates(other, answers, "reference", split=False)]
    assert suite.fallen(same, (part, other), "reference")[0].endswith("do not meet: none.")


def test_the_reference_extractor_keeps_what_it_was_written_on() -> None:
    part = load_parts(SUITES / "provenance")[0]
    answers = ReferenceExtractor().extract([one.message for one in part.utterances])
    told = {r.measure: r.proportion.value for r in rates(part, answers, "reference", split=False)}
    for measure in (
        "author kind",
        "persons and roles",
        "vocatives",
        "quotations and speakers",
        "holders of preferences",
    ):
        assert (told[f"{measure}: right"] or 0) > 0.95


@pytest.mark.parametrize(
    ("called", "subject"),
    [
        ("Nadine, could you fetch the post?", "Nadine could fetch the post."),
        ("Could you fetch the post, Nadine?", "The one who fetches the post is Nadine."),
        ("Ubirajara, você busca a correspondência?", "O Ubirajara busca a correspondência."),
    ],
)
def test_a_call_is_told_from_a_subject(called: str, subject: str) -> None:
    (who,), (other,) = one(called).persons, one(subject).persons
    assert (who.vocative, who.role) == (True, Role.ADDRESSEE)
    assert (other.vocative, other.role, other.name) == (False, Role.MENTIONED, who.name)


def test_whose_words_and_whose_preference() -> None:
    told = one('Nadine said: "I prefer cash."')
    assert told.author.kind is Author.USER
    assert [(q.text, q.speaker.name) for q in told.quotes] == [("I prefer cash.", "Nadine")]
    assert [(v.kind, v.name) for v in told.preferences] == [(Author.THIRD_PARTY, "Nadine")]
    assert one("I prefer cash.").preferences[0].kind is Author.USER
    assert one("I prefer cash.", "tool").preferences[0].kind is Author.UNKNOWN
    assert one('You wrote "cash only".', "assistant").quotes[0].speaker.kind is Author.USER
    assert not one("If Nadine prefers cash, tell me.").preferences
    assert not one('We saw "Cash Only" at the cinema.').quotes


def test_a_changed_pattern_changes_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lab.suites.provenance import extractor

    before = ReferenceExtractor().settings()
    copy = tmp_path / "provenance"
    shutil.copytree(Path(extractor.__file__).parent, copy)
    monkeypatch.setattr(extractor, "__file__", str(copy / "extractor.py"))
    assert ReferenceExtractor().settings() == before
    with (copy / "words.py").open("a") as stream:
        stream.write("# one word more\n")
    assert ReferenceExtractor().settings() != before


@pytest.mark.agent
@pytest.mark.bwrap
def test_the_shipped_patterns_are_the_agents_own(
    prepared: Callable[[str], tuple[Backend, PreparedEnvironment]],
) -> None:
    prepared("bwrap")
    patterns = ShippedPatterns(plugin_program("bwrap", numpy=False))
    texts = [
        ("user", "I prefer window seats."),
        ("user", "Minha esposa prefere corredor e eu prefiro janela."),
        ("assistant", "I prefer to answer briefly."),
        ("user", "Fwd: from Viktor Sandoval\n\nI always use the side door."),
        ("user", "we decided to ship on Monday"),
    ]
    answers = patterns.extract([Message.model_validate({"sent_as": who, "text": text}) for who, text in texts])
    assert [len(answer.preferences) for answer in answers] == [1, 0, 0, 1, 0]
    # Somebody else's words, taken for the user's preference: what the suite is there to count.
    assert answers[3].preferences[0].kind is Author.USER
    assert [person.name for person in answers[3].persons] == ["Viktor Sandoval"]
    assert {answer.author.kind for answer in answers} == {Author.UNKNOWN}
    assert patterns.stored == 3
    assert "category" in patterns.columns and "author" not in patterns.columns
    assert patterns.settings()["agent"] == "hermes-agent 0.19.0"
