"""The judge of hostile queries: the substring search takes signs literally, and behaviours are told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.retrieval.audits.hostile_queries import (
    FACTS,
    QUERIES,
    Behaviour,
    audit_hostile_queries,
    judge,
    substring_search,
)
from lab.retrieval.systems.base import Hit, Ranking
from lab.retrieval.systems.sandboxed import SystemRefused


def test_the_substring_search_takes_signs_literally() -> None:
    assert substring_search(["100% sure", "100 sure"], ["100%"]) == {"100% sure"}
    assert substring_search(["a_b", "axb"], ["a_b"]) == {"a_b"}
    assert substring_search(["c:\\x", "c:x"], ["c:\\x"]) == {"c:\\x"}
    assert substring_search(FACTS, ()) == frozenset()


def test_every_query_that_means_something_means_a_stored_fact() -> None:
    for query in QUERIES:
        assert bool(substring_search(FACTS, query.meant)) == bool(query.meant), query.name


def test_behaviours_are_told_apart() -> None:
    assert judge((), ()) is Behaviour.RIGHT
    assert judge(("a",), ()) is Behaviour.NOISE
    assert judge((), ("a",)) is Behaviour.NOTHING
    assert judge(("a", "b"), ("a",)) is Behaviour.RIGHT
    assert judge(("b", "a"), ("a",)) is Behaviour.INCOMPLETE
    assert judge(("a",), ("a", "b")) is Behaviour.INCOMPLETE


class Substrings:
    """A system that finds whatever contains the first word, and raises where told to."""

    def add(self, facts: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        self._facts = [fact["content"] for fact in facts]
        return tuple(range(len(facts)))

    def search(self, query: str, k: int) -> Ranking:
        return Ranking(tuple(Hit(i, 1.0) for i in self.search_facts(query, k)))

    def search_facts(self, query: str, k: int) -> tuple[int, ...]:
        if "*" in query:
            raise SystemRefused("planted", "OperationalError", "star")
        found = substring_search(self._facts, query.split()[:1])
        return tuple(i for i, text in enumerate(self._facts) if text in found)[:k]


def test_an_exception_inside_is_a_finding_and_the_rest_goes_on() -> None:
    findings = {(one.query, one.way): one for one in audit_hostile_queries(Substrings())}
    assert len(findings) == 2 * len(QUERIES)
    assert findings["star alone", "search"].told == "raises OperationalError"
    assert findings["hyphen, upper case", "search"].behaviour is Behaviour.RIGHT
    assert findings["dangling AND", "search_facts"].behaviour is Behaviour.RIGHT
    assert findings["NOT", "search"].behaviour is not Behaviour.RIGHT
