"""The archive's folder: who may read it, what the index takes, retention, backup and restore."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.hfea.archive import (
    AccessRefused,
    Archive,
    check_private,
    create_archive,
    open_archive,
    times_opened,
)
from lab.memories.hfea.backup import NewerData, back_up, restore, verify_backup
from lab.memories.hfea.index import ArchiveChanged, ArchiveSearch, refresh_index
from lab.memories.hfea.nightly import run_nightly
from lab.memories.hfea.retention import apply_retention, removals

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
OWNER = "owner"


def tell(logs: Path, **texts: str) -> None:
    """Writes a log with one message a day: ``d04="text"`` is said on 4 March 2026."""
    logs.mkdir(exist_ok=True)
    with (logs / "a.jsonl").open("a") as stream:
        for day, text in texts.items():
            time = f"2026-03-{day[1:]}T12:00:00Z"
            record = {"id": day, "session": "s1", "role": "user", "author": "Ana", "text": text, "time": time}
            stream.write(json.dumps(record) + "\n")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    tell(tmp_path / "logs", d04="The boiler is a Solaris.", d05="The gate code is 4471.", d20="The roof leaks.")
    return tmp_path / "logs"


@pytest.fixture
def archive(tmp_path: Path, logs: Path) -> Archive:
    archive = create_archive(tmp_path / "archive", OWNER)
    run_nightly(archive, logs)
    return archive


def found(archive: Archive, *terms: str) -> list[str]:
    return [hit.line.message.id for hit in ArchiveSearch(archive).search(terms, 10)]


def modes(path: Path) -> Iterator[int]:
    for place in (path, *path.rglob("*")):
        yield stat.S_IMODE(place.stat().st_mode)


def test_everything_is_private_whatever_the_umask(tmp_path: Path, logs: Path) -> None:
    old = os.umask(0)
    try:
        archive = create_archive(tmp_path / "open", OWNER)
        run_nightly(archive, logs)
        apply_retention(archive, 1, date(2026, 3, 20))
        back_up(archive, tmp_path / "backup", NOW)
    finally:
        os.umask(old)
    assert set(modes(archive.path)) | set(modes(tmp_path / "backup")) == {0o700, 0o600}
    check_private(tmp_path / "backup")


def test_only_the_owner_opens_it_and_every_opening_counts(archive: Archive) -> None:
    before = times_opened(archive.path)
    with pytest.raises(AccessRefused, match="agent intruder may not read"):
        open_archive(archive.path, "intruder")
    assert times_opened(archive.path) == before
    open_archive(archive.path, OWNER)
    assert times_opened(archive.path) == before + 1


@pytest.mark.parametrize("name", [".", "index.db", "chronicles", "chronicles/2026-03-04.md", "archive.json"])
def test_a_wider_mode_is_refused(archive: Archive, name: str) -> None:
    place = archive.path / name
    place.chmod(stat.S_IMODE(place.stat().st_mode) | 0o040)
    with pytest.raises(AccessRefused, match=r"has mode 0(640|740) — chmod 0[67]00 it"):
        open_archive(archive.path, OWNER)


def test_a_link_in_the_archive_is_refused(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("x")
    (archive.path / "chronicles" / "2026-03-06.md").symlink_to(tmp_path / "other.md")
    with pytest.raises(AccessRefused, match="neither a folder nor a file"):
        open_archive(archive.path, OWNER)


def test_what_is_no_archive_is_told(tmp_path: Path, archive: Archive) -> None:
    with pytest.raises(InputError, match="no archive at"):
        open_archive(tmp_path, OWNER)
    with pytest.raises(InputError, match="is there already"):
        create_archive(archive.path, OWNER)
    with pytest.raises(InputError, match="is no time zone"):
        create_archive(tmp_path / "new", OWNER, "Mars/Olympus")
    (archive.path / "archive.json").write_text("{}")
    with pytest.raises(InputError, match=r"archive\.json is damaged"):
        open_archive(archive.path, OWNER)


def test_the_index_follows_the_chronicles_day_by_day(archive: Archive, logs: Path) -> None:
    assert found(archive, "boiler", "gate") == ["d05", "d04"] or found(archive, "boiler", "gate") == ["d04", "d05"]
    assert refresh_index(archive) == ()
    tell(logs, d21="A new boiler came.")
    run_nightly(archive, logs)
    assert set(found(archive, "boiler")) == {"d04", "d21"}
    archive.chronicle(date(2026, 3, 4)).unlink()
    with pytest.raises(ArchiveChanged):
        found(archive, "boiler")
    assert refresh_index(archive) == (date(2026, 3, 4),)
    assert found(archive, "boiler") == ["d21"]


def test_a_chronicle_changed_after_indexing_is_no_evidence(archive: Archive) -> None:
    path = archive.chronicle(date(2026, 3, 5))
    path.write_bytes(path.read_bytes().replace(b"4471", b"9999"))
    with pytest.raises(ArchiveChanged, match=r"2026-03-05\.md is not the chronicle that was indexed"):
        found(archive, "gate")
    assert found(archive, "boiler") == ["d04"]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def at_a_line(data: bytes) -> bytes:
    """What is left has no fault in itself: only the index knows that there was more."""
    return b"".join(data.splitlines(keepends=True)[:-1])


def changed(data: bytes) -> bytes:
    return data.replace(b"4471", b"9999")


HARMS = {"cut": cut, "cut at a line": at_a_line, "changed": changed, "emptied": lambda _: b"", "removed": None}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("left", ["no log", "the log of another day"])
def test_a_loss_that_no_log_gives_back_is_told_every_night_and_nothing_is_overwritten(
    archive: Archive, logs: Path, harm: str, left: str
) -> None:
    day = date(2026, 3, 5)
    path = archive.chronicle(day)
    good = path.read_bytes()
    (logs / "a.jsonl").unlink()
    if left != "no log":
        tell(logs, d20="The roof leaks.")
    if act := HARMS[harm]:
        path.write_bytes(act(good))
    else:
        path.unlink()
    harmed, others = archive.bytes_of(day), {d: p.read_bytes() for d, p in archive.days().items() if d != day}
    for _ in range(2):
        (damage,) = run_nightly(archive, logs).damages
        assert damage.file == path.name and "1 of 1 messages of the chronicle are gone" in damage.fault
        assert archive.bytes_of(day) == harmed
        with pytest.raises(ArchiveChanged, match="restore a backup"):
            found(archive, "gate")
    assert [kept.read_bytes() for kept in (archive.path / "damaged").iterdir()] == ([harmed] if harmed else [])
    assert {d: p.read_bytes() for d, p in archive.days().items() if d != day} == others
    assert found(archive, "boiler") == ["d04"]
    path.write_bytes(good)
    path.chmod(0o600)
    assert run_nightly(archive, logs).damages == ()
    assert found(archive, "gate") == ["d05"]


def test_logs_that_give_back_a_part_only_do_not_hide_what_is_gone(archive: Archive, logs: Path) -> None:
    tell(logs, d05="The gate code is 4471.")
    with (logs / "a.jsonl").open("a") as stream:
        stream.write(
            (logs / "a.jsonl").read_text().splitlines()[1].replace("d05", "late").replace("gate", "door") + "\n"
        )
    run_nightly(archive, logs)
    (logs / "a.jsonl").unlink()
    tell(logs, d05="The gate code is 4471.")
    archive.chronicle(date(2026, 3, 5)).unlink()
    (damage,) = run_nightly(archive, logs).damages
    assert "1 of 2 messages of the chronicle are gone" in damage.fault


def test_a_loss_that_is_taken_as_it_is_is_told_no_more(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").unlink()
    archive.chronicle(date(2026, 3, 5)).unlink()
    assert run_nightly(archive, logs).damages
    assert refresh_index(archive) == (date(2026, 3, 5),)
    assert run_nightly(archive, logs).damages == ()


def test_a_damaged_chronicle_that_no_index_knows_is_told_once_and_the_rest_of_it_found(
    archive: Archive, logs: Path
) -> None:
    archive.index.unlink()
    (logs / "a.jsonl").unlink()
    path = archive.chronicle(date(2026, 3, 5))
    path.write_bytes(path.read_bytes() + b"- a line of nobody's\n")
    (damage,) = run_nightly(archive, logs).damages
    assert "is not as it was written" in damage.fault
    assert found(archive, "gate") == ["d05"]


def test_retention_does_not_hide_what_is_gone_and_keeps_no_word_of_it(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").unlink()
    archive.chronicle(date(2026, 3, 5)).unlink()
    assert apply_retention(archive, 26, date(2026, 3, 31))
    assert b"gate" not in archive.index.read_bytes()
    (damage,) = run_nightly(archive, logs).damages
    assert (damage.file, "1 of 1 messages" in damage.fault) == ("2026-03-05.md", True)
    assert found(archive, "leaks") == ["d20"]
    assert apply_retention(archive, 20, date(2026, 3, 31)) == ()
    assert run_nightly(archive, logs).damages == (), "it would have been removed by now"


def test_the_index_keeps_no_word_of_a_lost_chronicle_beyond_retention(archive: Archive, logs: Path) -> None:
    (logs / "a.jsonl").unlink()
    archive.chronicle(date(2026, 3, 4)).unlink()
    assert run_nightly(archive, logs).damages
    assert b"solaris" in archive.index.read_bytes()
    assert apply_retention(archive, 26, date(2026, 3, 31)) == ()
    assert b"solaris" not in archive.index.read_bytes()
    assert run_nightly(archive, logs).damages == ()


@pytest.mark.parametrize("keep", [24, 26])
def test_what_retention_removed_is_no_loss(archive: Archive, logs: Path, keep: int) -> None:
    index = archive.index.read_bytes()
    apply_retention(archive, keep, date(2026, 3, 31))
    assert run_nightly(archive, logs).damages == ()
    archive.index.write_bytes(index)  # as after a removal that was cut off before it came to the index
    assert run_nightly(archive, logs).damages == ()


def test_a_run_that_was_cut_off_before_it_indexed_is_no_loss(
    archive: Archive, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(logs, d05="The gate code is 4472 now.")
    with monkeypatch.context() as patch:
        patch.setattr("lab.memories.hfea.nightly.refresh_index", lambda *_, **__: None)
        run_nightly(archive, logs)
    (logs / "a.jsonl").unlink()
    assert run_nightly(archive, logs).damages == ()
    assert len(found(archive, "gate")) == 2


@pytest.mark.parametrize("data", [b"no database at all, but long enough to be looked at" * 40, b""])
def test_a_damaged_index_is_made_anew(archive: Archive, data: bytes) -> None:
    archive.index.write_bytes(data)
    refresh_index(archive)
    assert found(archive, "boiler") == ["d04"]


def test_an_archive_without_an_index_is_told(archive: Archive) -> None:
    archive.index.unlink()
    with pytest.raises(InputError, match="has no index"):
        found(archive, "boiler")


@pytest.mark.parametrize("query", ['"', "a OR b", "NEAR(", "text:boiler", "c++", "*", "", "''; DROP TABLE lines"])
def test_no_query_is_syntax(archive: Archive, query: str) -> None:
    found(archive, query)
    assert found(archive, "boiler") == ["d04"]


def test_retention_removes_only_what_is_older_and_logs_it(archive: Archive, logs: Path) -> None:
    assert apply_retention(archive, 27, date(2026, 3, 31)) == ()
    gone = apply_retention(archive, 26, date(2026, 3, 31))
    assert [removal.file for removal in gone] == ["chronicles/2026-03-04.md"]
    assert list(archive.days()) == [date(2026, 3, 5), date(2026, 3, 20)]
    assert removals(archive) == gone
    assert found(archive, "boiler") == []
    # The index holds folded words, also in pages of rows that were deleted.
    assert b"solaris" not in b"".join(path.read_bytes() for path in archive.path.rglob("*") if path.is_file()).lower()


def test_no_page_of_the_index_keeps_removed_words(archive: Archive, logs: Path) -> None:
    tell(logs, d06=" ".join(f"zebrafish{n}" for n in range(4000)))
    run_nightly(archive, logs)
    assert b"zebrafish" in archive.index.read_bytes()
    apply_retention(archive, 24, date(2026, 3, 31))
    assert b"zebrafish" not in archive.index.read_bytes()


def test_what_retention_removed_does_not_come_back(archive: Archive, logs: Path) -> None:
    apply_retention(archive, 26, date(2026, 3, 31))
    night = run_nightly(archive, logs)
    assert night.expired == (date(2026, 3, 4),)
    assert found(archive, "boiler") == []


def test_a_removal_that_was_cut_off_is_finished(archive: Archive) -> None:
    path = archive.chronicle(date(2026, 3, 4))
    data = path.read_bytes()
    first = apply_retention(archive, 26, date(2026, 3, 31))
    path.write_bytes(data)
    path.chmod(0o600)
    assert apply_retention(archive, 26, date(2026, 3, 31)) == first
    assert not path.exists()
    assert removals(archive) == first


def test_damaged_bytes_age_too(archive: Archive, logs: Path) -> None:
    with (logs / "a.jsonl").open("ab") as stream:
        stream.write(b"{torn")
    run_nightly(archive, logs)
    (kept,) = (archive.path / "damaged").iterdir()
    os.utime(kept, (0, 0))
    assert [removal.file for removal in apply_retention(archive, 300, date(2026, 3, 31))] == [f"damaged/{kept.name}"]
    assert not kept.exists()


@pytest.mark.parametrize("name", ["chronicles/.2026-03-04.md.part", "damaged/.0123.raw.part"])
def test_retention_removes_what_a_killed_writer_left(archive: Archive, name: str) -> None:
    part = archive.path / name
    part.write_bytes(b"The boiler is a Solaris.")
    part.chmod(0o600)
    before = set(archive.days())
    assert apply_retention(archive, 300, date(2026, 3, 31)) == ()
    assert not part.exists()
    assert set(archive.days()) == before


def test_retention_refuses_the_present_and_a_damaged_log(archive: Archive) -> None:
    with pytest.raises(InputError, match="would remove the present"):
        apply_retention(archive, 0, date(2026, 3, 31))
    (archive.path / "removed.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"removed\.jsonl is damaged"):
        apply_retention(archive, 10, date(2026, 3, 31))


def test_a_backup_gives_the_archive_back(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup", NOW)
    before = {day: path.read_bytes() for day, path in archive.days().items()}
    for path in archive.path.rglob("*"):
        if path.is_file():
            path.unlink()
    for folder in ("chronicles", "damaged", "."):
        (archive.path / folder).rmdir() if folder != "." else archive.path.rmdir()
    done = restore(tmp_path / "backup", archive.path, OWNER)
    assert (done.lost, done.kept) == ((), None)
    assert {day: path.read_bytes() for day, path in done.archive.days().items()} == before
    assert found(done.archive, "boiler") == ["d04"]


def test_a_backup_is_never_restored_over_newer_data_unsaid(archive: Archive, logs: Path, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup", NOW)
    tell(logs, d05="A second thing.", d22="Something new.")
    run_nightly(archive, logs)
    before = {day: path.read_bytes() for day, path in archive.days().items()}
    with pytest.raises(NewerData, match="2026-03-05: 1 messages that the backup lacks; 2026-03-22: 1 messages"):
        restore(tmp_path / "backup", archive.path, OWNER)
    assert {day: path.read_bytes() for day, path in archive.days().items()} == before
    done = restore(tmp_path / "backup", archive.path, OWNER, over_newer=True)
    assert len(done.lost) == 2
    assert done.kept is not None
    assert (done.kept / "chronicles" / "2026-03-22.md").read_bytes() == before[date(2026, 3, 22)]
    assert date(2026, 3, 22) not in done.archive.days()


def test_an_equal_backup_is_restored_without_asking(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup", NOW)
    assert restore(tmp_path / "backup", archive.path, OWNER).lost == ()


def test_what_retention_removed_is_not_restored_unsaid(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup", NOW)
    apply_retention(archive, 26, date(2026, 3, 31))
    with pytest.raises(NewerData, match="removed by retention since"):
        restore(tmp_path / "backup", archive.path, OWNER)


@pytest.mark.parametrize("harm", ["changed", "missing", "added", "open", "no manifest", "broken manifest"])
def test_a_harmed_backup_is_refused_and_the_archive_untouched(archive: Archive, tmp_path: Path, harm: str) -> None:
    backup = tmp_path / "backup"
    back_up(archive, backup, NOW)
    assert verify_backup(backup).owner == OWNER
    target = backup / "chronicles" / "2026-03-05.md"
    if harm == "changed":
        target.write_bytes(target.read_bytes().replace(b"4471", b"4472"))
    elif harm == "missing":
        target.unlink()
    elif harm == "added":
        (backup / "chronicles" / "2026-03-06.md").touch(0o600)
    elif harm == "open":
        target.chmod(0o644)
    elif harm == "no manifest":
        (backup / "manifest.json").unlink()
    else:
        (backup / "manifest.json").write_text("[")
    before = {path: path.read_bytes() for path in archive.path.rglob("*") if path.is_file()}
    with pytest.raises(InputError):
        verify_backup(backup)
    with pytest.raises(InputError):
        restore(backup, archive.path, OWNER, over_newer=True)
    assert {path: path.read_bytes() for path in archive.path.rglob("*") if path.is_file()} == before


def test_another_agent_restores_nothing(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup", NOW)
    with pytest.raises(AccessRefused):
        restore(tmp_path / "backup", tmp_path / "elsewhere", "intruder")
    assert not (tmp_path / "elsewhere").exists()


def test_a_backup_overwrites_nothing_and_lies_outside(archive: Archive, tmp_path: Path) -> None:
    digest = back_up(archive, tmp_path / "backup", NOW)
    assert back_up(archive, tmp_path / "again", NOW) == digest
    with pytest.raises(InputError, match="is there already"):
        back_up(archive, tmp_path / "backup", NOW)
    with pytest.raises(InputError, match="lies within the archive"):
        back_up(archive, archive.path / "backup", NOW)


def test_a_link_that_appears_after_opening_is_not_followed(archive: Archive, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not of the archive")
    secret.chmod(0o600)
    day = date(2026, 3, 4)
    archive.chronicle(day).unlink()
    archive.chronicle(day).symlink_to(secret)
    with pytest.raises(AccessRefused, match="is neither a folder nor a file"):
        back_up(archive, tmp_path / "backup", NOW)
    with pytest.raises(AccessRefused, match="is a link"):
        archive.bytes_of(day)


def test_a_link_that_appears_while_it_is_copied_is_not_followed(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_then_lose(path: Path) -> None:
        check_private(path)
        archive.chronicle(date(2026, 3, 4)).unlink()
        archive.chronicle(date(2026, 3, 4)).symlink_to(tmp_path / "logs" / "a.jsonl")

    monkeypatch.setattr("lab.memories.hfea.backup.check_private", check_then_lose)
    with pytest.raises(AccessRefused, match="is a link"):
        back_up(archive, tmp_path / "backup", NOW)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "logs"]


def test_two_writers_lose_nothing(archive: Archive, logs: Path, tmp_path: Path) -> None:
    tell(tmp_path / "more", d04="Another of the fourth.", d23="A later one.")
    with ThreadPoolExecutor(2) as pool:
        for night in [pool.submit(run_nightly, archive, folder) for folder in (logs, tmp_path / "more") * 4]:
            night.result()
    told = [line.message.text for day in archive.days() for line in archive.read(day).lines]
    wanted = {"The boiler is a Solaris.", "Another of the fourth.", "The gate code is 4471.", "The roof leaks."}
    assert set(told) == wanted | {"A later one."}
    assert len(told) == 5
    assert set(found(archive, "another", "boiler")) == {"d04"}


def test_a_writer_waits_for_another(archive: Archive, logs: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with archive.writing():
            night = pool.submit(run_nightly, archive, logs)
            assert not wait([night], timeout=0.3).done
        assert night.result(timeout=30).unchanged


def test_what_a_killed_writer_left_is_in_nobodys_way(archive: Archive, logs: Path, tmp_path: Path) -> None:
    part = archive.path / "chronicles" / ".2026-03-04.md.part"
    part.write_bytes(b"half a chro")
    part.chmod(0o600)
    (archive.path / "chronicles" / "2026-99-99.md").touch(0o600)
    assert list(open_archive(archive.path, OWNER).days()) == [date(2026, 3, 4), date(2026, 3, 5), date(2026, 3, 20)]
    back_up(archive, tmp_path / "backup", NOW)
    tell(logs, d04="Another.")
    assert run_nightly(archive, logs).written == (date(2026, 3, 4),)
    assert not part.exists()


def test_an_index_that_cannot_be_written_is_told(archive: Archive, logs: Path) -> None:
    archive.index.unlink()
    archive.index.mkdir()
    with pytest.raises(EnvironmentUnusable, match=r"index\.db cannot be written"):
        refresh_index(archive)
