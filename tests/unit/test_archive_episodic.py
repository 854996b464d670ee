"""The episodic index: whatever happens to the logs, it is the index that a fresh run over them would make."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.archive import episodic, indexing, logs
from lab.memories.archive.episodic import EpisodicIndex, evidence
from lab.memories.archive.indexing import IndexReport
from lab.memories.archive.logs import Message, Reason, write_log
from lab.memories.archive.points import document_id, point_id

HOSTILE = (
    "", " \t\n", "???", "*", '"', "'; DROP TABLE lines; --", "O'Brien", 'say "hello', "(Ana", "Ana AND", "NEAR(a b)",
    "text:Ana", "-Ana", "^Ana", "Ana*", "a\0b", "\ud800", "pve-01", "20.04", "🧠", "記憶", "{Ana}", "+ + +",
    "AND OR NOT", "x" * 10_000, " ".join(f"w{i}" for i in range(2_000)),
)  # fmt: skip


def said(name: str, text: object, session: str = "s1", **more: Any) -> bytes:
    told = {"id": name, "session": session, "role": "user", "author": "Ana", "text": text, "time": "2026-01-02"}
    return json.dumps({**told, **more}, ensure_ascii=False).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    path.mkdir()
    return path


@pytest.fixture
def index(tmp_path: Path) -> Any:
    with EpisodicIndex(tmp_path / "episodes.sqlite") as opened:
        yield opened


def counts(report: IndexReport) -> tuple[int, int, int, int, int]:
    return report.added, report.changed, report.moved, report.unchanged, report.removed


def reasons(report: IndexReport) -> list[Reason]:
    return [skipped.reason for skipped in report.skipped]


def texts(index: EpisodicIndex, query: str, limit: int = 10) -> list[str]:
    return [episode.message.text for episode in index.search(query, limit)]


def fresh(folder: Path) -> tuple[str, int]:
    """Content of an index made from nothing, and its messages."""
    with TemporaryDirectory() as scratch, EpisodicIndex(Path(scratch) / "fresh.sqlite") as made:
        report = made.index(folder)
        return made.content_digest(), report.messages


def check_words(index: EpisodicIndex) -> None:
    """FTS5 compares its index with the messages, and fails where they differ."""
    with closing(sqlite3.connect(index.path)) as connection:
        connection.execute("INSERT INTO episodes(episodes, rank) VALUES('integrity-check', 1)")


def test_messages_are_found_with_their_file_byte_and_id(folder: Path, index: EpisodicIndex) -> None:
    first, second = said("m1", "A Ana mora em São Paulo"), said("m2", "She likes tea")
    (folder / "2026").mkdir()
    (folder / "2026" / "it's.jsonl").write_bytes(first + second)
    assert counts(index.index(folder)) == (2, 0, 0, 0, 0)
    for query in ("sao paulo", "SÃO", unicodedata.normalize("NFD", "São")):
        assert texts(index, query) == ["A Ana mora em São Paulo"]
    (found,) = index.search("does she like TEA?", 5)
    assert (found.file, found.offset, found.length) == ("2026/it's.jsonl", len(first), len(second))
    assert found.message == Message.model_validate_json(second)
    assert found.point == point_id(document_id("s1", "m2"))
    assert index.episode(found.point) is not None
    assert index.episode("none") is None
    evidence(found, folder)
    check_words(index)


@pytest.mark.parametrize("change", ["other text", "shifted", "shorter", "gone"])
def test_evidence_that_a_log_no_longer_gives_is_refused(folder: Path, index: EpisodicIndex, change: str) -> None:
    log = folder / "a.jsonl"
    log.write_bytes(said("m1", "tea") + said("m2", "rum"))
    index.index(folder)
    (found,) = index.search("rum", 5)
    evidence(found, folder)
    before = log.read_bytes()
    if change == "gone":
        log.unlink()
    else:
        changed = {"other text": before.replace(b"rum", b"gin"), "shifted": b"noise\n" + before, "shorter": before[:-9]}
        log.write_bytes(changed[change])
    with pytest.raises(InputError) as caught:
        evidence(found, folder)
    assert "a.jsonl" in caught.value.message
    assert caught.value.mend


def test_indexing_again_changes_nothing(folder: Path, index: EpisodicIndex) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "tea") + b"noise\n" + said("m1", "again"))
    first = index.index(folder)
    before = index.content_digest()
    again = index.index(folder)
    assert counts(again) == (0, 0, 0, 1, 0)
    assert (again.read, again.parsed) == (1, 0)
    assert again.skipped == first.skipped
    assert index.content_digest() == before == fresh(folder)[0]


def test_every_change_is_counted_as_what_it_is(folder: Path, index: EpisodicIndex) -> None:
    log = folder / "a.jsonl"
    one, two, three = said("m1", "tea"), said("m2", "rum"), said("m3", "milk")
    steps = (
        (one + two, (2, 0, 0, 0, 0)),
        (one + two + three, (1, 0, 0, 2, 0)),  # appended
        (one + said("m2", "gin") + three, (0, 1, 0, 2, 0)),
        (said("m2", "gin") + three, (0, 0, 2, 0, 1)),  # shortened at the front
        (said("m2", "gin"), (0, 0, 0, 1, 1)),  # cut
        (b"", (0, 0, 0, 0, 1)),
    )
    for content, expected in steps:
        log.write_bytes(content)
        assert counts(index.index(folder)) == expected
        assert index.content_digest() == fresh(folder)[0]
        check_words(index)
    assert texts(index, "gin rum tea milk") == []


def test_rotation_moves_and_deletion_removes(folder: Path, index: EpisodicIndex) -> None:
    log = folder / "log.jsonl"
    log.write_bytes(said("m1", "tea") + said("m2", "rum"))
    index.index(folder)
    log.rename(folder / "log.1.jsonl")
    log.write_bytes(said("m3", "milk"))
    assert counts(index.index(folder)) == (1, 0, 2, 0, 0)
    assert index.search("rum", 1)[0].file == "log.1.jsonl"
    (folder / "log.1.jsonl").unlink()
    assert counts(index.index(folder)) == (0, 0, 0, 1, 2)
    assert texts(index, "tea rum milk") == ["milk"]
    assert index.content_digest() == fresh(folder)[0]


@pytest.mark.parametrize("settled", [False, True])
def test_a_modification_time_that_lies(
    folder: Path, index: EpisodicIndex, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    """Same size, same modification time, other content; and the other way round."""
    if settled:
        monkeypatch.setattr(indexing, "SETTLED_NS", -(10**15))
    log = folder / "a.jsonl"
    log.write_bytes(said("m1", "tea"))
    os.utime(log, ns=(10**18, 10**18))
    index.index(folder)
    same = index.index(folder)
    assert (same.read, same.parsed) == (0 if settled else 1, 0), "a log of the same times is read while they are fresh"
    time.sleep(0.02)  # longer than the clock tick of the kernel
    log.write_bytes(said("m1", "rum"))
    os.utime(log, ns=(10**18, 10**18))
    assert counts(index.index(folder)) == (0, 1, 0, 0, 0)
    time.sleep(0.02)
    log.touch()
    touched = index.index(folder)
    assert counts(touched) == (0, 0, 0, 1, 0)
    assert (touched.read, touched.parsed) == (1, 0)
    assert index.index(folder, read_all=True).read == 1


def test_bytes_that_changed_behind_all_times_are_seen_when_every_log_is_read(
    folder: Path, index: EpisodicIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "SETTLED_NS", -(10**15))
    log = folder / "a.jsonl"
    log.write_bytes(said("m1", "tea"))
    index.index(folder)
    log.write_bytes(said("m1", "rum"))
    found = log.stat()
    with closing(sqlite3.connect(index.path)) as connection, connection:
        connection.execute(
            "UPDATE files SET mtime_ns = ?, ctime_ns = ?, inode = ?",
            (found.st_mtime_ns, found.st_ctime_ns, found.st_ino),
        )
    assert counts(index.index(folder)) == (0, 0, 0, 1, 0), "as stated: nothing tells that it changed"
    assert counts(index.index(folder, read_all=True)) == (0, 1, 0, 0, 0)


def test_a_line_that_is_still_being_written_is_left_until_it_is_whole(folder: Path, index: EpisodicIndex) -> None:
    log = folder / "a.jsonl"
    first, last = said("m1", "chá"), said("m2", "記憶 🧠 rum")
    for cut in range(1, len(last)):
        log.write_bytes(first + last[:cut])
        report = index.index(folder)
        whole = cut == len(last) - 1
        assert report.messages == 1 + whole, cut
        assert reasons(report) == ([] if whole else [Reason.UNFINISHED])
    log.write_bytes(first + last)
    assert counts(index.index(folder)) == (0, 0, 0, 2, 0)
    assert index.content_digest() == fresh(folder)[0]


def test_a_torn_line_in_the_middle_is_no_unfinished_one(folder: Path, index: EpisodicIndex) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "tea")[:20] + b"\n" + said("m2", "rum"))
    report = index.index(folder)
    assert (report.messages, reasons(report)) == (1, [Reason.NO_MESSAGE])


def test_what_is_no_message_is_left_out_with_file_byte_and_reason(folder: Path, index: EpisodicIndex) -> None:
    bom = b"\xef\xbb\xbf"
    good = said("m1", "tea")
    lines = [
        (bom + good, None),
        (b"\n  \r\n", None),
        (said("m2", "caf\u00e9").decode().encode("latin-1"), Reason.NOT_UTF8),
        (bom + said("m3", "rum")[:-1] + b"\r\n", None),
        (b"null\n", Reason.NO_MESSAGE),
        (b'{"id": "m4"}\n', Reason.NO_MESSAGE),
        (said("", "no id"), Reason.NO_MESSAGE),
        (said("m5", 7), Reason.NO_MESSAGE),
        (b"\0\0\0\n", Reason.NO_MESSAGE),
        (b'{"id": "\\ud83e"' + good[9:], Reason.NO_MESSAGE),
        (said("m6", "y" * logs.MAX_LINE), Reason.TOO_LONG),
        (b"[" * 100_000 + b"\n", Reason.NO_MESSAGE),
        (said("m1", "another"), Reason.TWICE),
        (said("m7", "milk\0\x1b[31m", tool_calls=[{"x": 1}]), None),
    ]
    (folder / "a.jsonl").write_bytes(b"".join(line for line, _ in lines))
    report = index.index(folder)
    offset, expected = 0, []
    for line, reason in lines:
        expected += [(offset, reason)] if reason else []
        offset += len(line)
    assert [(each.offset, each.reason) for each in report.skipped] == expected
    assert all("\x1b" not in each.detail and "\n" not in each.detail for each in report.skipped)
    assert report.messages == 3
    assert sorted(texts(index, "tea rum milk another")) == ["milk\0\x1b[31m", "rum", "tea"]
    for episode in index.search("tea rum milk", 5):
        evidence(episode, folder)
    assert index.content_digest() == fresh(folder)[0]


def test_a_log_in_utf_16_gives_nothing_and_says_so(folder: Path, index: EpisodicIndex) -> None:
    (folder / "a.jsonl").write_bytes((said("m1", "tea") + said("m2", "rum")).decode().encode("utf-16"))
    report = index.index(folder)
    assert report.messages == 0
    assert report.skipped


def test_of_two_messages_with_one_id_the_first_in_the_order_of_files_counts(folder: Path, index: EpisodicIndex) -> None:
    (folder / "b.jsonl").write_bytes(said("m1", "rum"))
    index.index(folder)
    (folder / "a.jsonl").write_bytes(said("m1", "tea") + said("m1", "tea", session="s2"))
    report = index.index(folder)
    assert counts(report) == (1, 1, 0, 0, 0)
    assert [(each.file, each.reason, each.detail) for each in report.skipped] == [
        ("b.jsonl", Reason.TWICE, "byte 0 of a.jsonl")
    ]
    assert texts(index, "rum tea") == ["tea", "tea"]
    assert index.content_digest() == fresh(folder)[0]
    (folder / "a.jsonl").unlink()
    assert counts(index.index(folder)) == (0, 1, 0, 0, 1)
    assert texts(index, "rum tea") == ["rum"]
    composed = said("São", "composed") + said(unicodedata.normalize("NFD", "São"), "decomposed")
    (folder / "b.jsonl").write_bytes(composed)
    assert reasons(index.index(folder)) == [Reason.TWICE]


MESSAGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["tea", "rum tea", "ação", "🧠"])), max_size=5)
STEPS = st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), st.none() | MESSAGES, st.integers(0, 30)), max_size=6)


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_after_any_history_the_index_is_the_one_made_from_nothing(steps: list[Any]) -> None:
    with TemporaryDirectory() as scratch, EpisodicIndex(Path(scratch) / "episodes.sqlite") as index:
        folder = Path(scratch) / "logs"
        folder.mkdir()
        before = 0
        for name, messages, cut in steps:
            log = folder / f"{name}.jsonl"
            if messages is None:
                log.unlink(missing_ok=True)
            else:
                content = b"".join(said(each, text) for each, text in messages)
                log.write_bytes(content[: len(content) - cut])
            report = index.index(folder)
            digest, there = fresh(folder)
            assert index.content_digest() == digest
            assert report.messages == there
            assert before == report.changed + report.moved + report.unchanged + report.removed
            before = there
            check_words(index)
        with closing(sqlite3.connect(index.path)) as connection:
            (words,) = connection.execute("SELECT count(*) FROM episodes_docsize").fetchone()
        assert words == before


CRASH = """
import os, signal, sys
from pathlib import Path
from lab.memories.archive import indexing
from lab.memories.archive.episodic import EpisodicIndex

left, real = int(sys.argv[3]), indexing.read_lines

def killed(stream, told):
    global left
    for line in real(stream, told):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield line

indexing.read_lines = killed
EpisodicIndex(Path(sys.argv[1])).index(Path(sys.argv[2]))
"""


def test_a_crash_in_the_middle_leaves_the_old_index_whole(folder: Path, index: EpisodicIndex) -> None:
    for name in "ab":
        (folder / f"{name}.jsonl").write_bytes(b"".join(said(f"{name}{i}", f"old tea {i}") for i in range(50)))
    index.index(folder)
    before = index.content_digest()
    index.close()
    for name in "ab":
        # Long enough that SQLite's cache overflows into the file before the end.
        (folder / f"{name}.jsonl").write_bytes(
            b"".join(said(f"{name}{i}", f"new rum {i} " + "x" * 20_000) for i in range(300))
        )
    for lines in (0, 599):
        arguments = [sys.executable, "-c", CRASH, str(index.path), str(folder), str(lines)]
        assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    with EpisodicIndex(index.path) as again:
        assert again.content_digest() == before
        assert len(again.search("tea", 200)) == 100
        assert again.search("rum", 5) == ()
        check_words(again)
        assert counts(again.index(folder)) == (500, 100, 0, 0, 0)
        assert again.content_digest() == fresh(folder)[0]


def test_a_full_disk_is_one_line_and_leaves_the_old_index(folder: Path, index: EpisodicIndex) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "tea"))
    index.index(folder)
    before = index.content_digest()
    (folder / "b.jsonl").write_bytes(b"".join(said(f"b{i}", "rum " + "x" * 50_000) for i in range(100)))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, old[1]))
    try:
        with pytest.raises(EnvironmentUnusable, match=r"episodes\.sqlite"):
            index.index(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert index.content_digest() == before
    assert index.index(folder).added == 100


def test_two_indexers_take_turns_and_a_reader_sees_the_old_state(
    folder: Path, index: EpisodicIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "tea"))
    index.index(folder)
    monkeypatch.setattr(episodic, "WAIT_SECONDS", 0.05)
    with EpisodicIndex(index.path) as other:
        real = indexing.read_lines

        def meanwhile(*arguments: Any) -> Any:
            with pytest.raises(InputError, match="locked"):
                other.index(folder)
            assert texts(other, "tea rum") == ["tea"]
            return real(*arguments)

        monkeypatch.setattr(indexing, "read_lines", meanwhile)
        (folder / "a.jsonl").write_bytes(said("m1", "rum"))
        index.index(folder)
        assert texts(other, "tea rum") == ["rum"]


def test_what_cannot_be_read_has_not_been_deleted(
    folder: Path, index: EpisodicIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "tea"))
    index.index(folder)
    (folder / "a.jsonl").write_bytes(said("m1", "rum"))

    def broken(*_: Any) -> Any:
        raise OSError(5, "Input/output error")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(indexing, "read_lines", broken)
        report = index.index(folder)
        assert counts(report) == (0, 0, 0, 1, 0)
        assert [(each.reason, each.detail) for each in report.skipped] == [(Reason.UNREADABLE, "Input/output error")]
        assert texts(index, "tea") == ["tea"]

    def unlisted(*_: Any, onerror: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", str(folder / "inner")))
        return iter(())

    with monkeypatch.context() as patched:
        patched.setattr(indexing.os, "walk", unlisted)
        with pytest.raises(InputError, match="cannot be listed: Permission denied"):
            index.index(folder)
    report = index.index(folder)
    assert (counts(report), report.skipped) == ((0, 1, 0, 0, 0), ())
    assert index.content_digest() == fresh(folder)[0]


def test_links_pipes_and_nameless_files_are_left_out(folder: Path, index: EpisodicIndex, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_bytes(said("m1", "secret"))
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b.jsonl")).write_bytes(said("m2", "nameless"))
    (folder / "notes.txt").write_bytes(said("m3", "no log"))
    report = index.index(folder)
    assert report.messages == report.files == 0
    assert sorted(reasons(report)) == sorted([Reason.NO_FILE, Reason.NO_FILE, Reason.NO_NAME])
    assert "\x1b" not in str(report.skipped)
    (folder / "link.jsonl").unlink()
    assert sorted(reasons(index.index(folder))) == sorted([Reason.NO_FILE, Reason.NO_NAME]), (
        "each once, and none for ever"
    )


def test_a_missing_folder_is_no_empty_one(folder: Path, index: EpisodicIndex, tmp_path: Path) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "tea"))
    index.index(folder)
    with pytest.raises(InputError, match="no folder of logs at"):
        index.index(tmp_path / "none")
    assert texts(index, "tea") == ["tea"]


def test_a_file_that_is_no_index(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "noise").write_bytes(b"noise" * 1000)
    with pytest.raises(InputError, match=r"is damaged: .* delete it and index again"):
        EpisodicIndex(tmp_path / "noise")
    with closing(sqlite3.connect(tmp_path / "other")) as other, other:
        other.execute("CREATE TABLE facts(x)")
    with pytest.raises(InputError, match="is no episodic index"):
        EpisodicIndex(tmp_path / "other")
    with pytest.raises((InputError, EnvironmentUnusable), match="cannot be opened"):
        EpisodicIndex(tmp_path / "none" / "index")


def test_an_index_that_is_damaged_later_is_one_line(folder: Path, tmp_path: Path) -> None:
    (folder / "a.jsonl").write_bytes(b"".join(said(f"m{i}", f"tea {i}") for i in range(500)))
    path = tmp_path / "episodes.sqlite"
    with EpisodicIndex(path) as index:
        index.index(folder)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with EpisodicIndex(path) as index, pytest.raises(InputError, match="is damaged"):
        index.search("tea", 5)


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_no_query_breaks_it(folder: Path, index: EpisodicIndex, query: str) -> None:
    (folder / "a.jsonl").write_bytes(said("m1", "Ana O'Brien says hello to pve-01") + said("m2", "20.04 is a version"))
    index.index(folder)
    before = index.content_digest()
    assert len(index.search(query, 5)) <= 2
    assert index.search(query, 0) == ()
    assert index.content_digest() == before


def test_ties_come_whole_and_in_the_order_of_points(folder: Path, index: EpisodicIndex) -> None:
    (folder / "a.jsonl").write_bytes(
        b"".join(said(f"m{i}", "tea") for i in range(9))
        + said("best", "tea tea")
        + said("last", "tea and much more")
        + b"".join(said(f"o{i}", "rum") for i in range(30))
    )
    index.index(folder)
    found = index.search("tea", 3)
    assert [len(index.search("tea", limit)) for limit in (1, 2, 3, 10, 11, 99)] == [1, 10, 10, 10, 11, 11]
    assert found[0].message.id == "best"
    assert [episode.point for episode in found[1:]] == sorted(point_id(document_id("s1", f"m{i}")) for i in range(9))
    assert {episode.score for episode in found[1:]} == {round(found[1].score, 6)}


def test_a_log_that_is_written_is_read_back(folder: Path, index: EpisodicIndex) -> None:
    messages = [
        Message(id=f"m{i}", session="s", role="user", author="user", text=text)
        for i, text in enumerate(["line\nbreak", "\u2028", "quote\" \\ '", "", "🧠 記憶 NFD a\u0303"])
    ]
    write_log(folder / "a.jsonl", messages)
    assert index.index(folder).messages == len(messages)
    for message in messages:
        episode = index.episode(message.point)
        assert episode is not None
        assert episode.message == message
