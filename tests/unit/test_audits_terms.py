"""The term audit on planted scores: a constant term, a deciding one, one that works against the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lab.errors import InputError
from lab.retrieval.audits.tables import terms_table
from lab.retrieval.audits.terms import Candidate, Changes, TermAudit, TermRow, TermTable, audit_terms, table_of_hits
from lab.retrieval.build_database import build_database
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.systems.base import Hit
from lab.retrieval.systems.factstore import FactstoreSystem
from lab.retrieval.testset import Author, Fact

NOTHING = Changes(top1=0, top5=0, top5_order=0)


def table(weights: dict[str, float], *topics: list[dict[str, float]], factors: tuple[float, ...] = ()) -> TermTable:
    return TermTable(
        system="planted",
        weights=weights,
        topics={
            f"t{n}": tuple(
                Candidate(fact=i + 1, terms=terms, factor=factors[i] if factors else 1.0)
                for i, terms in enumerate(found)
            )
            for n, found in enumerate(topics)
        },
    )


def row(audit: TermAudit, term: str) -> TermRow:
    return next(one for one in audit.rows if one.term == term)


def test_a_constant_term_decides_nothing_and_the_other_everything() -> None:
    found = [{"decides": value, "constant": 0.5} for value in (0.1, 0.9, 0.4, 0.3, 0.2, 0.8)]
    audit = audit_terms(table({"decides": 0.4, "constant": 0.3}, found, found))
    constant, decides = row(audit, "constant"), row(audit, "decides")
    assert constant.taken_out == constant.levelled == NOTHING
    assert constant.median_range == 0 and constant.variance_share == pytest.approx(0)
    assert constant.mean_contribution == pytest.approx(0.15)
    # Without it all are equal, and fact 1, which was last, comes first by its id.
    assert decides.taken_out == decides.levelled == Changes(top1=2, top5=2, top5_order=2)
    assert decides.variance_share == pytest.approx(1)
    assert decides.median_range == pytest.approx(0.8)
    assert (audit.topics, audit.candidates) == (2, 12)


def test_noise_that_is_constant_within_topics_has_no_share() -> None:
    # It differs between topics by more than the other term within them, and ranks nothing.
    topics = [[{"a": value, "level": level} for value in (0.0, 0.01)] for level in (0.0, 5.0)]
    audit = audit_terms(table({"a": 1.0, "level": 1.0}, *topics))
    assert row(audit, "level").variance_share == pytest.approx(0)
    assert row(audit, "level").high == 5


def test_a_term_against_the_others_has_a_negative_share() -> None:
    found = [{"a": 3.0, "b": -1.0}, {"a": 0.0, "b": 0.0}]
    audit = audit_terms(table({"a": 1.0, "b": 1.0}, found))
    assert row(audit, "a").variance_share == pytest.approx(1.5)
    assert row(audit, "b").variance_share == pytest.approx(-0.5)


@given(st.lists(st.lists(st.tuples(*[st.floats(0, 1, width=16)] * 3), min_size=1, max_size=8), min_size=1, max_size=4))
def test_shares_add_up_to_one(values: list[list[tuple[float, float, float]]]) -> None:
    topics = [[dict(zip("abc", one, strict=True)) for one in found] for found in values]
    audit = audit_terms(table({"a": 0.4, "b": 0.3, "c": 0.3}, *topics))
    shares = [*(one.variance_share for one in audit.rows), audit.factor_share]
    assert shares == [None] * 4 or sum(share or 0 for share in shares) == pytest.approx(1)


def test_differences_below_the_tie_rule_are_none() -> None:
    found = [{"a": 0.5, "noise": 0.0}, {"a": 0.5, "noise": 1e-8}]
    audit = audit_terms(table({"a": 1.0, "noise": 1.0}, found))
    assert row(audit, "noise").taken_out == NOTHING
    assert [one.variance_share for one in audit.rows] == [None, None]


def test_the_factor_is_taken_out_too() -> None:
    found = [{"a": 0.4}, {"a": 0.9}]
    audit = audit_terms(table({"a": 1.0}, found, factors=(1.0, 0.1)))
    assert audit.factor == Changes(top1=1, top5=0, top5_order=1)
    assert audit.factor_share is not None and audit.factor_share > 1  # against the term
    audit = audit_terms(table({"a": 1.0}, found, factors=(0.5, 0.5)))
    assert audit.factor == NOTHING and audit.factor_share == pytest.approx(0)


def test_a_constant_is_not_credited_with_what_the_factor_makes_of_it() -> None:
    # Without the constant, trust counts for less, and the order is another: levelling shows that it tells nothing.
    found = [{"a": 0.10, "constant": 0.5}, {"a": 0.18, "constant": 0.5}]
    audit = audit_terms(table({"a": 1.0, "constant": 1.0}, found, factors=(0.6, 0.5)))
    constant = row(audit, "constant")
    assert constant.taken_out.top1 == 1 and constant.levelled == NOTHING
    assert constant.variance_share == pytest.approx(0)
    assert audit.factor_share is not None and audit.factor_share > 1
    assert row(audit, "a").levelled == NOTHING  # it is too weak to matter either


def test_hits_of_the_fact_store_are_taken_by_their_parts() -> None:
    hits = {
        "t": [Hit(1, 0.8, {"fts": 0.9, "hrr": 0.1, "trust": 0.8}), Hit(2, 0.3, {"fts": 0.6, "trust": 0.5})],
        "empty": [],
    }
    made = table_of_hits("factstore", hits)
    assert made.topics["t"][0] == Candidate(fact=1, terms={"fts": 0.9, "overlap": 0, "hrr": 0.1}, factor=0.8)
    audit = audit_terms(made)
    assert (audit.topics, audit.without_candidates) == (1, 1)
    # The same hits, had their order been fused with another afterwards.
    fused = [Hit(1, 0.03, {**hits["t"][0].parts, "rrf_relevance": 0.016, "author": 0.014})]
    assert set(table_of_hits("factstore", {"t": fused}).weights) == {"rrf_relevance", "author"}


def test_parts_that_do_not_give_the_score_are_refused() -> None:
    for parts in ({"fts": 0.9, "overlap": 0.1, "trust": 0.5}, {"fts": 1.0}, {}):
        with pytest.raises(InputError, match="do not add up"):
            table_of_hits("another", {"t": [Hit(1, 0.8, parts)]})


@pytest.mark.parametrize(
    ("settings", "terms", "changes"),
    [
        (FactstoreSettings(author_fusion="off"), {"fts", "overlap", "hrr"}, {"hrr": (0, 0)}),
        (FactstoreSettings(author_fusion="off", hrr="textv1"), {"fts", "overlap", "hrr"}, {"hrr": (0, 1)}),
        # The best match is a third party's: with authors it is not first, unless their share is small.
        (FactstoreSettings(author_fusion="rrf"), {"rrf_relevance", "author"}, {"author": (1, 2)}),
        (FactstoreSettings(author_fusion="weighted"), {"weighted_relevance", "author"}, {"author": (0, 1)}),
    ],
)
def test_the_real_fact_store_is_explained(
    tmp_path: Path, settings: FactstoreSettings, terms: set[str], changes: dict[str, tuple[int, int]]
) -> None:
    texts = ("the heron nests by the weir", "the heron flies", "a weir of stone", "the mill by the weir")
    authors = (Author.THIRD_PARTY, Author.USER, Author.AGENT, Author.USER)
    facts = [Fact(id=f"f{n}", text=one, author=who) for n, (one, who) in enumerate(zip(texts, authors, strict=True))]
    build_database(facts, tmp_path / "facts.db")
    system = FactstoreSystem(settings)
    system.open(tmp_path / "facts.db")
    try:
        hits = {text: system.search(text, 10).hits for text in ("heron weir", "mill by the weir", "nothing")}
    finally:
        system.close()
    audit = audit_terms(table_of_hits(system.name, hits))
    assert {one.term for one in audit.rows} == terms
    for term, expected in changes.items():
        changed = row(audit, term).taken_out
        assert (changed.top1, changed.top5_order) == expected


def test_nothing_to_audit_is_said() -> None:
    with pytest.raises(InputError, match="no topic has a candidate"):
        audit_terms(table({"a": 1.0}, []))
    with pytest.raises(InputError, match="no term b"):
        audit_terms(table({"a": 1.0, "b": 1.0}, [{"a": 1.0}]))


def test_the_table_shows_hostile_names_as_text() -> None:
    audit = audit_terms(table({"[red]\x1b[31mfts": 1.0}, [{"[red]\x1b[31mfts": 0.5}]))
    console = Console(width=160, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(terms_table(audit))
    assert "[red]fts" in shown.get() and "\x1b" not in shown.get()
    assert "0, 0, 0" in shown.get()
