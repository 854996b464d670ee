"""The suite of time and supersession: its data, its judgement, its planted faults, and faults of its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lab.errors import InputError
from lab.memories.relations.claim import Claim
from lab.retrieval.arms import Tools
from lab.suites.base import SuiteContext, SuiteResult
from lab.suites.supersession import suite
from lab.suites.supersession.data import Aspect, Question, load
from lab.suites.supersession.judge import Outcome, believed, judge
from lab.suites.supersession.plants import FAULTS
from lab.suites.supersession.systems import LatestRow

OTHERS = ("right", "part of the answer", "another matter", "miss")
DATA = Path(__file__).parents[2] / "scenarios" / "suites"


def unused() -> object:
    raise AssertionError("this suite embeds nothing")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SuiteResult:
    told: list[tuple[int, int]] = []
    work = tmp_path_factory.mktemp("work")
    context = SuiteContext(Tools(unused), DATA, work, lambda done, total: told.append((done, total)))  # type: ignore[arg-type]
    found = suite.run(context)
    assert told[-1][0] == told[-1][1] == len(told)
    return found


def value(result: SuiteResult, measure: str, system: str, data: str, **group: str) -> tuple[int, int]:
    (found,) = [
        rate.proportion
        for rate in result.rates
        if (rate.measure, rate.system, rate.data, rate.group) == (measure, system, data, group)
    ]
    return found.numerator, found.denominator


def test_enough_cases_of_every_aspect_in_both_languages() -> None:
    development, holdout = load(DATA / "supersession")
    assert len(development.questions) >= 60
    assert len(holdout.questions) >= 40
    for part in (development, holdout):
        assert {question.aspect for question in part.questions} == set(Aspect)
        assert {question.language for question in part.questions} == {"en", "pt-BR"}
    assert not {one.subject for one in development.statements} & {one.subject for one in holdout.statements}


def test_labels_follow_from_the_statements_by_the_definition() -> None:
    """The answers were written by hand; here they are held against the definition, without the graph."""
    for part in load(DATA / "supersession"):
        claims = [statement.claim() for statement in part.statements]
        for question in part.questions:
            holding = {
                claim.object
                for claim in believed(claims, question.known)
                if claim.holds(question.valid) and (claim.subject, claim.kind) == (question.subject, question.kind)
            }
            assert holding == question.answers, question.id


def test_the_graph_keeps_its_definition_and_the_others_show_what_time_costs(result: SuiteResult) -> None:
    for data in ("development", "holdout"):
        right, of = value(result, "right", "bitemporal graph", data)
        assert right == of
        assert value(result, "wrong time", "bitemporal graph", data)[0] == 0
        for system in ("latest row wins", "BM25, first hit"):
            assert value(result, "wrong time", system, data)[0] > value(result, "miss", system, data)[0]
        # The graph's times take every wrong time away from a text search, and nothing else.
        assert value(result, "wrong time", "BM25, filtered by the graph's times", data)[0] == 0
        assert value(result, "another matter", "BM25, filtered by the graph's times", data)[0] > 0


def test_outcomes_add_up_and_axes_make_up_the_wrong_times(result: SuiteResult) -> None:
    for system in {rate.system for rate in result.rates}:
        for data in ("development", "holdout"):
            wrong, of = value(result, "wrong time", system, data)
            parts = [value(result, "wrong time", system, data, axis=axis)[0] for axis in ("valid", "known")]
            assert sum(parts) == wrong
            others = [value(result, name, system, data)[0] for name in OTHERS]
            assert wrong + sum(others) == of
            by_aspect = [value(result, "right", system, data, aspect=aspect.value)[1] for aspect in Aspect]
            assert sum(by_aspect) == of


def test_every_planted_fault_is_caught_on_both_sets_and_the_twin_is_not_accused(result: SuiteResult) -> None:
    assert result.sound
    assert sum(plant.clean for plant in result.plants) == 4
    assert len(result.plants) == 2 * (len(FAULTS) + 3)
    assert SuiteResult.model_validate_json(result.model_dump_json()) == result


def claim(name: str, target: str, begin: int, end: int | None, known: int, supersedes: str | None = None) -> Claim:
    days = [None if day is None else f"2026-01-{day:02}T00:00:00Z" for day in (begin, end, known)]
    return Claim.model_validate(
        {"id": name, "subject": "Ana", "kind": "at", "object": target, "valid_from": days[0], "valid_to": days[1]}
        | {"ingested_at": days[2], "supersedes": supersedes}
    )


def question(valid: int, known: int, *answers: str) -> Question:
    return Question.model_validate(
        {"id": "q", "world": "w", "language": "en", "aspect": "past", "text": "Where?", "subject": "Ana", "kind": "at"}
        | {"valid": f"2026-01-{valid:02}T00:00:00Z", "known": f"2026-01-{known:02}T00:00:00Z", "answers": answers}
    )


def test_a_wrong_time_is_told_from_a_miss_and_by_its_axis() -> None:
    claims = [claim("1", "A", 1, None, 2), claim("2", "A", 1, 10, 12, "1"), claim("3", "B", 10, None, 12)]
    other = claims[0].model_copy(update={"subject": "Rui"})
    asked = question(11, 20, "B")
    assert judge(asked, (claims[2],), claims) is Outcome.RIGHT
    assert judge(asked, (), claims) is Outcome.MISS
    assert judge(asked, (claims[0],), claims) is Outcome.OTHER_TIME  # A is still believed, of an earlier time
    assert judge(asked, (claims[2], claims[1]), claims) is Outcome.OTHER_TIME  # one right does not hide one wrong
    assert judge(asked, (other,), claims) is Outcome.OTHER_MATTER
    early = question(11, 5, "A")
    assert judge(early, (claims[2],), claims) is Outcome.OTHER_KNOWLEDGE  # B was not known yet
    assert judge(question(1, 1), (), claims) is Outcome.RIGHT


def test_half_of_a_contested_answer_is_not_right() -> None:
    claims = [claim("1", "A", 1, None, 2), claim("2", "B", 1, None, 3), claim("3", "C", 1, 5, 3)]
    asked = question(11, 20, "A", "B")
    assert judge(asked, claims[:2], claims) is Outcome.RIGHT
    assert judge(asked, 2 * claims[:2], claims) is Outcome.RIGHT
    assert judge(asked, claims[:1], claims) is Outcome.PART
    assert not Outcome.PART.wrong_time
    assert judge(asked, claims, claims) is Outcome.OTHER_TIME  # all that holds does not hide one wrong
    assert judge(asked, (), claims) is Outcome.MISS


def test_a_memory_of_one_row_is_right_on_no_contested_question(result: SuiteResult) -> None:
    for data in ("development", "holdout"):
        for system in ("latest row wins", "BM25, first hit", "BM25, filtered by the graph's times"):
            assert value(result, "right", system, data, aspect=Aspect.CONTESTED.value)[0] == 0
            assert value(result, "part of the answer", system, data)[0] > 0


def test_in_a_latest_row_store_what_is_ingested_last_wins_whatever_it_speaks_of() -> None:
    claims = [claim("1", "A", 10, None, 12), claim("2", "B", 1, 5, 20)]
    (answer,) = LatestRow(claims).answer(question(11, 30, "A"))
    assert answer.object == "B"
    retracted = claim("3", "B", 1, 1, 25, "2")
    assert LatestRow([*claims, retracted]).answer(question(11, 30, "A")) == ()


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("questions", {"answers": ["Mars"]}, "no statement has the answer Mars"),
        ("questions", {"subject": "Nobody"}, "no statement of its world"),
        ("questions", {"valid": "2026-01-01T00:00:00-03:00"}, "not in UTC"),
        ("questions", {"aspect": "rumour"}, "aspect"),
        ("questions", {"hint": "x"}, "hint"),
        ("statements", {"supersedes": "nothing"}, "supersedes nothing"),
        ("statements", {"valid_to": "1990-01-01T00:00:00Z"}, "ends before it begins"),
    ],
)
def test_a_broken_line_is_told_with_file_and_line(
    file: str, change: dict[str, object], told: str, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "supersession", tmp_path / "supersession")
    path = tmp_path / "supersession" / "holdout" / f"{file}.jsonl"
    lines = path.read_text().splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | change)
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "supersession")
    assert f"{file}.jsonl:3:" in caught.value.message
    assert told in caught.value.message
    assert caught.value.mend


def test_double_ids_and_empty_files_are_refused(tmp_path: Path) -> None:
    shutil.copytree(DATA / "supersession", tmp_path / "supersession")
    path = tmp_path / "supersession" / "development" / "questions.jsonl"
    first = path.read_text().splitlines()[0]
    path.write_text(f"{first}\n{first}\n")
    with pytest.raises(InputError, match=r"questions\.jsonl:2: .* is there already, in line 1"):
        load(tmp_path / "supersession")
    path.write_text("\n")
    with pytest.raises(InputError, match="holds no case"):
        load(tmp_path / "supersession")
