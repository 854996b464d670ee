"""The difference of two snapshots: rows added, changed and gone, and what the schema lost or gained."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from lab.errors import InputError
from lab.snapshots.relations import Relation, contents
from lab.snapshots.sqlite import explained, quoted
from lab.snapshots.store import Snapshot
from lab.snapshots.verify import Change, Kind, content_changes

Cells = dict[str, Any]
"""A row or its key, by column: None, numbers, text, or bytes."""


@dataclass(frozen=True)
class ChangedRow:
    """A row that is in both under the same key, with other values.

    Attributes:
        key: What identifies it.
        before: The values that changed, as they were.
        after: The same as they are.
    """

    key: Cells
    before: Cells
    after: Cells


@dataclass(frozen=True)
class TableDifference:
    """How the rows of one table differ.

    Attributes:
        table: Its name; hostile, as everything in the rows is.
        key: Columns by which rows were matched; empty where whole rows were.
        added: Number of rows that only the second has.
        gone: Number of rows that only the first has.
        changed: Number of rows that both have with other values; 0 where whole rows were matched.
        columns_added: Columns that only the second has; rows are compared without them.
        columns_gone: Columns that only the first has.
        rows_added: The first of the rows added, as many as were asked for.
        rows_gone: The first of the rows gone.
        rows_changed: The first of the rows changed.
    """

    table: str
    key: tuple[str, ...]
    added: int
    gone: int
    changed: int
    columns_added: tuple[str, ...]
    columns_gone: tuple[str, ...]
    rows_added: tuple[Cells, ...]
    rows_gone: tuple[Cells, ...]
    rows_changed: tuple[ChangedRow, ...]


@dataclass(frozen=True)
class Difference:
    """How two snapshots differ.

    Attributes:
        changes: Schema, settings, and tables that only one of them has.
        tables: Tables of both whose rows or columns differ.
    """

    changes: tuple[Change, ...]
    tables: tuple[TableDifference, ...]

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return not self.changes and not self.tables


def diff(a: Snapshot, b: Snapshot, *, limit: int = 10) -> Difference:
    """Compares two snapshots; rows are matched by primary key, and as a whole where a table has none.

    Tables whose digests are equal are not read. All rows that differ are counted, one by one; at most ``limit`` of each
    kind are kept.

    Args:
        a: The first.
        b: The second.
        limit: Most rows of each kind to keep for each table.

    Raises:
        InputError: One of them cannot be read.
        EnvironmentUnusable: There is no space to sort rows in.
    """
    before, after = a.manifest.content, b.manifest.content
    both = before.tables.keys() & after.tables.keys()
    changes = tuple(c for c in content_changes(before, after) if c.kind is not Kind.ROWS or c.what not in both)
    differing = sorted(name for name in both if before.tables[name] != after.tables[name])
    if not differing:
        return Difference(changes, ())
    try:
        with closing(b.connect()) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("ATTACH ? AS before", (f"{a.database.resolve().as_uri()}?mode=ro&immutable=1",))
            old, new = contents(connection, "before").relations, contents(connection, "main").relations
            if missing := [name for name in differing if name not in old or name not in new]:
                raise InputError(f"{missing[0]} cannot be compared here", "freeze both with the same lab and SQLite")
            tables = tuple(_table(connection, old[name], new[name], limit) for name in differing)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise explained(error, b.database) from error
    return Difference(changes, tables)


def _table(connection: sqlite3.Connection, old: Relation, new: Relation, limit: int) -> TableDifference:
    shared = tuple(column for column in new.columns if column in old.columns)
    key = new.key if new.key == old.key and not _lacks_keys(connection, old, new) else ()
    values = tuple(column for column in shared if column not in key)
    if key:
        added = _only_in(connection, new, old, key, shared, limit)
        gone = _only_in(connection, old, new, key, shared, limit)
        changed = _changed(connection, old, new, key, values, limit)
    else:
        added, gone = _whole_rows(connection, old, new, shared, limit)
        changed = (0, ())
    return TableDifference(
        table=new.name,
        key=key,
        added=added[0],
        gone=gone[0],
        changed=changed[0],
        columns_added=tuple(column for column in new.columns if column not in shared),
        columns_gone=tuple(column for column in old.columns if column not in shared),
        rows_added=added[1],
        rows_gone=gone[1],
        rows_changed=changed[1],
    )


def _lacks_keys(connection: sqlite3.Connection, *relations: Relation) -> bool:
    """Whether some row has NULL in its key: SQLite allows that in a key of the ordinary kind, and even twice."""
    for relation in relations:
        absent = " OR ".join(f"{quoted(column)} IS NULL" for column in relation.key)
        if absent and connection.execute(f"SELECT 1 FROM {relation.source} WHERE {absent} LIMIT 1").fetchone():  # noqa: S608
            return True
    return False


def _only_in(
    connection: sqlite3.Connection,
    here: Relation,
    there: Relation,
    key: Sequence[str],
    columns: Sequence[str],
    limit: int,
) -> tuple[int, tuple[Cells, ...]]:
    wanted = ", ".join(f"h.{quoted(column)}" for column in columns)
    same = " AND ".join(f"h.{quoted(column)} = t.{quoted(column)}" for column in key)
    cursor = connection.execute(
        f"SELECT {wanted} FROM {here.source} h WHERE NOT EXISTS (SELECT 1 FROM {there.source} t WHERE {same}) "  # noqa: S608
        f"ORDER BY {', '.join(f'h.{quoted(column)}' for column in key)}"
    )
    count = 0
    kept: list[Cells] = []
    for row in cursor:
        count += 1
        if len(kept) < limit:
            kept.append(dict(zip(columns, row, strict=True)))
    return count, tuple(kept)


def _changed(
    connection: sqlite3.Connection,
    old: Relation,
    new: Relation,
    key: Sequence[str],
    values: Sequence[str],
    limit: int,
) -> tuple[int, tuple[ChangedRow, ...]]:
    if not values:
        return 0, ()
    wanted = [f"{side}.{quoted(column)}" for side in "on" for column in (*key, *values)]
    same = " AND ".join(f"o.{quoted(column)} = n.{quoted(column)}" for column in key)
    # IS alone takes 1 for 1.0, and text for text by the column's collation.
    differ = " OR ".join(
        f"o.{c} IS NOT n.{c} COLLATE BINARY OR typeof(o.{c}) <> typeof(n.{c})" for c in map(quoted, values)
    )
    cursor = connection.execute(
        f"SELECT {', '.join(wanted)} FROM {new.source} n JOIN {old.source} o ON {same} WHERE {differ} "  # noqa: S608
        f"ORDER BY {', '.join(f'n.{quoted(column)}' for column in key)}"
    )
    count = 0
    kept: list[ChangedRow] = []
    for row in cursor:
        count += 1
        if len(kept) < limit:
            half = len(row) // 2
            before, after = row[len(key) : half], row[half + len(key) :]
            moved = [
                (column, was, now)
                for column, was, now in zip(values, before, after, strict=True)
                if type(was) is not type(now) or was != now
            ]
            kept.append(
                ChangedRow(
                    key=dict(zip(key, row, strict=False)),
                    before={column: was for column, was, _ in moved},
                    after={column: now for column, _, now in moved},
                )
            )
    return count, tuple(kept)


def _whole_rows(
    connection: sqlite3.Connection, old: Relation, new: Relation, columns: Sequence[str], limit: int
) -> tuple[tuple[int, tuple[Cells, ...]], tuple[int, tuple[Cells, ...]]]:
    """Rows that one side has more often than the other."""
    if not columns:
        return (0, ()), (0, ())
    listed = ", ".join(map(quoted, columns))
    grouped = ", ".join(f"typeof({quoted(column)}), {quoted(column)} COLLATE BINARY" for column in columns)
    surplus = quoted("how many more")
    cursor = connection.execute(
        f"SELECT {listed}, sum({surplus}) FROM (SELECT {listed}, 1 AS {surplus} FROM {new.source} "  # noqa: S608
        f"UNION ALL SELECT {listed}, -1 FROM {old.source}) GROUP BY {grouped} HAVING sum({surplus}) <> 0"
    )
    counts = {True: 0, False: 0}
    kept: dict[bool, list[Cells]] = {True: [], False: []}
    for *row, more in cursor:
        is_added, times = more > 0, abs(more)
        counts[is_added] += times
        room = max(0, limit - len(kept[is_added]))
        kept[is_added] += [dict(zip(columns, row, strict=True))] * min(times, room)
    return (counts[True], tuple(kept[True])), (counts[False], tuple(kept[False]))
