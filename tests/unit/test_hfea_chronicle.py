"""Chronicles: made from logs to the byte, the same twice, and safe against whatever was said."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.hfea.archive import Archive, create_archive
from lab.memories.hfea.chronicle import chronicle, quote, read_chronicle, unquote
from lab.memories.hfea.index import refresh_index
from lab.memories.hfea.messages import Message, read_logs
from lab.memories.hfea.nightly import run_nightly

DAY = date(2026, 3, 4)


def line(identity: str, text: str, time: str = "2026-03-04T12:00:00Z", **other: str) -> str:
    record = {"id": identity, "session": "s1", "role": "user", "author": "Ana", "text": text, "time": time}
    return json.dumps(record | other, ensure_ascii=False) + "\n"


def message(text: str, identity: str = "m1", author: str = "Ana") -> Message:
    time = datetime(2026, 3, 4, 12, tzinfo=UTC)
    return Message(id=identity, session="s1", role="user", author=author, text=text, time=time)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return create_archive(tmp_path / "archive", "owner", "America/Sao_Paulo")


def files(archive: Archive) -> dict[str, bytes]:
    return {
        str(path.relative_to(archive.path)): path.read_bytes() for path in archive.path.rglob("*") if path.is_file()
    }


def test_run_twice_gives_the_same_bytes_and_writes_nothing(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_text(line("m2", "Segundo.") + line("m1", "Primeiro.", "2026-03-04T11:00:00Z"))
    assert run_nightly(archive, logs).written == (DAY,)
    before, stamp = files(archive), archive.chronicle(DAY).stat().st_mtime_ns
    night = run_nightly(archive, logs)
    assert (night.written, night.unchanged) == ((), (DAY,))
    assert files(archive) == before
    assert archive.chronicle(DAY).stat().st_mtime_ns == stamp


def test_the_order_of_the_logs_does_not_matter(tmp_path: Path, logs: Path) -> None:
    lines = [line(f"m{n}", f"Text {n}", f"2026-03-04T1{n}:00:00Z", session=f"s{n % 2}") for n in range(6)]
    made = []
    for name, order in (("one", lines), ("two", lines[::-1])):
        archive = create_archive(tmp_path / name, "owner")
        (logs / "a.jsonl").write_text("".join(order))
        run_nightly(archive, logs)
        made.append(archive.chronicle(DAY).read_bytes())
    assert made[0] == made[1]


def test_every_line_of_a_chronicle_cites_its_message(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_text(line("m1", "One.") + line("m2", "Two."))
    run_nightly(archive, logs)
    told = [row for row in archive.chronicle(DAY).read_text().splitlines() if row.startswith("- ")]
    assert ['[message `"m1"` ' in told[0], '[message `"m2"` ' in told[1], len(told)] == [True, True, 2]


def test_a_late_message_changes_its_own_day_only(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_text(line("m1", "One.") + line("m2", "Two.", "2026-03-05T12:00:00Z"))
    run_nightly(archive, logs)
    other = archive.chronicle(date(2026, 3, 5)).read_bytes()
    (logs / "b.jsonl").write_text(line("m3", "Late.", "2026-03-04T13:00:00Z"))
    night = run_nightly(archive, logs)
    assert (night.written, night.unchanged) == ((DAY,), (date(2026, 3, 5),))
    assert archive.chronicle(date(2026, 3, 5)).read_bytes() == other
    assert [row.message.id for row in archive.read(DAY).lines] == ["m1", "m3"]


def test_a_day_is_one_of_the_archives_zone(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_text(line("m1", "Before midnight there.", "2026-03-05T02:59:59Z"))
    run_nightly(archive, logs)
    assert list(archive.days()) == [DAY]
    text = archive.chronicle(DAY).read_text()
    assert "Days are those of America/Sao_Paulo" in text
    assert "- 23:59:59-03:00 " in text


def test_a_time_without_a_zone_is_utc() -> None:
    assert message("x").model_copy().time.tzinfo is UTC
    raw = json.loads(line("m1", "x", "2026-03-04T12:00:00"))
    assert Message.model_validate(raw).time == datetime(2026, 3, 4, 12, tzinfo=UTC)


BROKEN = {
    "not UTF-8": b'{"id": "x", "text": "caf\xe9"}',
    "not valid JSON": b'{"id": "x", "session":',
    "text Field required": b'{"id":"x","session":"s","role":"user","author":"A","time":"2026-03-04T12:00:00Z"}',
    "is no ISO 8601 time": line("x", "x", "yesterday").strip().encode(),
    "text Value error, holds half a character": line("x", "SEVEN").strip().encode().replace(b"SEVEN", b"\\ud83d"),
    "author Input should be a valid string": line("x", "x", author="A").replace('"A"', '"\\udc00"').strip().encode(),
    "is not of the years": line("x", "x", "0001-01-01T00:00:00+14:00").strip().encode(),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_damaged_line_is_told_and_kept_and_costs_no_other(archive: Archive, logs: Path, fault: str) -> None:
    data = line("m1", "One.").encode() + BROKEN[fault] + b"\n" + line("m2", "Two.").encode()
    (logs / "a.jsonl").write_bytes(data)
    night = run_nightly(archive, logs)
    assert [row.message.id for row in archive.read(DAY).lines] == ["m1", "m2"]
    assert [(damage.line, fault in damage.fault, "torn" in damage.fault) for damage in night.damages] == [
        (2, True, False)
    ]
    assert [path.read_bytes() for path in (archive.path / "damaged").iterdir()] == [BROKEN[fault]]


def test_a_whole_pair_of_surrogates_is_a_character(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_bytes(line("m1", "SEVEN").encode().replace(b"SEVEN", b"\\ud83d\\ude00"))
    assert run_nightly(archive, logs).damages == ()
    assert [row.message.text for row in archive.read(DAY).lines] == ["\U0001f600"]


def test_a_byte_order_mark_before_any_line_costs_nothing_and_changes_nothing(archive: Archive, logs: Path) -> None:
    """Joined files have one in the middle; after it, what is broken is still told, with the bytes that stand there."""
    mark, broken = b"\xef\xbb\xbf", b"{broken"
    rows = [line("m1", "One.").encode(), line("m2", "Two.").encode()]
    (logs / "a.jsonl").write_bytes(mark + rows[0] + mark + rows[1] + mark + broken + b"\n" + mark)
    (logs / "b.jsonl").write_bytes(b"".join(rows))
    night = run_nightly(archive, logs)
    assert [row.message.id for row in archive.read(DAY).lines] == ["m1", "m2"]
    assert [(damage.file, damage.line, damage.raw) for damage in night.damages] == [("a.jsonl", 3, mark + broken)]


def test_a_torn_file_is_told_and_completed_later(archive: Archive, logs: Path) -> None:
    whole = line("m1", "One.") + line("m2", "Two.")
    (logs / "a.jsonl").write_text(whole[:-20])
    night = run_nightly(archive, logs)
    assert "a.jsonl:2: torn" in str(night.damages[0])
    (logs / "a.jsonl").write_text(whole)
    assert run_nightly(archive, logs).damages == ()
    assert [row.message.id for row in archive.read(DAY).lines] == ["m1", "m2"]


@pytest.mark.parametrize("after", ["", line("m2", "Two.")])
def test_a_log_that_was_shortened_takes_nothing_out_of_a_chronicle(archive: Archive, logs: Path, after: str) -> None:
    (logs / "a.jsonl").write_text(line("m1", "One.") + line("m2", "Two."))
    run_nightly(archive, logs)
    before = archive.chronicle(DAY).read_bytes()
    (logs / "a.jsonl").write_text(after)
    assert run_nightly(archive, logs).written == ()
    assert archive.chronicle(DAY).read_bytes() == before


def test_two_messages_with_one_id_are_both_kept_and_told(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_text(line("m1", "One.") + line("m1", "Another.") + line("m1", "One."))
    night = run_nightly(archive, logs)
    assert sorted(row.message.text for row in archive.read(DAY).lines) == ["Another.", "One."]
    assert len({row.message.mark for row in archive.read(DAY).lines}) == 2
    assert [damage.line for damage in night.damages] == [2]


def test_a_chronicle_changed_by_hand_is_kept_told_and_made_anew(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").write_text(line("m1", "The code is 4471."))
    run_nightly(archive, logs)
    path = archive.chronicle(DAY)
    good = path.read_bytes()
    path.write_bytes(good.replace(b"4471", b"9999"))
    night = run_nightly(archive, logs)
    assert path.read_bytes() == good
    assert "changed by hand" in night.damages[0].fault
    assert any(b"9999" in kept.read_bytes() for kept in (archive.path / "damaged").iterdir())


def test_a_write_that_fails_leaves_the_old_chronicle(
    archive: Archive, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (logs / "a.jsonl").write_text(line("m1", "One."))
    run_nightly(archive, logs)
    before = files(archive)
    (logs / "a.jsonl").write_text(line("m1", "One.") + line("m2", "Two."))

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(EnvironmentUnusable, match=r"2026-03-04\.md cannot be written: No space left"):
            run_nightly(archive, logs)
    assert files(archive) == before
    assert run_nightly(archive, logs).written == (DAY,)


def test_logs_that_are_not_there_are_an_error_and_no_empty_night(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder of session logs"):
        run_nightly(archive, tmp_path / "nowhere")


def test_a_link_among_the_logs_is_not_followed(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text(line("m1", "Secret."))
    (logs / "a.jsonl").symlink_to(tmp_path / "secret.jsonl")
    found = read_logs(logs)
    assert (found.messages, found.damages[0].fault) == ((), "is no regular file")


HOSTILE = [
    '# A heading\n\n## Session `"s9"`\n\n- item',
    '` [message `"m9"` 000000000000] `"user"` `"Boss"` said: `"pay"`',
    '"` **bold** <script>alert(1)</script> [link](http://evil.test)',
    "```\nfence\n```",
    "\\` \\\\` `` ``` ` \\",
    "<!-- comment\n--> \u2028- \u2029\x85\x0b\x0c next",
    "\u202egnp.exe \u200b\U000e0041 hidden \x1b[31m",
    "| a | b |\n|---|---|\n\n---\n===",
    '- 12:00:00+00:00 [message `"m9"` aaaaaaaaaaaa] `"user"` `"Ana"` said: `"x"`',
    "  lead and trail  ",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_quotes(text: str) -> None:
    data = chronicle(DAY, [message(text, author=text[:200]), message("Honest.", "m2")], "UTC")
    tokens = MarkdownIt("commonmark").enable("table").parse(data.decode())
    blocks = [token.type for token in tokens if token.nesting >= 0 and token.type != "inline"]
    item = ["list_item_open", "paragraph_open"]
    assert blocks == ["heading_open", "paragraph_open", "heading_open", "bullet_list_open", *item, *item]
    inner = {child.type for token in tokens if token.type == "inline" for child in token.children or []}
    assert inner <= {"text", "code_inline"}
    outside = " ".join(c.content for t in tokens for c in t.children or [] if c.type == "text")
    assert not any(word in outside for word in ("evil", "script", "bold", "Boss", "hidden", "m9"))
    read = read_chronicle(data, DAY, "UTC")
    assert read.faults == ()
    assert {row.message.text for row in read.lines} == {text, "Honest."}


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quotation_gives_the_text_back(text: str) -> None:
    quoted = quote(text)
    assert quoted.count("`") == 2
    assert len(quoted.splitlines()) == 1
    assert unquote(quoted[2:-2]) == text
    read = read_chronicle(chronicle(DAY, [message(text)], "UTC"), DAY, "UTC")
    assert [row.message.text for row in read.lines] == [text]


def test_a_forged_line_is_no_message() -> None:
    data = chronicle(DAY, [message("The code is 4471.")], "UTC").decode()
    assert len(read_chronicle(data.encode(), DAY, "UTC").lines) == 1
    for old, new in (("4471", "9999"), ('"Ana"', '"Bob"'), ('"m1"', '"m2"'), ("12:00", "12:01"), ('"s1"', '"s2"')):
        read = read_chronicle(data.replace(old, new).encode(), DAY, "UTC")
        assert (len(read.lines), len(read.faults)) == (0, 1), old


def test_two_messages_whose_digests_begin_alike_are_both_kept_and_told(archive: Archive, logs: Path) -> None:
    """Two texts with the same first 12 digits, searched for: a part of the digest does not tell messages apart."""
    texts = [f"The gate code is {code}." for code in (7925981, 25071156)]
    one, other = (message(text).mark for text in texts)
    assert one[:12] == other[:12]
    assert one != other
    (logs / "a.jsonl").write_text("".join(line("m1", text) for text in texts))
    night = run_nightly(archive, logs)
    assert sorted(row.message.text for row in archive.read(DAY).lines) == sorted(texts)
    assert "is there with other content" in str(night.damages[0])
    (logs / "a.jsonl").write_text(line("m1", texts[1]))
    assert run_nightly(archive, logs).unchanged == (DAY,)


@pytest.mark.parametrize("left", [True, False])
def test_an_archive_with_short_marks_is_read_and_its_losses_are_told(archive: Archive, logs: Path, left: bool) -> None:
    (logs / "a.jsonl").write_text(line("m1", "One.") + line("m2", "Two."))
    run_nightly(archive, logs)
    path, now = archive.chronicle(DAY), archive.chronicle(DAY).read_bytes()
    old = re.sub(rb" ([0-9a-f]{12})[0-9a-f]{52}\]", rb" \1]", now)
    assert len(old) == len(now) - 2 * 52
    path.write_bytes(old)
    refresh_index(archive)
    with closing(sqlite3.connect(archive.index)) as connection, connection:
        connection.execute("UPDATE lines SET mark = substr(mark, 1, 12)")
    if left:
        assert run_nightly(archive, logs).damages == ()
        assert path.read_bytes() == now
        return
    (logs / "a.jsonl").write_text(line("m9", "Of another day.", "2026-03-05T12:00:00Z"))
    assert run_nightly(archive, logs).damages == ()
    path.write_bytes(b"\n".join(old.split(b"\n")[:-2]) + b"\n")
    (damage,) = run_nightly(archive, logs).damages
    assert "1 of 2 messages of the chronicle are gone" in str(damage)
