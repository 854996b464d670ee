"""A set's folder is loaded as it was saved, and a broken one is told with file, line and mend."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.errors import InputError
from lab.retrieval.data.load import MAX_FAULTS, check_set, load_set, save_set, set_folders
from lab.retrieval.testset import Author, Purpose

SETS = Path(__file__).parents[1] / "fixtures" / "sets"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return shutil.copytree(SETS / "good", tmp_path / "good")


def test_a_good_set() -> None:
    found = load_set(SETS / "good")
    assert (found.name, found.purpose, found.licence) == ("good", Purpose.DEVELOPMENT, "synthetic")
    facts = found.stores["main"]
    assert [fact.id for fact in facts] == ["f1", "f2", "f3", "f4"]
    assert facts[3].author is Author.THIRD_PARTY
    assert facts[2].supersedes == "f2"
    assert found.qrels == {"t1": {"f1"}, "t2": {"f3"}}
    assert [found.answerable(topic) for topic in found.topics] == [True, True, False]


def test_several_stores_and_no_set_yaml() -> None:
    found = load_set(SETS / "two-stores")
    assert (found.name, found.purpose) == ("two-stores", Purpose.EXTERNAL)
    assert {store: [fact.id for fact in facts] for store, facts in found.stores.items()} == {
        "harbour": ["a1"],
        "attic": ["b1"],
    }
    assert type(found.stores["attic"][0]).__name__ == "Fact"


@pytest.mark.parametrize("name", ["good", "two-stores"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    first = load_set(SETS / name)
    save_set(first, tmp_path / "copy")
    second = load_set(tmp_path / "copy")
    assert second == first
    assert second.digest() == first.digest()


def test_what_editors_add_is_tolerated(good: Path) -> None:
    before = load_set(good).digest()
    for name in ("facts.jsonl", "topics.jsonl", "qrels.tsv", "set.yaml"):
        data = (good / name).read_bytes().replace(b"\n", b"\r\n\r\n" if name != "set.yaml" else b"\r\n")
        (good / name).write_bytes(b"\xef\xbb\xbf" + data)
    assert load_set(good).digest() == before


def test_columns_apart_by_blanks(good: Path) -> None:
    (good / "qrels.tsv").write_text("t1   0  f1 1\nt2 Q0 f3 2\n")
    assert load_set(good).qrels == {"t1": {"f1"}, "t2": {"f3"}}


def line(name: str, number: int, text: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        lines[number - 1] = text
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    return change


def content(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


FACT = '{"id": "f9", "text": "x"'
BROKEN: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "bad JSON": (line("facts.jsonl", 2, '{"id": "f2", '), "facts.jsonl:2: not valid JSON", "one JSON object a line"),
    "no object": (line("facts.jsonl", 2, "[1, 2]"), "facts.jsonl:2: the line", "docs/test-sets.md"),
    "deep": (line("facts.jsonl", 2, "[" * 100_000), "facts.jsonl:2: not valid JSON", "one JSON object a line"),
    "unknown field": (line("facts.jsonl", 1, FACT + ', "entity": []}'), "entity is not a known field", "entities?"),
    "missing field": (line("topics.jsonl", 1, '{"id": "t1"}'), "topics.jsonl:1: text is missing", "add the field text"),
    "wrong kind": (line("facts.jsonl", 1, FACT + ', "trust": "high"}'), "facts.jsonl:1: trust", "docs/test-sets.md"),
    "out of range": (line("facts.jsonl", 1, FACT + ', "trust": 1.5}'), "facts.jsonl:1: trust", "docs/test-sets.md"),
    "not a number": (line("facts.jsonl", 1, FACT + ', "trust": NaN}'), "facts.jsonl:1: trust", "docs/test-sets.md"),
    "unknown author": (line("facts.jsonl", 1, FACT + ', "author": "me"}'), "facts.jsonl:1: author", "docs/test-sets"),
    "blank text": (line("facts.jsonl", 1, '{"id": "f1", "text": " "}'), "facts.jsonl:1: text is blank", "mend"),
    "blank id": (line("facts.jsonl", 1, '{"id": "f 1", "text": "x"}'), "holds white space", "mend"),
    "escaped NUL": (
        line("facts.jsonl", 1, r'{"id": "f1", "text": "a\u0000b"}'),
        "facts.jsonl:1: holds an escaped NUL",
        "",
    ),
    "half a pair": (line("facts.jsonl", 1, r'{"id": "f1", "text": "\ud800"}'), "facts.jsonl:1: not valid JSON", ""),
    "no time": (line("facts.jsonl", 1, FACT + ', "created_at": "May"}'), "'May' is no ISO 8601 time", "mend"),
    "no UTC": (line("facts.jsonl", 1, FACT + ', "created_at": "2026-01-01T00:00:00-03:00"}'), "is not in UTC", "mend"),
    "comma in a tag": (line("facts.jsonl", 1, FACT + ', "tags": ["a,b"]}'), "facts.jsonl:1: the tag 'a,b'", "mend"),
    "name of all classes": (
        line("topics.jsonl", 1, '{"id": "t1", "text": "x", "topic_class": "overall"}'),
        "topics.jsonl:1: topic_class overall is the name of all",
        "mend",
    ),
    "long store": (
        line("facts.jsonl", 1, FACT + f', "store": "{"s" * 65}"}}'),
        "facts.jsonl:1: store",
        "docs/test-sets",
    ),
    "doubled id": (line("facts.jsonl", 4, '{"id": "f1", "text": "x"}'), "f1 is there twice, first on line 1", "rename"),
    "doubled topic": (line("topics.jsonl", 3, '{"id": "t1", "text": "x"}'), "topics.jsonl:3: the id t1", "rename"),
    "dangling link": (line("facts.jsonl", 3, FACT + ', "supersedes": "f77"}'), "supersedes f77", "older fact's id"),
    "unknown store": (line("topics.jsonl", 1, '{"id": "t1", "text": "x", "store": "s"}'), "asks store s", "main"),
    "unknown topic": (line("qrels.tsv", 2, "t9\t0\tf3\t1"), "qrels.tsv:2: topic t9 is not in", "mend the id"),
    "unknown fact": (line("qrels.tsv", 2, "t2\t0\tf9\t1"), "qrels.tsv:2: fact f9 is not in", "mend the id"),
    "three columns": (line("qrels.tsv", 2, "t2\tf3\t1"), "qrels.tsv:2: 3 columns instead of four", "topic, 0, fact"),
    "no number": (line("qrels.tsv", 2, "t2\t0\tf3\tyes"), "qrels.tsv:2: relevance 'yes' is not", "write 1"),
    "a fraction": (line("qrels.tsv", 2, "t2\t0\tf3\t0.5"), "relevance '0.5' is not a whole number", "write 1"),
    "judged twice": (line("qrels.tsv", 3, "t2\t0\tf3\t0"), "qrels.tsv:3: topic t2 and fact f3 are judged", "remove"),
    "nothing relevant": (content("qrels.tsv", b"t1\t0\tf1\t0\n"), "no fact answers any topic", "write:"),
    "NUL": (content("facts.jsonl", b'{"id": "f1", "text": "x"}\n\0\n'), "facts.jsonl:2: holds a NUL byte", "UTF-8"),
    "not UTF-8": (
        content("topics.jsonl", b'{"id": "t1", "text": "x"}\n"\xe9"\n'),
        "topics.jsonl:2: not UTF-8",
        "save the file",
    ),
    "UTF-16": (content("facts.jsonl", "{}".encode("utf-16")), "facts.jsonl:1:", "UTF-8"),
    "empty facts": (content("facts.jsonl", b""), "facts.jsonl:1: the file is empty", "one fact a line"),
    "blank topics": (content("topics.jsonl", b"\n \n"), "topics.jsonl:1: the file is empty", "one topic a line"),
    "no file": (lambda folder: (folder / "qrels.tsv").unlink(), "qrels.tsv:1: no such file", "check the path"),
    "folder for file": (
        lambda folder: ((folder / "facts.jsonl").unlink(), (folder / "facts.jsonl").mkdir()),
        "facts.jsonl:1: a folder stands where a file should",
        "put the file",
    ),
    "pipe for file": (
        lambda folder: ((folder / "facts.jsonl").unlink(), os.mkfifo(folder / "facts.jsonl")),
        "facts.jsonl:1: not a regular file",
        "plain file",
    ),
    "head no YAML": (content("set.yaml", b"name: good\n\n\ntitle: [\n"), "set.yaml:4: not valid YAML", "mend the YAML"),
    "head unknown field": (
        content("set.yaml", b"name: good\nlicense: MIT\n"),
        "set.yaml:2: license is not a known",
        "licence",
    ),
    "head bad name": (content("set.yaml", b"title: x\nname: Not Good\n"), "set.yaml:2: name", "docs/test-sets.md"),
    "head long name": (content("set.yaml", b"name: " + b"a" * 65), "set.yaml:1: name", "docs/test-sets.md"),
    "head no fields": (content("set.yaml", b"- a\n"), "set.yaml:1: holds no fields", "name, title"),
    "head deep": (content("set.yaml", b"[" * 1_000), "set.yaml:1: not usable YAML", "plain fields"),
    "head large": (content("set.yaml", b"#" * 20_000), "set.yaml:1: larger than 16 KiB", "shorten"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_sets(case: str, good: Path) -> None:
    change, fault, mend = BROKEN[case]
    change(good)
    with pytest.raises(InputError) as caught:
        load_set(good)
    assert fault in caught.value.message
    assert mend in caught.value.mend
    assert str(good) in caught.value.message
    assert "\n" not in str(caught.value)
    assert check_set(good)[0].message in caught.value.message


@pytest.mark.parametrize(("name", "fault"), [("facts.jsonl", "is a file, not the folder"), ("none", "no such folder")])
def test_no_folder(good: Path, name: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        load_set(good / name)


def test_every_fault_is_told_but_not_without_end(good: Path) -> None:
    line("facts.jsonl", 1, "{")(good)
    line("topics.jsonl", 1, "{}")(good)
    faults = check_set(good)
    assert [(Path(f.file).name, f.line) for f in faults] == [("facts.jsonl", 1), ("topics.jsonl", 1)]
    with pytest.raises(InputError, match=r"\(and 1 more fault\)"):
        load_set(good)
    (good / "facts.jsonl").write_text("{\n" * 500)
    faults = check_set(good)
    assert len(faults) == MAX_FAULTS
    assert "and 472 more faults" in faults[-1].message


def test_hostile_text_reaches_no_terminal(good: Path) -> None:
    (good / "qrels.tsv").write_text("t1\x1b[2J\t0\tf1\t1\n")
    assert "\x1b" not in str(check_set(good)[0])


def test_a_topic_is_not_answered_from_another_store(tmp_path: Path) -> None:
    folder = shutil.copytree(SETS / "two-stores", tmp_path / "set")
    (folder / "qrels.tsv").write_text("t1\t0\ta1\t1\nt1\t0\tb1\t1\n")
    with pytest.raises(InputError, match=r"qrels.tsv:2: fact b1 is in store attic, topic t1 asks harbour"):
        load_set(folder)


def test_saving_overwrites_nothing_and_refuses_ids_that_columns_cannot_carry(good: Path, tmp_path: Path) -> None:
    found = load_set(good)
    with pytest.raises(InputError, match="is not empty"):
        save_set(found, good)
    fact = found.stores["main"][0].model_copy(update={"id": "two words"})
    with pytest.raises(InputError, match="white space"):
        save_set(found.model_copy(update={"stores": {"main": (fact,)}}), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_lint_looks_at_the_sets(good: Path, tmp_path: Path) -> None:
    scenarios = Path(__file__).parents[2] / "scenarios"
    place = tmp_path / "scenarios"
    shutil.copytree(scenarios / "F1", place / "F1")
    (place / "retrieval" / "schema").mkdir(parents=True)
    good.rename(place / "retrieval" / "mine")
    assert [folder.name for folder in set_folders(place / "retrieval")] == ["mine"]
    before = json.loads(CliRunner().invoke(app, ["lint", "--scenarios", str(place), "--json"]).stdout)
    line("qrels.tsv", 1, "t1\t0\tf1\tmaybe")(place / "retrieval" / "mine")
    after = json.loads(CliRunner().invoke(app, ["lint", "--scenarios", str(place), "--json"]).stdout)
    (new,) = [problem for problem in after if problem not in before]
    assert new["file"].endswith("mine/qrels.tsv")
    assert new["line"] == 1
    assert new["message"] == "relevance 'maybe' is not a whole number"
    assert new["mend"]
