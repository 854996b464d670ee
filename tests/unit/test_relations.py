"""The bitemporal relation graph: both time axes, corrections, retractions, zones, and what it refuses."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from pydantic import ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.relations.claim import Claim
from lab.memories.relations.graph import RelationGraph

NEVER = "9000-01-01T00:00:00Z"


def claim(name: str, target: str, begin: str, end: str | None = None, *, known: str, **more: str) -> Claim:
    return Claim.model_validate(
        {"id": name, "subject": "Ana", "kind": "works_at", "object": target, "valid_from": f"{begin}T00:00:00Z"}
        | {"valid_to": f"{end}T00:00:00Z" if end else None, "ingested_at": f"{known}T00:00:00Z"}
        | more
    )


def objects(graph: RelationGraph, valid: str, known: str) -> list[str]:
    return [found.object for found in graph.as_of(f"{valid}T00:00:00Z", f"{known}T00:00:00Z")]


FIRST = claim("1", "Acme", "2020-01-01", known="2020-01-05")
CLOSED = claim("2", "Acme", "2020-01-01", "2023-01-01", known="2023-02-01", supersedes="1")
NEW = claim("3", "Beta", "2023-01-01", known="2023-02-01")


def test_a_change_is_seen_on_both_axes() -> None:
    with RelationGraph() as graph:
        assert graph.append(FIRST, CLOSED, NEW) == 3
        assert objects(graph, "2022-06-01", "2024-01-01") == ["Acme"]
        assert objects(graph, "2023-06-01", "2024-01-01") == ["Beta"]
        # In January she had left already, and nobody knew.
        assert objects(graph, "2023-01-15", "2023-01-15") == ["Acme"]
        assert objects(graph, "2023-01-15", "2023-03-01") == ["Beta"]
        assert objects(graph, "2022-06-01", "2020-01-01") == []  # before anything was known


def test_intervals_are_half_open_on_both_axes() -> None:
    with RelationGraph() as graph:
        graph.append(FIRST, CLOSED, NEW)
        assert objects(graph, "2023-01-01", "2024-01-01") == ["Beta"]  # the moment of the change
        before = datetime(2022, 12, 31, 23, 59, 59, 999999, UTC)
        assert [found.object for found in graph.as_of(before, "2024-01-01T00:00:00Z")] == ["Acme"]
        assert objects(graph, "2023-01-15", "2023-02-01") == ["Beta"]  # the moment at which it became known
        assert objects(graph, "2019-12-31", "2024-01-01") == []


def test_a_correction_arrives_before_its_target_and_corrections_are_corrected() -> None:
    wrong = claim("a", "Acme", "2020-01-01", known="2020-01-05")
    fix = claim("b", "Acne", "2020-01-01", known="2020-02-01", supersedes="a")
    again = claim("c", "Acme Ltd", "2020-01-01", known="2020-03-01", supersedes="b")
    with RelationGraph() as graph:
        for one in (again, fix, wrong):
            graph.append(one)
        assert objects(graph, "2020-06-01", "2020-01-10") == ["Acme"]
        assert objects(graph, "2020-06-01", "2020-02-10") == ["Acne"]
        assert objects(graph, "2020-06-01", "2020-04-01") == ["Acme Ltd"]
        assert [found.id for found in graph.history()] == ["a", "b", "c"]


def test_a_retraction_is_true_at_no_time_and_stays_readable() -> None:
    gone = claim("r", "Acme", "2020-01-01", "2020-01-01", known="2020-06-01", supersedes="1")
    with RelationGraph() as graph:
        graph.append(FIRST, gone)
        assert objects(graph, "2020-02-01", "2020-05-01") == ["Acme"]
        assert objects(graph, "2020-02-01", "2020-06-01") == []
        assert graph.believed(NEVER) == ()
        assert graph.history() == (FIRST, gone)


def test_overlapping_claims_are_shown() -> None:
    other = claim("4", "Gama", "2021-01-01", "2022-01-01", known="2021-01-01")
    with RelationGraph() as graph:
        graph.append(FIRST, other)
        assert objects(graph, "2021-06-01", "2024-01-01") == ["Acme", "Gama"]
        (found,) = graph.overlaps(NEVER)
        assert (found.first, found.second) == (FIRST, other)
        assert (found.begin, found.end) == (other.valid_from, other.valid_to)
        assert graph.overlaps("2020-06-01T00:00:00Z") == ()  # the second was not known then
    with RelationGraph() as graph:
        graph.append(FIRST, CLOSED, NEW)  # they meet, and do not overlap
        assert graph.overlaps(NEVER) == ()


def test_a_walk_is_bounded_and_stays_in_its_time() -> None:
    boss = claim("b", "Rui", "2020-01-01", known="2020-01-01", subject="Beta", kind="led_by")
    with RelationGraph() as graph:
        graph.append(FIRST, CLOSED, NEW, boss)
        at = ("2024-01-01T00:00:00Z", NEVER)
        assert [(step.hops, step.claim.object) for step in graph.walk("Ana", *at, hops=2)] == [(1, "Beta"), (2, "Rui")]
        assert [step.claim.object for step in graph.walk("Ana", *at, hops=1)] == ["Beta"]
        assert [step.claim.id for step in graph.walk("Rui", *at, hops=2)] == ["b", "3"]
        assert [step.claim.object for step in graph.walk("Ana", "2021-01-01T00:00:00Z", NEVER, hops=2)] == ["Acme"]


def test_names_are_compared_composed() -> None:
    with RelationGraph() as graph:
        graph.append(claim("1", "São", "2020-01-01", known="2020-01-01", subject="José"))
        assert len(graph.as_of("2021-01-01T00:00:00Z", NEVER, subject="Jose\u0301", object="Sa\u0303o ")) == 1
        assert graph.as_of("2021-01-01T00:00:00Z", NEVER, subject="Jose") == ()


def test_a_name_that_no_database_can_hold_is_refused() -> None:
    for field in ("subject", "object", "id", "supersedes"):
        with pytest.raises(ValidationError, match="surrogate"):
            Claim.model_validate(FIRST.model_dump() | {field: "Ana\ud800"})
    with RelationGraph() as graph, pytest.raises(InputError, match="surrogate"):
        graph.as_of(NEVER, NEVER, subject="Ana\ud800")


@pytest.mark.parametrize(
    "moment", ["2020-01-01", "2020-01-01T00:00:00", "2020-01-01T00:00:00-03:00", "yesterday", "2020-02-30T00:00:00Z"]
)
def test_other_zones_are_refused(moment: str) -> None:
    with pytest.raises(ValidationError):
        Claim.model_validate(FIRST.model_dump() | {"valid_from": moment})
    with RelationGraph() as graph, pytest.raises(InputError, match=moment[:4]):
        graph.as_of(moment, NEVER)


def test_an_aware_datetime_of_another_offset_is_refused() -> None:
    local = datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=-3)))
    with RelationGraph() as graph, pytest.raises(InputError, match="not in UTC"):
        graph.as_of(local, NEVER)


@pytest.mark.parametrize(
    "change",
    [{"valid_to": "2019-01-01T00:00:00Z"}, {"valid_to": "2020-01-01T00:00:00Z"}, {"supersedes": "1"}, {"subject": " "}],
    ids=["ends first", "never true", "supersedes itself", "no name"],
)
def test_what_no_claim_can_be(change: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Claim.model_validate(FIRST.model_dump() | change)


def test_appending_is_idempotent_and_all_or_nothing() -> None:
    with RelationGraph() as graph:
        assert (graph.append(FIRST), graph.append(FIRST)) == (1, 0)
        with pytest.raises(InputError, match="other words"):
            graph.append(NEW, FIRST.model_copy(update={"object": "Gama"}))
        assert graph.history() == (FIRST,)


@pytest.mark.parametrize("known", ["2020-01-05", "2020-01-04"])
def test_a_correction_is_known_later_than_its_target(known: str) -> None:
    early = claim("e", "Gama", "2020-01-01", known=known, supersedes="1")
    for order in ((FIRST, early), (early, FIRST)):
        with RelationGraph() as graph, pytest.raises(InputError, match="no earlier"):
            for one in order:
                graph.append(one)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE claims SET object = 'Gama'",
        "DELETE FROM claims",
        "INSERT OR REPLACE INTO claims SELECT id, subject, kind, 'Gama', valid_from, valid_to, ingested_at, supersedes "
        "FROM claims",
    ],
)
def test_the_file_itself_refuses_a_destructive_update(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    with RelationGraph(path) as graph:
        graph.append(FIRST)
    other = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        other.execute(statement)
    other.close()
    with RelationGraph(path) as graph:
        assert graph.history() == (FIRST,)


def test_two_writers_on_one_file(tmp_path: Path) -> None:
    with RelationGraph(tmp_path / "g") as one, RelationGraph(tmp_path / "g") as two:
        one.append(FIRST)
        two.append(CLOSED, NEW)
        assert len(one.history()) == 3


def test_broken_files_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, but long enough to be read as a header of one\n" * 20)
    with pytest.raises(InputError, match="text"):
        RelationGraph(tmp_path / "text")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE facts(id)")
    other.close()
    with pytest.raises(InputError, match="no relation graph of this lab"):
        RelationGraph(tmp_path / "other")
    with pytest.raises(EnvironmentUnusable, match="make its folder"):
        RelationGraph(tmp_path / "gone" / "graph")


def test_a_damaged_row_is_an_error_and_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    with RelationGraph(path) as graph:
        graph.append(FIRST)
    raw = sqlite3.connect(path)
    raw.execute("DROP TRIGGER claims_stay")
    raw.execute("UPDATE claims SET valid_from = 'soon'")
    raw.commit()
    raw.close()
    with RelationGraph(path) as graph, pytest.raises(InputError, match="no claim"):
        graph.history()
