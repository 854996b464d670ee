"""The leg of relations: records that stated links connect with an entity that the query names, within a few hops."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from lab.memories.universal.records import Scope
from lab.memories.universal.scope import IN_SCOPE, scope_values
from lab.retrieval.factstore.tokens import words
from lab.retrieval.systems.base import SCORE_DIGITS

HOPS = 3
"""Most links between an entity of the query and a record. A hop is one stated link: a record names an entity, be it
as the target of a relation without a named subject, or a record states a relation between two. Within one hop lies
what names the entity; within two, what names something that it is related to; within three, what shares another
entity with a record that names it."""

FRONTIER = 200
"""Most entities, and most records, from which a hop goes on, those of the lowest ids: a hub would reach everything."""

LONGEST_NAME, ENTITIES, WORDS = 6, 8, 64
"""Most words of a name that is looked for in a query; most entities of a query that are followed; most of its words."""


def entity_words(name: str) -> str:
    """What a name is recognised by: its folded words. ``ANA  Souza`` and ``Ana Souza`` are one entity."""
    return " ".join(words(name))


def named_entities(connection: sqlite3.Connection, query: str) -> list[int]:
    """Entities whose whole name stands in a query, in the order of their ids; a name within a longer one counts too."""
    said = words(query)[:WORDS]
    spans = {
        " ".join(said[start:end])
        for start in range(len(said))
        for end in range(start + 1, min(start + LONGEST_NAME, len(said)) + 1)
    }
    found = connection.execute(
        f"SELECT entity_id FROM entities WHERE words IN ({_marks(spans)}) ORDER BY entity_id LIMIT {ENTITIES}",  # noqa: S608
        sorted(spans),
    )
    return [row[0] for row in found]


def find_related(connection: sqlite3.Connection, query: str, limit: int, scope: Scope) -> list[tuple[int, float]]:
    """Records by nearness to the entities of a query.

    Args:
        connection: The store.
        query: Any text.
        limit: Most records wanted.
        scope: Which records; links that others state are not walked either.

    Returns:
        Record ids with scores, best first, equal ones by id. The score is the sum over the query's entities of 1 over
        the hops to the record.
    """
    scores: dict[int, float] = {}
    for entity in named_entities(connection, query):
        for record_id, hops in _reached(connection, entity, scope).items():
            scores[record_id] = scores.get(record_id, 0.0) + 1.0 / hops
    found = [(record_id, round(score, SCORE_DIGITS)) for record_id, score in scores.items()]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]


def _reached(connection: sqlite3.Connection, entity: int, scope: Scope) -> dict[int, int]:
    """Records within the bound of one entity, with the hops to them: breadth first over entities and records."""
    records: dict[int, int] = {}
    seen = {entity}
    entities, through = [entity], list[int]()
    for hop in range(1, HOPS + 1):
        naming = _records_naming(connection, entities, scope)
        next_through = [record_id for record_id in naming if record_id not in records]
        records |= dict.fromkeys(next_through, hop)
        beside = {*_related(connection, entities, scope), *_named_by(connection, through)} - seen
        seen |= beside
        entities, through = sorted(beside)[:FRONTIER], sorted(next_through)[:FRONTIER]
    return records


def _records_naming(connection: sqlite3.Connection, entities: list[int], scope: Scope) -> list[int]:
    rows = connection.execute(
        f"SELECT DISTINCT record_id FROM mentions JOIN records r USING (record_id) "  # noqa: S608
        f"WHERE entity_id IN ({_numbers(entities)}) AND {IN_SCOPE}",
        scope_values(scope),
    )
    return [row[0] for row in rows]


def _named_by(connection: sqlite3.Connection, records: list[int]) -> list[int]:
    rows = connection.execute(f"SELECT entity_id FROM mentions WHERE record_id IN ({_numbers(records)})")  # noqa: S608
    return [row[0] for row in rows]


def _related(connection: sqlite3.Connection, entities: list[int], scope: Scope) -> list[int]:
    near = _numbers(entities)
    rows = connection.execute(
        f"SELECT target_id, subject_id FROM relations JOIN records r USING (record_id) "  # noqa: S608
        f"WHERE (subject_id IN ({near}) OR target_id IN ({near})) AND {IN_SCOPE}",
        scope_values(scope),
    )
    return [entity for row in rows for entity in row]


def _marks(values: Iterable[object]) -> str:
    return ", ".join("?" for _ in values)


def _numbers(ids: Iterable[int]) -> str:
    """Ids as SQL: whole numbers of our own, never text."""
    return ", ".join(str(int(value)) for value in ids)
