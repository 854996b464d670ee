"""The database of a test set: upstream's shape, our columns, the same bytes from the same facts."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, InputError
from lab.retrieval.build_database import build_database
from lab.retrieval.database import StoredRelation, read_context, read_facts, read_labels
from lab.retrieval.testset import Author, Fact, Relation
from lab.snapshots.compare import diff
from lab.snapshots.freeze import freeze
from lab.snapshots.store import Snapshot, open_snapshot
from lab.snapshots.verify import Change, Kind, verify
from tests.factstore_stores import fact

FACTS = (
    Fact(id="a", text=" Ana Souza drinks tea ", author=Author.USER, created_at="2024-05-06T10:00:00-03:00", trust=0.8),
    Fact(id="b", text='"Green Kettle" aka Bob', tags=("kitchen",), keywords=("pot", "ware"), category="tool"),
    Fact(id="c", text="Ana Souza likes 'Green Kettle'", created_at="2024-05-07"),
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    build_database(FACTS, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        first, second, third = read_facts(connection)
        assert (first.content, first.author, first.trust) == ("Ana Souza drinks tea", Author.USER, 0.8)
        assert (second.tags, second.keywords) == (("kitchen",), ("pot", "ware"))
        assert read_labels(connection) == {1: ("a",), 2: ("b",), 3: ("c",)}
        times = connection.execute("SELECT created_at, updated_at FROM facts ORDER BY fact_id").fetchall()
        assert times == [("2024-05-06 13:00:00",) * 2, (None, None), ("2024-05-07 00:00:00",) * 2]
        banks = connection.execute("SELECT bank_name, dim, fact_count FROM memory_banks ORDER BY 1").fetchall()
        assert banks == [("cat:general", 1024, 2), ("cat:tool", 1024, 1)]
        shared = connection.execute(
            "SELECT count(*) FROM fact_entities GROUP BY entity_id HAVING count(*) > 1"
        ).fetchall()
        assert shared == [(2,), (2,)]
        integrity = "INSERT INTO facts_fts(facts_fts) VALUES ('integrity-check')"
        connection.execute(integrity)
    assert third.content.startswith("Ana")


def test_the_same_facts_give_the_same_bytes_fast(tmp_path: Path) -> None:
    facts = [fact(f"Fact number {n} of Ana Souza about word{n % 91} and word{n % 17}") for n in range(517)]
    start = time.process_time()
    build_database(facts, tmp_path / "one.db")
    assert time.process_time() - start < 3.0  # 0.5 s on a quiet machine
    build_database(facts, tmp_path / "two.db")
    assert (tmp_path / "one.db").read_bytes() == (tmp_path / "two.db").read_bytes()
    build_database([*facts[:-1], fact("Another one")], tmp_path / "other.db")
    assert (tmp_path / "one.db").read_bytes() != (tmp_path / "other.db").read_bytes()


def test_a_text_that_is_there_twice_has_one_row_and_both_names(tmp_path: Path) -> None:
    build_database([Fact(id="a", text="Bye!"), Fact(id="b", text="Bye! ")], tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        assert connection.execute("SELECT label, fact_id FROM fact_labels ORDER BY 1").fetchall() == [
            ("a", 1),
            ("b", 1),
        ]


OWNS, SINGS = Relation(kind="owns", target="Green Kettle"), Relation(kind="sings_in", target="Coro Ção")


def test_the_relations_of_facts_that_share_a_row_are_joined(tmp_path: Path) -> None:
    facts = [
        Fact(id="a", text="Bye!", relations=(SINGS, OWNS)),
        Fact(id="b", text="Hello"),
        Fact(id="c", text="Bye! ", relations=(OWNS, Relation(kind="sold", target=OWNS.target))),
    ]
    build_database(facts, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        context = read_context(connection)
    stated = [(relation.kind, relation.target) for relation in context[1].relations]
    assert stated == [("owns", "Green Kettle"), ("sings_in", "Coro Ção"), ("sold", "Green Kettle")]
    assert context[2].relations == ()


def test_relations_of_a_fact_that_is_gone_are_not_read(tmp_path: Path) -> None:
    build_database([Fact(id="a", text="Bye!", relations=(OWNS,)), Fact(id="b", text="Hello")], tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        assert read_context(connection)[1].relations == (StoredRelation("owns", "Green Kettle"),)
        connection.execute("DELETE FROM facts WHERE fact_id = 1")
        assert list(read_context(connection)) == [2]


def frozen(folder: Path, name: str, facts: list[Fact]) -> Snapshot:
    database = folder / f"{name}.db"
    build_database(facts, database)
    freeze(database, folder / "snapshots", name=name, licence="synthetic")
    return open_snapshot(folder / "snapshots" / name)


def test_relations_are_content_of_a_snapshot_and_nothing_else_of_it_changes_with_them(tmp_path: Path) -> None:
    plain = [Fact(id="a", text="Ana Souza drinks tea"), Fact(id="b", text="Hello")]
    without = frozen(tmp_path, "without", plain)
    stated = frozen(tmp_path, "stated", [plain[0].model_copy(update={"relations": (OWNS,)}), plain[1]])
    again = frozen(tmp_path, "again", [plain[0].model_copy(update={"relations": (OWNS, OWNS)}), plain[1]])
    assert again.manifest.content_sha256 == stated.manifest.content_sha256 != without.manifest.content_sha256
    difference = diff(without, stated)
    assert difference.changes == ()
    assert [(table.table, table.added, table.gone, table.changed) for table in difference.tables] == [
        ("fact_relations", 1, 0, 0)
    ]
    assert difference.tables[0].rows_added == ({"fact_id": 1, "kind": "owns", "target": "Green Kettle"},)


def test_a_relation_that_is_altered_in_a_snapshot_is_named(tmp_path: Path) -> None:
    shot = frozen(tmp_path, "shot", [Fact(id="a", text="Hello", relations=(OWNS,))])
    assert verify(shot.folder) == ()
    shot.database.chmod(0o644)
    with closing(sqlite3.connect(shot.database)) as connection:
        connection.execute("UPDATE fact_relations SET target = 'Red Kettle'")
        connection.commit()
    assert verify(shot.folder) == (Change(Kind.ROWS, "fact_relations", "1 row as before, other contents"),)


@pytest.mark.parametrize("blank", [{"kind": " ", "target": "x"}, {"kind": "owns", "target": ""}])
def test_a_relation_without_words_is_none(blank: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Relation.model_validate(blank)


@pytest.mark.parametrize(
    "wrong",
    [Fact(id="a", text="x", created_at="yesterday"), Fact(id="a", text="x", tags=("a,b",)), None],
    ids=["time", "comma", "folder"],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, wrong: Fact | None) -> None:
    path = tmp_path / "x.db" if wrong else tmp_path / "none" / "x.db"
    with pytest.raises(InputError if wrong else EnvironmentUnusable):
        build_database([wrong] if wrong else FACTS, path)
    assert not path.exists()


def test_an_existing_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("mine")
    with pytest.raises(InputError, match="already"):
        build_database(FACTS, tmp_path / "x.db")
    assert (tmp_path / "x.db").read_text() == "mine"
