"""The store of the universal layer: staging, idempotence, archiving, two writers, broken files, sudden death."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pydantic import ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.memories.universal.records import Draft, RecordKind, Scope, StatedRelation
from lab.memories.universal.search import Search
from lab.memories.universal.store import Store


def draft(content: str, **fields: object) -> Draft:
    return Draft.model_validate({"content": content, "agent_id": "ana", "created_at": 100.0, **fields})


def committed(store: Store, *drafts: Draft) -> tuple[int, ...]:
    return store.commit(store.stage(drafts))


def found(store: Store, query: str, now: float = 100.0, **scope: object) -> list[int]:
    answer = Search(store)(query, 10, Scope.model_validate({"now": now, **scope}))
    return [hit.record_id for hit in answer.found]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "universal.db") as opened:
        yield opened


def test_a_record_comes_back_as_it_was_written(store: Store) -> None:
    (record_id,) = committed(store, draft("The otter sleeps.", trust=0.8, ttl=50.0))
    record = store.get(record_id)
    assert (record.content, record.agent_id, record.kind, record.trust) == (
        *("The otter sleeps.", "ana", RecordKind.EPISODIC, 0.8),
    )
    assert (record.created_at, record.ttl, record.access_count, record.last_used_at) == (100.0, 50.0, 0, None)
    assert (record.schema_version, record.archived) == (2, False)


def test_what_is_staged_is_on_disk_and_in_no_search(store: Store) -> None:
    batch = store.stage([draft("The otter sleeps.", entities=("Otter",))])
    assert found(store, "otter") == []
    with Store(store.path) as other:
        assert [d.content for d in other.staged(batch)] == ["The otter sleeps."]
    ids = store.commit(batch)
    assert found(store, "otter") == list(ids)
    assert store.staged(batch) == ()


def test_what_is_discarded_is_gone_and_cannot_be_committed(store: Store) -> None:
    batch = store.stage([draft("The otter sleeps.")])
    store.discard(batch)
    store.discard(batch)
    assert (store.live(), store.staged(batch), found(store, "otter")) == ((), (), [])
    with pytest.raises(InputError, match="was discarded"):
        store.commit(batch)


def test_what_is_committed_cannot_be_discarded(store: Store) -> None:
    batch = store.stage([draft("The otter sleeps.")])
    store.commit(batch)
    with pytest.raises(InputError, match="was committed"):
        store.discard(batch)
    with pytest.raises(InputError, match="no batch 7"):
        store.commit(7)


def test_to_commit_again_changes_nothing(store: Store) -> None:
    batch = store.stage([draft("One."), draft("Two."), draft("One.")])
    ids = store.commit(batch)
    assert store.commit(batch) == ids
    assert ids[0] == ids[2]
    assert committed(store, draft("One.")) == ids[:1]
    assert len(store.live()) == 2


def test_another_time_agent_or_text_is_another_record(store: Store) -> None:
    ids = committed(store, draft("One."), draft("One.", created_at=101.0), draft("One.", agent_id="bia"), draft("one."))
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"content": ""},
        {"content": "half \ud800"},
        {"content": "x", "tags": ("\udfff",)},
        {"content": "x", "trust": 1.5},
        {"content": "x", "ttl": 5.0, "created_at": None},
        {"content": "x", "created_at": float("nan")},
        {"content": "x", "kind": "semantic"},
        {"content": "x", "sources": (1,)},
    ],
)
def test_a_draft_that_cannot_be_a_record_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Draft.model_validate({"agent_id": "ana", "created_at": 1.0, **fields})


def test_a_source_must_be_an_episode_and_a_bad_batch_writes_nothing(store: Store) -> None:
    batch = store.stage([draft("Good."), draft("Bad.", kind="semantic", sources=(99,))])
    with pytest.raises(InputError, match="no episode 99"):
        store.commit(batch)
    assert store.live() == ()
    assert len(store.staged(batch)) == 2


def test_another_agents_episode_is_no_source(store: Store) -> None:
    (foreign,) = committed(store, draft("Bia sleeps.", agent_id="bia"))
    batch = store.stage([draft("Learnt.", kind="semantic", sources=(foreign,))])
    with pytest.raises(InputError, match=f"ana has no episode {foreign} to be a source"):
        store.commit(batch)
    assert [record.content for record in store.live()] == ["Bia sleeps."]
    (own,) = committed(store, draft("Ana sleeps."))
    assert len(committed(store, draft("Learnt.", kind="semantic", sources=(own,)))) == 1


def test_no_record_is_trusted_more_than_its_sources_whenever_they_join(store: Store) -> None:
    first, weak, strong = committed(
        store, draft("One.", trust=0.9), draft("Two.", trust=0.2), draft("Three.", trust=1.0)
    )

    def learnt(*sources: int) -> tuple[int, float]:
        (record_id,) = committed(store, draft("Learnt.", kind="semantic", trust=0.95, sources=sources))
        return record_id, store.get(record_id).trust

    record_id, trust = learnt(first)
    assert trust == 0.9
    assert learnt(first, strong) == (record_id, 0.9)
    store.prune(0, 200.0)  # both the record and the source that joins it lie in the archive
    assert learnt(first, weak) == (record_id, 0.2)
    assert learnt(first, strong) == (record_id, 0.2)


def test_use_is_counted_and_a_clock_that_runs_back_makes_nothing_younger(store: Store) -> None:
    one, two = committed(store, draft("One."), draft("Two."))
    store.touch([one, one, 99], 200.0)
    store.touch([one], 150.0)
    assert (store.get(one).access_count, store.get(one).last_used_at) == (3, 200.0)
    assert store.get(two).access_count == 0


def test_what_has_expired_is_not_found_and_is_archived_not_deleted(store: Store) -> None:
    short, long_, ever = committed(store, draft("Otter one.", ttl=10.0), draft("Otter two.", ttl=99.0), draft("Otter."))
    assert short in found(store, "otter", now=109.9)
    assert sorted(found(store, "otter", now=110.0)) == [long_, ever]
    assert store.expire(109.9) == ()
    assert store.expire(110.0) == (short,)
    assert store.expire(110.0) == ()
    assert [r.record_id for r in store.archived()] == [short]
    assert store.get(short).content == "Otter one."


def test_pruning_archives_the_least_used_first(store: Store) -> None:
    a, b, c, d = committed(store, *(draft(f"Otter {n}.", created_at=float(n)) for n in range(4)))
    store.touch([b], 500.0)
    store.touch([a, a], 300.0)  # most often, though longest ago
    store.touch([d], 400.0)
    assert store.prune(2, 700.0) == (c, d)
    assert [r.record_id for r in store.live()] == [a, b]
    assert [r.record_id for r in store.archived()] == [c, d]
    assert found(store, "otter") == [a, b]
    assert store.prune(2, 700.0) == ()
    with pytest.raises(InputError):
        store.prune(-1, 700.0)


def test_restoring_brings_back_text_words_graph_and_counts(store: Store) -> None:
    link = StatedRelation(subject="Ana Souza", kind="works_at", target="Marolas")
    (record_id,) = committed(store, draft("The otter sleeps.", tags=("den",), relations=(link,)))
    store.touch([record_id], 200.0)
    before = store.get(record_id)
    store.prune(0, 300.0)
    assert found(store, "otter") == found(store, "den") == found(store, "Marolas") == []
    store.restore(record_id)
    store.restore(record_id)
    assert store.get(record_id) == before
    assert found(store, "otter") == found(store, "den") == found(store, "Marolas") == [record_id]
    assert store.archived() == ()


def test_to_commit_what_is_archived_brings_it_back_under_its_id(store: Store) -> None:
    ids = committed(store, draft("The otter sleeps."))
    store.prune(0, 200.0)
    assert committed(store, draft("The otter sleeps.")) == ids
    assert [r.record_id for r in store.live()] == list(ids)


def test_an_archived_id_is_never_given_again(store: Store) -> None:
    ids = committed(store, draft("One."))
    store.prune(0, 200.0)
    assert committed(store, draft("Two.")) != ids


@pytest.mark.parametrize("table", ["records", "archive"])
def test_not_even_by_hand_is_a_record_deleted(store: Store, table: str) -> None:
    committed(store, draft("One."), draft("Two."))
    store.prune(1, 200.0)
    with closing(sqlite3.connect(store.path)) as other, pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        other.execute(f"DELETE FROM {table}")


LIKE_IT = "SELECT 2, key || 'x', kind, agent_id, 'Forged.', tags, trust, created_at, NULL, ttl, 0, founder, 2"
BY_HAND = {
    "DELETE FROM sources": "never deleted",
    "UPDATE sources SET source_id = 2": "never changed",
    "UPDATE records SET content = 'Forged.' WHERE record_id = 1": "never rewritten",
    "UPDATE records SET key = 'x' WHERE record_id = 1": "never rewritten",
    "UPDATE OR REPLACE records SET record_id = 1 WHERE record_id = 3": "never rewritten",
    "UPDATE archive SET content = 'Forged.'": "never rewritten",
    "UPDATE archive SET record_id = 9": "never rewritten",
    f"INSERT OR REPLACE INTO archive {LIKE_IT}, 1, 'expired' FROM archive": "archived already",
    f"INSERT OR REPLACE INTO records {LIKE_IT.replace('SELECT 2', 'SELECT 1')} FROM records": "there already",
    f"INSERT INTO records {LIKE_IT} FROM archive; DELETE FROM archive": "never deleted",
}


@pytest.mark.parametrize("order", BY_HAND)
def test_not_even_by_hand_is_a_record_or_a_source_rewritten(store: Store, order: str) -> None:
    committed(store, draft("One."), draft("Two."))
    (learnt,) = committed(store, draft("Both.", kind="semantic", sources=(1,)))
    store.touch([1, learnt], 150.0)
    assert store.prune(2, 200.0) == (2,)
    with closing(sqlite3.connect(store.path)) as other, pytest.raises(sqlite3.IntegrityError, match=BY_HAND[order]):
        for statement in order.split("; "):
            other.execute(statement)
    assert (store.get(1).content, store.get(2).content, store.get(2).archived) == ("One.", "Two.", True)
    assert [source.record_id for source in store.sources_of(learnt)] == [1]
    store.restore(2)
    assert [record.record_id for record in store.live()] == [1, 2, learnt]


# --- files


def test_a_store_of_another_version_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "universal.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(InputError, match=r"schema version 9, this lab reads 2"):
        Store(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (9,)


def test_another_programs_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="another program"):
        Store(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


def test_broken_files_are_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.db"
    path.write_bytes(b"no database at all, and long enough to be read as a page" * 40)
    with pytest.raises(InputError, match=r"broken\.db") as told:
        Store(path)
    assert "\n" not in str(told.value)
    with pytest.raises(InputError, match="cannot be opened"):
        Store(tmp_path / "nowhere" / "universal.db")


def test_a_torn_page_is_an_error_and_no_empty_answer(tmp_path: Path) -> None:
    path = tmp_path / "universal.db"
    with Store(path) as store:
        committed(store, *(draft(f"Otter number {n} sleeps.") for n in range(300)))
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"), Store(path) as store:
        found(store, "otter")


def unguarded(store: Store) -> None:
    """Damage of the disk asks no trigger."""
    for (name,) in store.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        store.connection.execute(f"DROP TRIGGER {name}")


CHANGED = {
    "content": "'The otter swims.'",
    "agent_id": "'eva'",
    "created_at": "101.0",
    "created_at of another type": "x'00'",
    "content of another type": "x'ff00'",
    "key": "'0'",
}


@pytest.mark.parametrize("table", ["records", "archive"])
@pytest.mark.parametrize("what", CHANGED)
def test_a_record_that_is_not_what_was_written_is_told_by_every_reader(store: Store, what: str, table: str) -> None:
    sound, harmed = committed(store, draft("The badger digs."), draft("The otter sleeps."))
    if table == "archive":
        store.connection.execute("UPDATE records SET access_count = 9 WHERE record_id = ?", (sound,))
        assert store.prune(1, 100.0) == (harmed,)
    column = what.partition(" ")[0]
    unguarded(store)
    store.connection.execute(f"UPDATE {table} SET {column} = {CHANGED[what]} WHERE record_id = ?", (harmed,))
    everything = store.live if table == "records" else store.archived
    for read in (lambda: store.get(harmed), everything, lambda: store.statements([sound, harmed])):
        with pytest.raises(InputError, match=f"is damaged: record {harmed} is not what was written") as told:
            read()
        assert "\n" not in str(told.value) and "backup" in told.value.mend
    assert store.get(sound).content == "The badger digs."
    if table == "records":
        with pytest.raises(InputError, match="is not what was written"):
            found(store, "otter")
    assert found(store, "badger") == [sound]


@given(
    content=strategies.text(strategies.characters(exclude_categories=["Cs"]), min_size=1),
    created_at=strategies.none() | strategies.floats(allow_nan=False, allow_infinity=False) | strategies.integers(0, 9),
)
@settings(max_examples=60, deadline=None)
@example(content="\x00 after a NUL", created_at=-0.0)
def test_whatever_was_written_fits_its_digest(content: str, created_at: float | None) -> None:
    with Store(Path(":memory:")) as store:
        ids = committed(
            store, draft(content, created_at=created_at), draft(content, created_at=created_at, agent_id="b")
        )
        assert [record.content for record in store.live()] == [content, content]
        store.touch(ids, 1e9)
        store.prune(1, 1e9)
        assert {record.record_id for record in (*store.live(), *store.archived())} == set(ids)


def test_a_full_disk_is_told_and_leaves_the_batch_staged(store: Store) -> None:
    batch = store.stage([draft(f"Otter number {n}. " + "x" * 5000) for n in range(20)])
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(EnvironmentUnusable, match="disk is full"):
        store.commit(batch)
    assert store.live() == ()
    store.connection.execute("PRAGMA max_page_count = 1000000")
    assert len(store.commit(batch)) == 20


def test_a_process_killed_in_mid_commit_leaves_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "universal.db"
    program = f"""
        import os, signal
        from pathlib import Path
        from lab.memories.universal.records import Draft
        from lab.memories.universal import writing
        from lab.memories.universal.store import Store
        store = Store(Path({str(path)!r}))
        store.commit(store.stage([Draft(content="Before.", agent_id="ana")]))
        insert, seen = writing._insert, []
        def killed(connection, draft):
            seen.append(draft)
            if len(seen) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return insert(connection, draft)
        writing._insert = killed
        store.commit(store.stage([Draft(content=f"Otter {{n}}.", agent_id="ana") for n in range(5)]))
    """
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert died.returncode == -signal.SIGKILL
    with Store(path) as store:
        assert [r.content for r in store.live()] == ["Before."]
        assert found(store, "otter") == []
        assert len(store.commit(2)) == 5
        assert len(found(store, "otter")) == 5


def test_two_writers_lose_nothing_and_make_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "universal.db"
    Store(path).close()
    faults: list[BaseException] = []

    def write(name: str) -> None:
        try:
            with Store(path) as store:
                for number in range(15):
                    committed(store, draft(f"Own {name} {number}."), draft(f"Shared {number}."))
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with Store(path) as store:
        contents = [record.content for record in store.live()]
    assert len(contents) == len(set(contents)) == 45


# --- nothing is ever lost, whatever is done in whatever order


class Machine(RuleBasedStateMachine):
    """Random acts on a store beside a model of what it must still hold."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name) / "universal.db")
        self.contents: dict[int, str] = {}
        self.sources: dict[int, set[int]] = {}
        self.now = 100.0

    def episodes(self) -> list[int]:
        return sorted(set(self.contents) - set(self.sources))

    @rule(text=strategies.text("ab 1-+#\0é", min_size=1, max_size=4), ttl=strategies.sampled_from([None, 1.0, 30.0]))
    def remember(self, text: str, ttl: float | None) -> None:
        (record_id,) = committed(self.store, draft(text, ttl=ttl))
        assert self.contents.setdefault(record_id, text) == text

    @rule()
    def throw_away(self) -> None:
        self.store.discard(self.store.stage([draft("never")]))

    @precondition(lambda self: self.episodes())
    @rule(data=strategies.data())
    def learn(self, data: strategies.DataObject) -> None:
        chosen = data.draw(strategies.sets(strategies.sampled_from(self.episodes()), min_size=1, max_size=3))
        text = f"learnt {data.draw(strategies.integers(0, 2))}"
        (record_id,) = committed(self.store, draft(text, kind="semantic", sources=tuple(sorted(chosen))))
        assert self.contents.setdefault(record_id, text) == text
        self.sources.setdefault(record_id, set()).update(chosen)

    @precondition(lambda self: self.contents)
    @rule(data=strategies.data())
    def use_or_restore(self, data: strategies.DataObject) -> None:
        record_id = data.draw(strategies.sampled_from(sorted(self.contents)))
        self.store.touch([record_id], self.now)
        if data.draw(strategies.booleans()):
            self.store.restore(record_id)

    @rule(passed=strategies.sampled_from([0.5, 20.0]))
    def expire(self, passed: float) -> None:
        self.now += passed
        self.store.expire(self.now)

    @rule(keep=strategies.integers(0, 4))
    def prune(self, keep: int) -> None:
        self.store.prune(keep, self.now)
        assert len(self.store.live()) <= keep

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store(self.store.path)

    @invariant()
    def all_is_there_once(self) -> None:
        if not hasattr(self, "store"):
            return
        everything = [*self.store.live(), *self.store.archived()]
        assert {r.record_id: r.content for r in everything} == self.contents
        assert len(everything) == len(self.contents)
        indexed = self.store.connection.execute("SELECT rowid FROM words ORDER BY rowid").fetchall()
        assert [row[0] for row in indexed] == [r.record_id for r in self.store.live()]

    @invariant()
    def no_source_is_lost(self) -> None:
        for record_id, expected in getattr(self, "sources", {}).items():
            read = {source.record_id: source.content for source in self.store.sources_of(record_id)}
            assert read == {source: self.contents[source] for source in expected}

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestNothingIsLost = Machine.TestCase
TestNothingIsLost.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
