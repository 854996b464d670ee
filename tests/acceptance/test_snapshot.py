"""The installed ``lab snapshot`` as a user has it: freeze beside a writer, verify, diff, list, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import LabCommand, Outcome
from tests.snapshot_databases import execute, make_memory, tree, writing


class Snapshots:
    """``lab snapshot`` with its snapshots in a temporary folder."""

    def __init__(self, lab: LabCommand, root: Path) -> None:
        self.lab, self.root = lab, root

    def __call__(self, *arguments: str | Path) -> Outcome:
        return self.lab("snapshot", *arguments, LAB_SNAPSHOTS=str(self.root))


@pytest.fixture
def snapshot(lab: LabCommand, tmp_path: Path) -> Snapshots:
    return Snapshots(lab, tmp_path / "snapshots")


def test_a_newcomer_freezes_verifies_compares_and_lists(
    snapshot: Snapshots, installed: LabCommand, tmp_path: Path
) -> None:
    empty = snapshot("list")
    assert empty.code == 0 and "lab snapshot freeze" in empty.out
    with writing(tmp_path / "live.db"):
        done = snapshot("freeze", tmp_path / "live.db", "--name", "live")
        assert done.code == 0, done.err
    assert "facts: " in done.out and str(snapshot.root / "live") in done.out
    source = make_memory(tmp_path / "memory_store.db")
    assert snapshot("freeze", source, "--name", "monday", "--licence", "synthetic").code == 0
    execute(source, "UPDATE facts SET trust_score = 0.9 WHERE fact_id = 3; DELETE FROM facts WHERE fact_id = 4")
    manifest = Snapshots(installed, snapshot.root)("freeze", source, "--name", "tuesday", "--json").json
    assert manifest["content"]["tables"]["facts"]["rows"] == 49 and manifest["licence"] == "not stated"
    assert json.loads((snapshot.root / "tuesday" / "manifest.json").read_text()) == manifest
    listed = snapshot("list", "--json").json
    assert [row["name"] for row in listed] == ["live", "monday", "tuesday"]
    assert "synthetic" in snapshot("list").out
    before = tree(snapshot.root)
    assert snapshot("verify", "monday", snapshot.root / "tuesday").code == 0
    shown = snapshot("diff", "monday", "tuesday")
    assert shown.code == 0 and "facts: 0 added, 1 changed, 1 gone (matched by fact_id)" in shown.out
    assert "~ fact_id=3: trust_score: 0.2 → 0.9" in shown.out
    told = snapshot("diff", "monday", "tuesday", "--json").json
    assert told["same"] is False and told["tables"][0]["rows_gone"][0]["hrr_vector"]["bytes"] == 16
    assert snapshot("diff", "monday", "monday", "--json").json == {"same": True, "changes": [], "tables": []}
    assert tree(snapshot.root) == before, "looking at snapshots leaves nothing"


def test_verify_says_what_changed_and_fails(snapshot: Snapshots, tmp_path: Path) -> None:
    snapshot("freeze", make_memory(tmp_path / "a.db"), "--name", "a")
    execute(snapshot.root / "a" / "memory.db", "DROP INDEX idx_facts_trust; DELETE FROM facts WHERE fact_id = 1")
    done = snapshot("verify", "a")
    assert done.code == 1
    assert "a: schema index idx_facts_trust: gone" in done.out and "a: rows facts: 50 → 49 rows" in done.out
    assert {change["kind"] for change in snapshot("verify", "a", "--json").json["a"]} == {"schema", "rows"}
    refused = snapshot("diff", "a", "a")
    assert refused.code == 2 and refused.is_one_clear_line() and "lab snapshot verify" in refused.err


def test_what_cannot_be_frozen_gets_one_line(snapshot: Snapshots, tmp_path: Path) -> None:
    source = make_memory(tmp_path / "a.db")
    (tmp_path / "text.db").write_text("not a database")
    (tmp_path / "half.db").write_bytes(source.read_bytes()[:9000])
    cases = [
        (("freeze", tmp_path / "text.db", "--name", "x"), "text.db is not an SQLite database"),
        (("freeze", tmp_path / "half.db", "--name", "x"), "half.db is damaged"),
        (("freeze", tmp_path / "nowhere.db", "--name", "x"), "nowhere.db"),
        (("freeze", tmp_path, "--name", "x"), "is a folder"),
        (("freeze", source, "--name", "../x"), "is no name of a snapshot"),
        (("verify", "nowhere"), "no snapshot 'nowhere'"),
        (("verify", source), "lab snapshot freeze"),
        (("diff", source, source), "is a live database"),
        (("verify", tmp_path), "manifest.json is missing"),
    ]
    for arguments, words in cases:
        done = snapshot(*arguments)
        assert done.code == 2 and done.is_one_clear_line() and words in done.err, (arguments, done.err)
    assert not tree(snapshot.root) if snapshot.root.exists() else True
    assert snapshot("freeze", source).code == 2, "a name is asked for"


def test_hostile_names_and_texts_are_inert(snapshot: Snapshots, tmp_path: Path) -> None:
    hostile = "\x1b[31m[bold]\u202e\nx"
    source = make_memory(tmp_path / f"{hostile}.db")
    execute(source, f'CREATE TABLE "{hostile}" ("{hostile}" INTEGER PRIMARY KEY, v)')
    done = snapshot("freeze", source, "--name", "a")
    execute(source, f"INSERT INTO \"{hostile}\" VALUES (1, '{hostile}'); DROP INDEX idx_facts_trust")
    outcomes = [done, snapshot("freeze", source, "--name", "b"), snapshot("diff", "a", "b"), snapshot("list")]
    outcomes += [snapshot(*words, "--json") for words in (("list",), ("diff", "a", "b"), ("verify", "a"))]
    for outcome in outcomes:
        assert outcome.code == 0, outcome.err
        assert not set(outcome.out + outcome.err) & set("\x1b\u202e")
