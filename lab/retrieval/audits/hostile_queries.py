"""Queries that break full-text search, put to the real plugin: what it does, against a plain substring search.

The list holds what users really type: identifiers, quotes, operators, other scripts, nothing at all, far too much.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lab.records import Record
from lab.retrieval.systems.base import Ranking
from lab.retrieval.systems.sandboxed import SystemRefused

DEPTH = 10


@dataclass(frozen=True)
class HostileQuery:
    """One query.

    Attributes:
        name: Short name for tables.
        text: The query.
        meant: Texts that a fact must contain, one of them, to be what was meant; none where nothing can be meant.
    """

    name: str
    text: str
    meant: tuple[str, ...] = ()


FACTS = (
    "Ticket POL-358 blocks the release",
    "The dashboard is state-of-the-art",
    "Run the pre-edit hook first",
    "Settings are stored as key:value pairs",
    "The engine is written in C++",
    "The billing service is written in C#",
    "The frontend runs on node.js 20.04",
    "The server pve-01 hosts the backups",
    "Deploys go through build+test",
    "Mail Ana at ana.souza@example.test",
    "Mr O'Brien keeps the spare key",
    'The banner says "hello world"',
    "Ana lives in São Paulo",
    "Coração is the name of the boat",
    "旅行の記憶を保存する",
    "The party emoji 🎉 marks a birthday",
    "Paths look like /srv/data_2024/x.csv",
    "The discount is 100% on Fridays",
    "NEAR the station is a bakery",
    "Nothing else matters here",
)
"""What is stored. No two share what a query means, but for what the queries say."""

_LONG = ("lorem ipsum dolor " * 600).strip()
"""About 10 kB."""

QUERIES = (
    HostileQuery("hyphen, upper case", "POL-358", ("POL-358",)),
    HostileQuery("hyphens", "state-of-the-art", ("state-of-the-art",)),
    HostileQuery("hyphen, word", "pre-edit", ("pre-edit",)),
    HostileQuery("hyphen, host name", "pve-01", ("pve-01",)),
    HostileQuery("hyphen in a sentence", "what runs on pve-01 backups", ("pve-01",)),
    HostileQuery("colon", "key:value", ("key:value",)),
    HostileQuery("plus", "build+test", ("build+test",)),
    HostileQuery("C++", "C++", ("C++",)),
    HostileQuery("C#", "C#", ("C#",)),
    HostileQuery("dot", "node.js", ("node.js",)),
    HostileQuery("version", "20.04", ("20.04",)),
    HostileQuery("mail address", "ana.souza@example.test", ("ana.souza@example.test",)),
    HostileQuery("path", "/srv/data_2024/x.csv", ("/srv/data_2024/x.csv",)),
    HostileQuery("percent", "100%", ("100%",)),
    HostileQuery("apostrophe", "O'Brien", ("O'Brien",)),
    HostileQuery("open quote", 'say "hello', ("hello",)),
    HostileQuery("open parenthesis", "(Ana", ("Ana",)),
    HostileQuery("dangling AND", "Ana AND", ("Ana",)),
    HostileQuery("NOT", "NOT Ana", ("Ana",)),
    HostileQuery("NEAR", "NEAR(station bakery)", ("station",)),
    HostileQuery("column filter", "content:Ana", ("Ana",)),
    HostileQuery("prefix star", "bak*", ("bakery",)),
    HostileQuery("star alone", "*"),
    HostileQuery("punctuation alone", "???"),
    HostileQuery("stopwords alone", "what is it?"),
    HostileQuery("empty", ""),
    HostileQuery("spaces", "   "),
    HostileQuery("10 kB", _LONG),
    HostileQuery("10 kB around a word", f"{_LONG} bakery {_LONG}", ("bakery",)),
    HostileQuery("no accents", "coracao sao paulo", ("Coração", "São Paulo")),
    HostileQuery("accents, NFC", "Coração", ("Coração",)),
    HostileQuery("accents, NFD", "Corac\u0327a\u0303o", ("Coração",)),
    HostileQuery("CJK inside a run", "記憶", ("記憶",)),
    HostileQuery("CJK, the whole run", "旅行の記憶を保存する", ("記憶",)),
    HostileQuery("emoji", "🎉", ("🎉",)),
    HostileQuery("NUL", "bakery\x00station", ("bakery",)),
    HostileQuery("lone surrogate", "bakery \ud800", ("bakery",)),
    HostileQuery("SQL", "'; DROP TABLE facts; --"),
)
"""In the order of the table."""


class Behaviour(StrEnum):
    """What came of a query, against the substring search."""

    RIGHT = "right"
    """What was meant comes first; or nothing was meant and nothing came."""
    NOTHING = "nothing"
    """Something was meant and is stored, and nothing came."""
    INCOMPLETE = "incomplete"
    """Something came, but not all that was meant is ahead of everything else."""
    NOISE = "noise"
    """Nothing was meant, and facts came."""
    RAISES = "raises"
    """An exception of the plugin."""


class HostileFinding(Record):
    """One query and one way to ask.

    Attributes:
        query: Name of the query.
        way: ``search`` or ``search_facts``.
        behaviour: What came of it.
        found: Texts of the facts that came, best first.
        meant: Texts of the facts that were meant, by the substring search.
        exception: Class and text, where it raised.
    """

    query: str
    way: str
    behaviour: Behaviour
    found: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()
    exception: str = ""

    @property
    def told(self) -> str:
        """The behaviour in a word or two."""
        return f"raises {self.exception.split(':')[0]}" if self.behaviour is Behaviour.RAISES else str(self.behaviour)


class AskedTwoWays(Protocol):
    """The plugin as ``HolographicPlugin`` gives it, on an empty database of its own."""

    def add(self, facts: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        """Stores facts; ids in their order."""
        ...

    def search(self, query: str, k: int) -> Ranking:
        """The retriever's search."""
        ...

    def search_facts(self, query: str, k: int) -> tuple[int, ...]:
        """The store's search."""
        ...


def audit_hostile_queries(plugin: AskedTwoWays) -> tuple[HostileFinding, ...]:
    """Puts every query both ways.

    Args:
        plugin: It has an empty database open, which is filled.

    Raises:
        SystemFailed: The plugin is gone; an exception of its own is a finding.
    """
    texts = dict(zip(plugin.add([{"content": text} for text in FACTS]), FACTS, strict=True))
    ways: dict[str, Callable[[str], Sequence[int]]] = {
        "search": lambda text: [hit.fact_id for hit in plugin.search(text, DEPTH).hits],
        "search_facts": lambda text: plugin.search_facts(text, DEPTH),
    }
    findings = []
    for query in QUERIES:
        meant = tuple(text for text in FACTS if text in substring_search(FACTS, query.meant))
        for way, ask in ways.items():
            try:
                found = tuple(texts[fact_id] for fact_id in ask(query.text))
            except SystemRefused as error:
                told = f"{error.kind}: {error.text}"
                behaviour = Behaviour.RAISES
                finding = HostileFinding(query=query.name, way=way, behaviour=behaviour, meant=meant, exception=told)
            else:
                behaviour = judge(found, meant)
                finding = HostileFinding(query=query.name, way=way, behaviour=behaviour, found=found, meant=meant)
            findings.append(finding)
    return tuple(findings)


def judge(found: Sequence[str], meant: Sequence[str]) -> Behaviour:
    """Compares what came with what was meant."""
    if not meant:
        return Behaviour.NOISE if found else Behaviour.RIGHT
    if not found:
        return Behaviour.NOTHING
    return Behaviour.RIGHT if set(found[: len(meant)]) == set(meant) else Behaviour.INCOMPLETE


def substring_search(facts: Sequence[str], meant: Sequence[str]) -> frozenset[str]:
    """The facts that contain one of some texts, by SQLite's LIKE: no tokens, no ranking, no operators."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE facts (content TEXT)")
        connection.executemany("INSERT INTO facts VALUES (?)", [(one,) for one in facts])
        found: set[str] = set()
        query = "SELECT content FROM facts WHERE content LIKE '%' || ? || '%' ESCAPE '\\'"
        for text in meant:
            literal = re.sub(r"[\\%_]", r"\\\g<0>", text)
            found |= {row[0] for row in connection.execute(query, (literal,))}
    return frozenset(found)
