"""How records come to the live ones, go to the archive and come back; every step within a caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from lab.errors import InputError
from lab.memories.universal.graph import entity_words
from lab.memories.universal.keywords import searchable
from lab.memories.universal.records import SCHEMA_VERSION, Draft, RecordKind
from lab.memories.universal.schema import COLUMNS


def write(connection: sqlite3.Connection, draft: Draft) -> int:
    """Makes a draft a live record, or brings back the one that it is already; adds its sources in either case.

    No record is trusted more than the least trusted of its sources, whenever they join.

    Returns:
        Id of the record.

    Raises:
        InputError: A source is no episode of the draft's agent.
    """
    known = connection.execute(
        "SELECT record_id FROM records WHERE key = ?1 UNION ALL SELECT record_id FROM archive WHERE key = ?1",
        (draft.key,),
    ).fetchone()
    if known is not None:
        record_id = int(known[0])
        restore(connection, record_id)
    else:
        record_id = _insert(connection, draft)
    _add_sources(connection, record_id, draft)
    return record_id


def archive(connection: sqlite3.Connection, record_ids: Sequence[int], reason: str, now: float) -> tuple[int, ...]:
    """Moves live records to the archive and out of the index of words; what they state stays, and is not walked."""
    for record_id in record_ids:
        connection.execute(
            f"INSERT INTO archive ({COLUMNS}, archived_at, reason) "  # noqa: S608
            f"SELECT {COLUMNS}, ?, ? FROM records WHERE record_id = ?",
            (now, reason, record_id),
        )
        connection.execute("DELETE FROM records WHERE record_id = ?", (record_id,))
        connection.execute("DELETE FROM words WHERE rowid = ?", (record_id,))
    return tuple(record_ids)


def restore(connection: sqlite3.Connection, record_id: int) -> None:
    """Brings a record back from the archive; does nothing where it is not there."""
    row = connection.execute("SELECT content, tags FROM archive WHERE record_id = ?", (record_id,)).fetchone()
    if row is None:
        return
    connection.execute(
        f"INSERT INTO records ({COLUMNS}) SELECT {COLUMNS} FROM archive WHERE record_id = ?",  # noqa: S608
        (record_id,),
    )
    connection.execute("DELETE FROM archive WHERE record_id = ?", (record_id,))
    _index(connection, record_id, row[0], json.loads(row[1]))


def _insert(connection: sqlite3.Connection, draft: Draft) -> int:
    tags = json.dumps(draft.tags, ensure_ascii=True)
    row = connection.execute(
        "INSERT INTO records (key, kind, agent_id, content, tags, trust, created_at, ttl, founder, schema_version) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING record_id",
        (
            *(draft.key, draft.kind, draft.agent_id, draft.content, tags, draft.trust, draft.created_at, draft.ttl),
            draft.founder,
            SCHEMA_VERSION,
        ),
    ).fetchone()
    record_id = int(row[0])
    _index(connection, record_id, draft.content, draft.tags)
    for name in draft.entities:
        _mention(connection, record_id, name)
    for relation in draft.relations:
        ends = _mention(connection, record_id, relation.subject), _mention(connection, record_id, relation.target)
        connection.execute(
            "INSERT OR IGNORE INTO relations (record_id, subject_id, kind, target_id) VALUES (?, ?, ?, ?)",
            (record_id, ends[0], relation.kind, ends[1]),
        )
    return record_id


def _index(connection: sqlite3.Connection, record_id: int, content: str, tags: Sequence[str]) -> None:
    connection.execute(
        "INSERT INTO words (rowid, content, tags) VALUES (?, ?, ?)",
        (record_id, searchable(content), searchable("\n".join(tags))),
    )


def _mention(connection: sqlite3.Connection, record_id: int, name: str) -> int:
    # A name without a word (signs alone) is recognised by itself.
    recognised = entity_words(name) or name.strip()
    connection.execute("INSERT OR IGNORE INTO entities (name, words) VALUES (?, ?)", (name, recognised))
    entity = connection.execute("SELECT entity_id FROM entities WHERE words = ?", (recognised,)).fetchone()[0]
    connection.execute("INSERT OR IGNORE INTO mentions VALUES (?, ?)", (record_id, entity))
    return int(entity)


def _add_sources(connection: sqlite3.Connection, record_id: int, draft: Draft) -> None:
    for source in draft.sources:
        row = connection.execute(
            "SELECT kind, agent_id, trust FROM records WHERE record_id = ?1 UNION ALL "
            "SELECT kind, agent_id, trust FROM archive WHERE record_id = ?1",
            (source,),
        ).fetchone()
        # One message for both: whether another agent has that episode is not told.
        if row is None or tuple(row[:2]) != (RecordKind.EPISODIC, draft.agent_id):
            raise InputError(
                f"{draft.agent_id} has no episode {source} to be a source", "name committed episodes of that agent"
            )
        connection.execute("INSERT OR IGNORE INTO sources VALUES (?, ?)", (record_id, source))
        connection.execute(
            "UPDATE records SET trust = ?1 WHERE record_id = ?2 AND trust > ?1", (float(row[2]), record_id)
        )
