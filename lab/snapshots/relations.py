"""What of a database is content: the objects of its schema and the rows of its relations; the rest is layout.

Layout is what SQLite may change without changing what the database says: pages, the segments of a full-text index, the
statistics of its planner, the row ids of a table that has no key of type ``INTEGER``.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from lab.records import digest
from lab.snapshots.sqlite import quoted

SHADOWS = {
    "fts5": ("data", "idx", "docsize", "config", "content"),
    "fts4": ("segments", "segdir", "docsize", "stat", "content"),
    "fts3": ("segments", "segdir", "docsize", "stat", "content"),
    "rtree": ("node", "parent", "rowid"),
    "rtree_i32": ("node", "parent", "rowid"),
}
"""Suffixes of the tables in which SQLite's own virtual tables keep their rows and indexes."""

_STATISTICS = re.compile(r"sqlite_stat\d")
_NAME = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|[^\s"'`\[]+)"""
_VIRTUAL = re.compile(rf"CREATE\s+VIRTUAL\s+TABLE\s+{_NAME}\s*USING\s+(\w+)\s*(?:\((.*)\))?", re.I | re.S)
_CONTENT_OPTION = re.compile(r"(?:^|,)\s*content\s*=", re.I)
_TOKEN = re.compile(
    r"""(--[^\n]*|/\*.*?(?:\*/|\Z)|\s+)"""  # what separates
    r"""|('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|\w+|.)""",  # what counts
    re.S,
)


@dataclass(frozen=True)
class Relation:
    """Rows that are content.

    Attributes:
        name: The table's name; ``<table> (index)`` for the vocabulary of a full-text index.
        source: What stands behind FROM.
        columns: The columns that are compared.
        key: The columns that identify a row; empty where only the whole row does.
        unique: Whether no two rows may have the same key, and none lacks it.
    """

    name: str
    source: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    unique: bool = False

    def select(self) -> str:
        """SQL for all rows in the defined order: by the key, then, where that leaves a choice, by the whole row.

        Text is ordered by its bytes whatever collation the column has, and numbers of different types are kept apart,
        for 1 and 1.0 compare as equal. The order is then total but for rows that are the same.
        """
        order = [f"{quoted(column)} COLLATE BINARY" for column in self.key]
        if not self.unique:
            order += [f"typeof({quoted(column)}), {quoted(column)} COLLATE BINARY" for column in self.columns]
        return f"SELECT {', '.join(map(quoted, self.columns))} FROM {self.source} ORDER BY {', '.join(order)}"  # noqa: S608


@dataclass(frozen=True)
class Contents:
    """What of a database is content.

    Attributes:
        objects: Digest of the definition of every table, index, trigger and view, by kind and name.
        relations: All rows that are content, by name.
    """

    objects: dict[str, str]
    relations: dict[str, Relation]


def contents(connection: sqlite3.Connection, schema: str = "main") -> Contents:
    """Sorts a database into content and layout.

    A virtual table stands for its rows; of a full-text index over another table or over nothing, the vocabulary
    (documents and occurrences of each term) and the length of each document are content, so that an index that has
    fallen behind its table does not pass for a current one. Where a module is not there to read a virtual table, the
    tables in which it keeps its rows are taken as they are.

    Args:
        connection: Open database; may be read-only. Temporary tables are made in it.
        schema: ``main`` or the name of an attached database.

    Raises:
        sqlite3.Error: The schema cannot be read.
        UnicodeDecodeError: A name in it is no text.
    """
    found = connection.execute(f"SELECT type, name, sql FROM {quoted(schema)}.sqlite_master ORDER BY type, name")  # noqa: S608
    items = [(_text(kind), _text(name), _text(sql)) for kind, name, sql in found]
    items = [item for item in items if not _STATISTICS.fullmatch(item[1])]
    relations: list[Relation] = []
    shadows: set[str] = set()
    for _, name, sql in items:
        if match := _VIRTUAL.match(sql):
            module, external = match[1].lower(), bool(_CONTENT_OPTION.search(match[2] or ""))
            if module in SHADOWS and _readable(connection, schema, name):
                shadows |= {f"{name}_{s}" for s in SHADOWS[module] if not (external and s == "content")}
                relations += _virtual(connection, schema, name, module, external=external)
    for kind, name, sql in items:
        if kind == "table" and name not in shadows and not _VIRTUAL.match(sql):
            relations.append(_plain(connection, schema, name))
    objects = {f"{kind} {name}": digest(normalised(sql)) for kind, name, sql in items if sql and name not in shadows}
    return Contents(objects, {relation.name: relation for relation in sorted(relations, key=lambda r: r.name)})


def full_text_indexes(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Names of the tables of a database that are FTS5 indexes.

    Raises:
        sqlite3.Error: The schema cannot be read.
    """
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
    virtual = ((name, _VIRTUAL.match(sql)) for name, sql in found.fetchall())
    return tuple(name for name, match in virtual if match and match[1].lower() == "fts5")


def normalised(sql: str) -> str:
    """A definition without its comments and with one space between any two tokens."""
    return " ".join(match[2] for match in _TOKEN.finditer(sql) if match[2])


def _readable(connection: sqlite3.Connection, schema: str, name: str) -> bool:
    """Whether the module of a virtual table is there, and what it needs (a tokeniser, say)."""
    try:
        connection.execute(f"SELECT rowid FROM {quoted(schema)}.{quoted(name)} LIMIT 0")  # noqa: S608
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return False
        raise
    return True


def _virtual(connection: sqlite3.Connection, schema: str, name: str, module: str, *, external: bool) -> list[Relation]:
    source = f"{quoted(schema)}.{quoted(name)}"
    if not external:
        columns = ("rowid", *(column for column, _ in _columns(connection, schema, name)))
        if module.startswith("rtree"):
            columns = columns[1:]  # the first column is the row id
        return [Relation(name, source, columns, columns[:1], unique=True)]
    if module != "fts5":
        return []
    vocabulary = f"vocabulary of {schema}.{name}"
    connection.execute(f"DROP TABLE IF EXISTS temp.{quoted(vocabulary)}")
    arguments = ", ".join(map(quoted, (schema, name, "row")))
    connection.execute(f"CREATE VIRTUAL TABLE temp.{quoted(vocabulary)} USING fts5vocab({arguments})")
    index = f"{name} (index)"
    found = [Relation(index, f"temp.{quoted(vocabulary)}", ("term", "doc", "cnt"), ("term",), unique=True)]
    lengths = f"{name}_docsize"
    if dict(_columns(connection, schema, lengths)):  # not there under columnsize=0
        found.append(Relation(lengths, f"{quoted(schema)}.{quoted(lengths)}", ("id", "sz"), ("id",), unique=True))
    return found


def _plain(connection: sqlite3.Connection, schema: str, name: str) -> Relation:
    info = _columns(connection, schema, name)
    key = tuple(column for column, place in sorted(info, key=lambda c: c[1]) if place)
    # A key may be NULL, and then stand twice, unless it is the row id itself or the table has no row ids.
    unique = bool(key) and _key_is_storage(connection, schema, name)
    return Relation(name, f"{quoted(schema)}.{quoted(name)}", tuple(column for column, _ in info), key, unique)


def _key_is_storage(connection: sqlite3.Connection, schema: str, name: str) -> bool:
    """Whether rows lie in the order of the primary key: it is the row id, or the table is WITHOUT ROWID."""
    listed = connection.execute(f"PRAGMA {quoted(schema)}.index_list({quoted(name)})").fetchall()
    index = next((_text(row[1]) for row in listed if _text(row[3]) == "pk"), None)
    if index is None:  # no index of its own: the key is the row id
        return True
    # The index of a table with row ids ends in the row id (column -1); that of a table without holds the row.
    columns = connection.execute(f"PRAGMA {quoted(schema)}.index_xinfo({quoted(index)})").fetchall()
    return all(row[1] != -1 for row in columns)


def _columns(connection: sqlite3.Connection, schema: str, name: str) -> list[tuple[str, int]]:
    """Names of the stored columns with their place in the primary key, from 1; neither hidden nor generated ones."""
    rows = connection.execute(f"PRAGMA {quoted(schema)}.table_xinfo({quoted(name)})").fetchall()
    return [(_text(row[1]), row[5]) for row in rows if row[6] == 0]


def _text(value: str | bytearray | None) -> str:
    """A name as text, whatever the connection makes of text."""
    return value.decode() if isinstance(value, bytearray) else value or ""
