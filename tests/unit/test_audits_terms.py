"""The term audit on planted scores: a constant term, a deciding one, one that works against the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lab.errors import InputError
from lab.retrieval.audits.tables import terms_table
from lab.retrieval.audits.terms import Candidate, TermAudit, TermRow, TermTable, audit_terms, table_of_hits
from lab.retrieval.systems.base import Hit


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
    assert (constant.top1_changed, constant.top5_changed, constant.top5_reordered) == (0, 0, 0)
    assert constant.median_range == 0 and constant.variance_share == pytest.approx(0)
    assert constant.mean_contribution == pytest.approx(0.15)
    # Without it all are equal, and fact 1, which was last, comes first by its id.
    assert (decides.top1_changed, decides.top5_changed, decides.top5_reordered) == (2, 2, 2)
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
    shares = [one.variance_share for one in audit.rows]
    assert shares == [None] * 3 or sum(share or 0 for share in shares) == pytest.approx(1)


def test_differences_below_the_tie_rule_are_none() -> None:
    found = [{"a": 0.5, "noise": 0.0}, {"a": 0.5, "noise": 1e-8}]
    audit = audit_terms(table({"a": 1.0, "noise": 1.0}, found))
    assert row(audit, "noise").top1_changed == 0
    assert [one.variance_share for one in audit.rows] == [None, None]


def test_the_factor_is_taken_out_too() -> None:
    found = [{"a": 0.4}, {"a": 0.9}]
    assert audit_terms(table({"a": 1.0}, found, factors=(1.0, 0.1))).factor == (1, 0, 1)
    assert audit_terms(table({"a": 1.0}, found, factors=(0.5, 0.5))).factor == (0, 0, 0)


def test_hits_of_another_system_are_taken_by_their_parts() -> None:
    hits = {
        "t": [Hit(1, 0.8, {"fts": 0.9, "hrr": 0.1, "trust": 0.8}), Hit(2, 0.3, {"fts": 0.6, "trust": 0.5})],
        "empty": [],
    }
    made = table_of_hits("factstore", {"fts": 1.0, "hrr": 1.0}, hits)
    assert made.topics["t"][0] == Candidate(fact=1, terms={"fts": 0.9, "hrr": 0.1}, factor=0.8)
    assert made.topics["t"][1].terms["hrr"] == 0
    audit = audit_terms(made)
    assert (audit.topics, audit.without_candidates) == (1, 1)


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
    assert "0/1" in shown.get()
