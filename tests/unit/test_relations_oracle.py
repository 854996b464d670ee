"""The relation graph against an oracle that does nothing but read the definition, on arbitrary histories."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.memories.relations.claim import Claim
from lab.memories.relations.graph import RelationGraph

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 8
"""Few moments and names, so that ends meet, intervals overlap and corrections hit each other."""


def day(number: int) -> datetime:
    return START + timedelta(days=number)


@st.composite
def histories(draw: st.DrawFn) -> list[Claim]:
    claims: list[Claim] = []
    for number in range(draw(st.integers(0, 9))):
        known = draw(st.integers(0, DAYS))
        older = [claim for claim in claims if claim.ingested_at < day(known)]
        target = draw(st.sampled_from([None, *older]))
        begin = draw(st.integers(0, DAYS))
        end = draw(st.none() | st.integers(begin + (target is None), DAYS + 1))
        claims.append(
            Claim(
                id=f"c{number}",
                subject=draw(st.sampled_from("AB")),
                kind=draw(st.sampled_from("kl")),
                object=draw(st.sampled_from("XYA")),
                valid_from=day(begin),
                valid_to=None if end is None else day(end),
                ingested_at=day(known),
                supersedes=target.id if target else None,
            )
        )
    return claims


def oracle(claims: list[Claim], valid: int, known: int) -> set[str]:
    """Ids that hold: known by then, replaced by nothing known by then, and begun but not ended."""
    there = [claim for claim in claims if claim.ingested_at <= day(known)]
    replaced = {claim.supersedes for claim in there}
    return {
        claim.id
        for claim in there
        if claim.id not in replaced
        and claim.valid_from <= day(valid)
        and (claim.valid_to is None or day(valid) < claim.valid_to)
    }


@settings(deadline=None, max_examples=150)
@given(histories(), st.randoms(use_true_random=False))
def test_every_state_is_what_the_definition_says_in_any_order(claims: list[Claim], shuffle: random.Random) -> None:
    mixed = list(claims)
    shuffle.shuffle(mixed)
    with RelationGraph() as graph:
        for claim in mixed:
            graph.append(claim)
        assert {claim.id for claim in graph.history()} == {claim.id for claim in claims}
        for valid in range(DAYS + 2):
            for known in range(DAYS + 1):
                found = graph.as_of(day(valid), day(known))
                assert {claim.id for claim in found} == oracle(claims, valid, known)
                some = graph.as_of(day(valid), day(known), subject="A", kind="k")
                assert some == tuple(one for one in found if (one.subject, one.kind) == ("A", "k"))


@settings(deadline=None, max_examples=60)
@given(histories(), st.integers(0, DAYS))
def test_overlaps_are_the_moments_with_two_objects(claims: list[Claim], known: int) -> None:
    with RelationGraph() as graph:
        graph.append(*claims)
        pairs = graph.overlaps(day(known))
        for valid in range(DAYS + 2):
            shown = {
                frozenset((pair.first.id, pair.second.id))
                for pair in pairs
                if pair.begin <= day(valid) and (pair.end is None or day(valid) < pair.end)
            }
            held = [claim for claim in claims if claim.id in oracle(claims, valid, known)]
            assert shown == {
                frozenset((one.id, two.id))
                for one in held
                for two in held
                if (one.subject, one.kind) == (two.subject, two.kind) and one.object != two.object
            }


@settings(deadline=None, max_examples=60)
@given(histories(), st.integers(0, DAYS))
def test_what_was_known_once_is_answered_the_same_for_ever(claims: list[Claim], known: int) -> None:
    """No later claim changes an answer about an earlier state of knowledge: nothing is destroyed."""
    earlier = [claim for claim in claims if claim.ingested_at <= day(known)]
    with RelationGraph() as before, RelationGraph() as after:
        before.append(*earlier)
        after.append(*claims)
        for valid in range(DAYS + 2):
            assert before.as_of(day(valid), day(known)) == after.as_of(day(valid), day(known))
