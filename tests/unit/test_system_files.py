"""Systems from a file: the guide's own example runs, and each fault is one line that names the file."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, InputError, SystemFailed
from lab.memories.system_files import load_system_files
from lab.records import file_digest
from lab.retrieval.arms import KINDS, ArmKind, Tools, make_arms
from lab.retrieval.bench import declared_pairs
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.metrics.ties import admit

GUIDE = Path(__file__).parents[2] / "docs" / "systems.md"
FACTS = ("Clara drives a blue van", "Davi plays the cello", "Clara plays chess and drives")


def no_indexes() -> DenseIndexes:
    raise EnvironmentUnusable("no model is here", "pip install one")


TOOLS = Tools(no_indexes)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    path = tmp_path / "my_system.py"
    path.write_text(code)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "memory_store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE facts (fact_id INTEGER PRIMARY KEY, content TEXT, tags TEXT, trust_score REAL)"
        )
        connection.executemany(
            "INSERT INTO facts(content, tags, trust_score) VALUES (?, '', 0.5)", [(f,) for f in FACTS]
        )
        connection.commit()
    return path


def test_the_guides_example_is_a_system_in_under_80_lines(example: Path, database: Path) -> None:
    assert len(example.read_text().splitlines()) < 80
    kinds = load_system_files([example], KINDS)
    (arm,) = make_arms(list(kinds), TOOLS, kinds)
    assert arm.name == "shared-words"
    assert arm.settings == {"shortest": 3, "file": "my_system.py", "file_sha256": file_digest(example)}
    system = arm.make()
    system.open(database)
    ranking = system.search("who drives a van like Clara", 10)
    admit("t", ranking.hits, 10)
    assert [hit.fact_id for hit in ranking.hits] == [1, 3]
    system.close()


def broken(tmp_path: Path, code: str) -> InputError:
    path = tmp_path / "broken.py"
    path.write_text(code)
    with pytest.raises(InputError) as told:
        make_arms(list(kinds := load_system_files([path], KINDS)), TOOLS, kinds)
    assert "broken.py" in told.value.message and "\n" not in str(told.value)
    return told.value


HEAD = "from lab.retrieval.arms import ArmKind\n"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("KINDS = {\n", "line 1: SyntaxError"),
        ("\nimport a_module_that_is_not_there\n", "line 2: ModuleNotFoundError"),
        ("raise SystemExit(0)\n", "line 1: SystemExit"),
        ("x = 1\n", "defines no arms in KINDS"),
        ("KINDS = {}\n", "defines no arms in KINDS"),
        ("KINDS = {'mine': 3}\n", "is no ArmKind but of type int"),
        (HEAD + "KINDS = {'../mine': ArmKind('x', lambda t: None)}\n", "no arm can be called '../mine'"),
        (HEAD + "KINDS = {'bm25': ArmKind('x', lambda t: None)}\n", "there is an arm bm25 already"),
        (HEAD + "KINDS = {'mine': ArmKind('x', lambda t: 1 / 0)}\n", "line 2: ZeroDivisionError"),
        (HEAD + "KINDS = {'mine': ArmKind('x', lambda t: object())}\n", "object has no settings, open, search, close"),
    ],
)
def test_a_fault_is_one_line_that_names_the_file(tmp_path: Path, code: str, told: str) -> None:
    assert told in broken(tmp_path, code).message


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        load_system_files([tmp_path / "gone.py"], KINDS)


SYSTEM = """
from lab.retrieval.arms import ArmKind
class Mine:
    name = "mine"
    def settings(self):
        return {"a": SETTING}
    def open(self, database):
        pass
    def search(self, query, k):
        return ANSWER
    def close(self):
        pass
KINDS = {"mine": ArmKind("mine", lambda tools: Mine())}
"""


def made(tmp_path: Path, answer: str, setting: str = "1") -> dict[str, ArmKind]:
    path = tmp_path / "mine.py"
    path.write_text(SYSTEM.replace("ANSWER", answer).replace("SETTING", setting))
    return load_system_files([path], KINDS)


def test_an_exception_in_a_search_is_an_error_of_that_topic(tmp_path: Path) -> None:
    system = made(tmp_path, "[][k]")["mine"].make(TOOLS)
    with pytest.raises(SystemFailed, match=r"mine\.py, line 10: IndexError"):
        system.search("anything", 10)


def test_what_is_no_ranking_refuses_the_run(tmp_path: Path) -> None:
    system = made(tmp_path, "[1, 2]")["mine"].make(TOOLS)
    with pytest.raises(InputError, match="search returned a list, no Ranking"):
        system.search("anything", 10)


def test_settings_that_no_lock_can_hold_are_refused(tmp_path: Path) -> None:
    kinds = made(tmp_path, "None", setting="object()")
    with pytest.raises(InputError, match=r"mine\.py: TypeError"):
        make_arms(list(kinds), TOOLS, kinds)


def test_an_arm_that_cannot_run_is_told_and_never_silently_missing() -> None:
    lacking: list[str] = []
    arms = make_arms(["bm25", "dense", "bm25-porter"], TOOLS, KINDS, lacking.append)
    assert [arm.name for arm in arms] == ["bm25", "bm25-porter"]
    assert lacking == ["dense: no model is here — pip install one"]
    with pytest.raises(EnvironmentUnusable):
        make_arms(["bm25", "dense"], TOOLS)


def test_with_a_yardstick_every_arm_of_its_depth_is_paired_with_it() -> None:
    arms = make_arms(["plain", "bm25", "bm25-porter", "bm25-and"], TOOLS)
    assert declared_pairs(arms, "bm25") == (("plain", "bm25"), ("bm25-porter", "bm25"), ("bm25-and", "bm25"))
