"""The fusion audit on planted rankings: the same lists, other lists with and without effect, and a clear winner."""

from __future__ import annotations

import pytest
from rich.console import Console
from scipy.stats import binomtest  # type: ignore[import-untyped]

from lab.errors import InputError
from lab.retrieval.audits.fusion import NO_DIFFERENCE, FusionAudit, FusionPair, audit_fusion, author_first
from lab.retrieval.audits.tables import fusion_table

TOPICS = [f"t{n}" for n in range(20)]
RELEVANT = {topic: frozenset({"good"}) for topic in TOPICS[:15]}
GOOD = {topic: ["good", "b", "c", "d", "e", "f"] for topic in TOPICS}
BAD = {topic: ["b", "c", "d", "e", "f", "good"] for topic in TOPICS}
REORDERED = {topic: ["good", "c", "b", "e", "d", "x"] for topic in TOPICS}


def pair(audit: FusionAudit, first: str, second: str) -> FusionPair:
    return next(one for one in audit.pairs if (one.first, one.second) == (first, second))


def test_the_same_lists_show_no_difference() -> None:
    audit = audit_fusion({"rrf": GOOD, "relevance only": dict(GOOD)}, RELEVANT)
    (only,) = audit.pairs
    assert (only.n, only.answerable, only.lists_differ, only.order_differs) == (20, 15, 0, 0)
    assert only.verdict == NO_DIFFERENCE and [one.p for one in only.hits] == [1, 1]


def test_another_order_of_the_same_facts_is_not_another_list() -> None:
    (only,) = audit_fusion({"rrf": GOOD, "relevance only": REORDERED}, RELEVANT).pairs
    assert (only.lists_differ, only.order_differs, only.verdict) == (0, 20, NO_DIFFERENCE)


def test_a_clear_winner_is_named() -> None:
    audit = audit_fusion({"rrf": GOOD, "relevance only": REORDERED, "author first": BAD}, RELEVANT)
    found = pair(audit, "relevance only", "author first")
    assert found.lists_differ == 20
    assert found.verdict == "relevance only is better at Hit@1; relevance only is better at Hit@5"
    at_one = found.hits[0]
    assert (at_one.both, at_one.only_first, at_one.only_second, at_one.neither) == (0, 15, 0, 0)
    assert at_one.p == binomtest(15, 15).pvalue
    assert at_one.p_holm == pytest.approx(6 * at_one.p)
    assert pair(audit, "rrf", "relevance only").verdict == NO_DIFFERENCE


def test_a_hit_counts_at_its_depth() -> None:
    third = {topic: ["b", "c", "good", "d", "e"] for topic in TOPICS}
    (only,) = audit_fusion({"rrf": GOOD, "third": third}, RELEVANT).pairs
    assert [(one.depth, one.both, one.only_first) for one in only.hits] == [(1, 0, 15), (5, 15, 0)]
    assert only.verdict == "rrf is better at Hit@1"


def test_lists_that_differ_need_not_differ_in_hits() -> None:
    # Four topics against one: other lists everywhere, and no evidence.
    some = {topic: (GOOD if n in (0, *range(5, 20)) else BAD)[topic] for n, topic in enumerate(TOPICS)}
    other = {topic: (BAD if n == 0 else GOOD)[topic] for n, topic in enumerate(TOPICS)}
    (only,) = audit_fusion({"first": other, "second": some}, RELEVANT).pairs
    assert only.lists_differ == 5 and only.hits[0].only_first == 4 and only.hits[0].only_second == 1
    assert only.hits[0].p == pytest.approx(binomtest(1, 5).pvalue)
    assert only.verdict == NO_DIFFERENCE


def test_holm_takes_in_all_tests() -> None:
    # Six against none: .031 alone, which would be a finding, and none among two tests or six.
    some = {topic: (BAD if n < 6 else GOOD)[topic] for n, topic in enumerate(TOPICS)}
    (only,) = audit_fusion({"first": GOOD, "second": some}, RELEVANT).pairs
    assert only.hits[0].p == pytest.approx(2 / 64) and only.hits[0].p_holm == pytest.approx(4 / 64)
    assert only.verdict == NO_DIFFERENCE


def test_topics_that_one_ranking_lacks_are_named() -> None:
    fewer = {topic: GOOD[topic] for topic in TOPICS[1:]}
    audit = audit_fusion({"first": GOOD, "second": fewer}, RELEVANT)
    assert audit.left_out == ("t0",) and audit.pairs[0].n == 19


def test_author_first_keeps_relevance_among_equals() -> None:
    ranked = author_first({"t": ["a", "b", "c", "d"]}, {"a": 2, "b": 1, "c": 2, "d": 1})
    assert ranked == {"t": ["b", "d", "a", "c"]}


def test_nothing_to_compare_is_said() -> None:
    with pytest.raises(InputError):
        audit_fusion({"first": GOOD}, RELEVANT)
    with pytest.raises(InputError):
        audit_fusion({"first": GOOD, "second": {}}, RELEVANT)


def test_the_table_names_pairs_and_verdicts() -> None:
    console = Console(width=160)
    with console.capture() as shown:
        console.print(fusion_table(audit_fusion({"[b]rrf": GOOD, "relevance only": BAD}, RELEVANT)))
    assert "[b]rrf / relevance only" in shown.get() and "20/20" in shown.get() and "15 : 0" in shown.get()
