"""The suite of contradicting sources: its cases, the cross-check's rule, five systems, planted faults."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, InputError
from lab.retrieval.arms import Tools
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.factstore.secrets import find_secret
from lab.retrieval.testset import Purpose
from lab.suites.agreement import suite
from lab.suites.agreement.crosscheck import Shape, disputes, distance, sources_of, values
from lab.suites.agreement.data import FILE, Kind, load, states
from lab.suites.agreement.judge import judge, rates
from lab.suites.agreement.systems import Examined
from lab.suites.base import SuiteContext, SuiteResult

DATA = Path(__file__).parents[2] / "scenarios" / "suites"
DEVELOPMENT, HOLD_OUT = "agreement-development", "agreement-hold-out"


def no_model() -> DenseIndexes:
    raise EnvironmentUnusable("no model is needed here", "")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SuiteResult:
    return suite.run(SuiteContext(Tools(no_model), DATA, tmp_path_factory.mktemp("work")))


def counted(result: SuiteResult, measure: str, system: str, data: str, **group: str) -> tuple[int, int]:
    (found,) = [
        rate.proportion
        for rate in result.rates
        if (rate.measure, rate.system, rate.data, rate.group) == (measure, system, data, group)
    ]
    return found.numerator, found.denominator


def test_the_data_are_enough_of_every_kind_in_both_languages() -> None:
    development, holdout = load(DATA / "agreement")
    assert (development.purpose, holdout.purpose) == (Purpose.DEVELOPMENT, Purpose.HOLD_OUT)
    assert len(development.cases) >= 60
    assert len(holdout.cases) >= 40
    for part in (development, holdout):
        assert {(case.kind, case.language) for case in part.cases} == {(k, w) for k in Kind for w in ("en", "pt-BR")}


def test_no_text_would_be_refused_as_a_secret() -> None:
    texts = [t for part in load(DATA / "agreement") for c in part.cases for t in (c.question, c.stored, *c.sources)]
    assert not [text for text in texts if find_secret(text)]


def test_every_planted_fault_is_seen_and_no_twin_is_accused(result: SuiteResult) -> None:
    assert result.sound
    assert Counter(plant.clean for plant in result.plants) == {False: 7, True: 7}


def test_what_is_retrieved_perfectly_lies(result: SuiteResult) -> None:
    for data, cases, wrong in ((DEVELOPMENT, 62, 46), (HOLD_OUT, 44, 30)):
        assert counted(result, "fact at rank 1", "plain retrieval", data) == (cases, cases)
        assert counted(result, "at rank 1 and true", "plain retrieval", data) == (cases - wrong, cases)
        assert counted(result, "at rank 1, wrong and not flagged", "plain retrieval", data) == (wrong, wrong)
        assert counted(result, "wrong copies flagged", "plain retrieval", data) == (0, wrong)


def test_the_cross_check_flags_most_and_accuses_none(result: SuiteResult) -> None:
    name = "reference cross-check"
    assert counted(result, "wrong copies flagged", name, DEVELOPMENT)[0] >= 40
    assert counted(result, "wrong copies flagged", name, HOLD_OUT)[0] >= 20
    for data in (DEVELOPMENT, HOLD_OUT):
        assert counted(result, "clean copies accused", name, data)[0] == 0
        flagged, among = counted(result, "true value named", name, data)
        assert flagged == among > 0


def test_the_rates_of_a_part_add_up(result: SuiteResult) -> None:
    for system in {rate.system for rate in result.rates}:
        whole = counted(result, "wrong copies flagged", system, HOLD_OUT)
        kinds = [counted(result, "wrong copies flagged", system, HOLD_OUT, kind=k) for k in Kind if k.wrong]
        tongues = [counted(result, "wrong copies flagged", system, HOLD_OUT, language=w) for w in ("en", "pt-BR")]
        assert tuple(map(sum, zip(*kinds, strict=True))) == whole == tuple(map(sum, zip(*tongues, strict=True)))


def test_accused_are_the_flagged_twins_and_the_flagged_sound_copies() -> None:
    part = load(DATA / "agreement")[0]
    everything = frozenset(case.id for case in part.cases)
    texts = {case.id: case.stored for case in part.cases}
    all_flagged = Examined(texts, everything, everything)
    none_flagged = Examined(texts, everything, frozenset())
    for faulty, repaired, expected in (
        (all_flagged, all_flagged, (62, 62)),
        (all_flagged, none_flagged, (16, 62)),
        (none_flagged, all_flagged, (46, 62)),
        (none_flagged, none_flagged, (0, 62)),
    ):
        judged = judge(part.faulty(), faulty), judge(part.repaired(), repaired)
        found = [
            r.proportion for r in rates(part, "planted", *judged, names=False) if r.measure == "clean copies accused"
        ]
        assert (found[0].numerator, found[0].denominator) == expected


def test_no_model_is_asked_for(result: SuiteResult) -> None:
    assert not result.errors


@pytest.mark.parametrize(
    ("one", "other", "shape"),
    [
        ("It costs 1,450 euros.", "1450 were paid.", Shape.NUMBER),
        ("It costs 1.450 euros.", "1450 were paid.", Shape.NUMBER),
        ("On 14 March.", "From 2031-03-14 on.", Shape.DATE),
        ("On March 14th.", "em 14 de março", Shape.DATE),
        ("em 09/05/2031", "on the 9th of May", Shape.DATE),
        ("às 7h30", "at 07:30", Shape.TIME),
        ("tag RG-118", "tag rg118", Shape.IDENTIFIER),
        ("plate HBD 629", "plate HBD629", Shape.IDENTIFIER),
        ("to bills@tern.example.test.", "bills@tern.example.test", Shape.IDENTIFIER),
        ("It is Anneke Stolz.", "By Anneke Stolz", Shape.NAME),
    ],
)
def test_one_value_has_one_form(one: str, other: str, shape: Shape) -> None:
    first, second = ({(v.shape, v.form) for v in values(text) if v.shape is shape} for text in (one, other))
    assert len(first) == 1
    assert first == second


COPY = "The night desk has extension 8326."
SOURCES = (
    "Call the night desk at extension 8362.",
    "Noted: night desk, extension 8362.",
    "Phone list, night desk: extension 8362.",
)


def test_a_copy_that_its_sources_outvote_is_disputed_with_their_value() -> None:
    (found,) = disputes(COPY, SOURCES)
    assert (found.stored, found.sources, found.votes, found.support) == ("8326", "8362", 3, 0)


@pytest.mark.parametrize(
    "sources",
    [
        SOURCES[:1],
        (SOURCES[0], "The night desk has extension 8326, says the sign."),
        (*SOURCES[:2], "Night desk: 8326.", "Night desk, extension 8326."),
        ("Call the pharmacy at extension 8362.", "Pharmacy, extension 8362.", "Kitchen staff: extension 8362."),
        ("The night desk closes at 23:00.", "The night desk has no extension yet."),
        (),
    ],
    ids=["one source", "one against one", "two against two", "other things", "no value", "none"],
)
def test_nothing_is_disputed_without_a_majority_of_its_own_sources(sources: tuple[str, ...]) -> None:
    assert disputes(COPY, sources) == ()


def test_a_neighbour_that_differs_by_one_word_is_taken_for_the_matter_where_its_own_sources_are_gone() -> None:
    """A limit of the rule, stated in docs/agreement.md; with the copy's own sources there, it does no harm."""
    neighbour = ("Call the day desk at extension 8362.", "Day desk, extension 8362.")
    assert disputes(COPY, neighbour)
    own = ("The night desk is extension 8326.", "Night desk, extension 8326.")
    assert disputes(COPY, (*neighbour, *own)) == ()


def test_a_copy_that_agrees_is_never_disputed() -> None:
    for part in load(DATA / "agreement"):
        for case in part.cases:
            for text in case.sources:
                others = [text] * 3
                assert disputes(text, others) == ()


def test_sources_are_those_of_the_same_matter() -> None:
    assert set(sources_of(COPY, ["The ferry leaves at seven.", *SOURCES])) == set(SOURCES)
    assert sources_of("8326", SOURCES) == ()


@pytest.mark.parametrize(
    ("one", "other", "apart"), [("", "", 0), ("", "ab", 2), ("4471", "4417", 1), ("abc", "adc", 1), ("ab", "a", 1)]
)
def test_distance(one: str, other: str, apart: int) -> None:
    assert distance(one, other) == distance(other, one) == apart


@pytest.mark.parametrize("text", ["A1 " * 9000, "a-" * 9000, "Aa " * 9000, "1," * 9000, "9" * 20000], ids=len)
def test_odd_text_costs_seconds_at_most(text: str) -> None:
    started = time.process_time()
    disputes(text, [text, text.lower()])
    assert time.process_time() - started < 10


def test_a_value_is_stated_as_words_of_its_own() -> None:
    assert states("due on 4 March", ["4 March"])
    assert not states("due on 14 March", ["4 March"])
    assert states("tag kp-4471.", ["KP-4471"])


def test_retrieval_and_truth_are_judged_apart() -> None:
    part = load(DATA / "agreement")[0]
    copies = part.faulty()[:3]
    one, two, three = copies
    first = {one.case.id: one.text, two.case.id: two.case.sources[0], three.case.id: one.text}
    seen = judge(copies, Examined(first, frozenset({one.case.id, two.case.id}), frozenset()))
    assert seen.first == {one.case.id, two.case.id}
    assert seen.true == {two.case.id}
    assert seen.lying == {one.case.id}
    flagged = judge(copies, Examined(first, seen.first, frozenset({one.case.id}), {one.case.id: one.case.true[0]}))
    assert flagged.lying == frozenset()
    assert flagged.named == {one.case.id}


def test_a_twin_differs_by_its_value_alone() -> None:
    for part in load(DATA / "agreement"):
        for copy, twin in zip(part.faulty(), part.repaired(), strict=True):
            assert (copy.text != twin.text) is copy.wrong
            assert states(twin.text, twin.case.true)
            assert not twin.wrong


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"value": "KP-4499"}, "other than once"),
        ({"stored": "The tag is KP-4471, once KP-4417.", "true": ["KP-4417"]}, "the copy is right"),
        ({"kind": "equal in another form"}, "the copy is wrong"),
        ({"kind": "a kind that there is not"}, "kind"),
        ({"sources": ["KP-4471", "KP-4471"]}, "sources"),
        ({"sources": ["KP-4471", "KP-4471", "KP-9"]}, "2 sources"),
        ({"question": " "}, "question"),
        ({"more": 1}, "more"),
    ],
)
def test_broken_cases_are_named(tmp_path: Path, change: dict[str, object], fault: str) -> None:
    row = json.loads((DATA / "agreement" / "development" / FILE).read_text(encoding="utf-8").splitlines()[0])
    (tmp_path / "development").mkdir()
    (tmp_path / "development" / FILE).write_text(json.dumps(row | change), encoding="utf-8")
    with pytest.raises(InputError, match=rf"cases\.jsonl:1: .*{fault}"):
        load(tmp_path)


def test_without_a_hold_out_the_suite_says_so(tmp_path: Path) -> None:
    place = tmp_path / "agreement" / "development"
    place.mkdir(parents=True)
    (place / FILE).write_bytes((DATA / "agreement" / "development" / FILE).read_bytes())
    (tmp_path / "work").mkdir()
    result = suite.run(SuiteContext(Tools(no_model), tmp_path, tmp_path / "work"))
    assert len(result.data) == 1
    assert any("no hold-out" in note for note in result.notes)


def test_a_development_part_without_the_kind_that_is_planted_is_told(tmp_path: Path) -> None:
    rows = [case.model_dump_json() for case in load(DATA / "agreement")[0].cases if case.kind is not Kind.SWAPPED]
    (tmp_path / "development").mkdir()
    (tmp_path / "development" / FILE).write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(InputError, match=rf"development/{FILE} has no case of the kind digits swapped"):
        load(tmp_path)
