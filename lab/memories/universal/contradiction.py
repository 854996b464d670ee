"""Says by a stated rule, without a model, whether two records contradict each other."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from lab.retrieval.factstore.tokens import STOPWORDS, words

SHARED = 0.75
"""Least share of their content words (Jaccard) that two texts have in common to speak of the same thing.

Set beforehand and not chosen on any data.
"""

NEGATIONS = frozenset(
    {"not", "no", "never", "neither", "nor", "none", "nobody", "nothing", "without", "cannot"}
    | {"nao", "nunca", "jamais", "nem", "nenhum", "nenhuma", "ninguem", "nada", "sem"}
)
"""Folded; ``don't`` and its kin are seen by their ending."""

SINGLE_VALUED = frozenset({"born_on", "born_in", "lives_in", "lives_at", "works_at", "married_to", "spouse_of"})
"""Relations of which an entity has one at a time: two records with other targets cannot both be right now."""

_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")


class Reason(StrEnum):
    """Why two records contradict each other."""

    NEGATION = "negation"
    """They say the same, and one of them denies it."""
    NUMBER = "number"
    """They say the same but for their numbers (amounts, dates, times), of which each has some that the other lacks."""
    RELATION = "relation"
    """They state the same single-valued relation of the same entity with other targets."""


@dataclass(frozen=True)
class Statement:
    """What is compared of a record.

    Attributes:
        text: Its content.
        relations: The relations that it states: subject, kind, target.
    """

    text: str
    relations: Collection[tuple[str, str, str]] = ()


@dataclass(frozen=True)
class _Parts:
    content: frozenset[str]
    identifiers: frozenset[str]
    numbers: frozenset[str]
    negated: bool


@lru_cache(maxsize=1 << 13)
def _parts(text: str) -> _Parts:
    # "don't" becomes "do not", so that its stem is a stopword, as it is in "do".
    found = frozenset(words(_NOT.sub(" not ", text)))
    digits = frozenset(word for word in found if _DIGIT.search(word))
    identifiers = frozenset(word for word in digits if word[0].isalpha())
    content = found - digits - NEGATIONS - STOPWORDS
    return _Parts(content, identifiers, digits - identifiers, bool(found & NEGATIONS))


def contradiction(one: Statement, other: Statement) -> Reason | None:
    """The first reason, in the order of ``Reason``'s rules below, or None.

    1. Two single-valued relations of one subject and kind have different targets.
    2. The texts share at least ``SHARED`` of their content words (without stopwords, negations and whatever holds a
       digit) and have the same identifiers and numbers, and exactly one of them has a negation. An identifier begins
       with a letter and holds a digit (``K-07``): with another one, a text speaks of another thing.
    3. They share as much and have the same identifiers, both or neither are negated, and each has a number that the
       other lacks. A number begins with a digit (``38``, ``15h30``, ``2031-03-01``).

    Words are compared folded and not stemmed. It does not know antonyms, nor that a text speaks of another time: what
    it flags is to be looked at, and what it does not flag may still contradict.
    """
    if _relations_differ(one, other):
        return Reason.RELATION
    a, b = _parts(one.text), _parts(other.text)
    either = a.content | b.content
    if a.identifiers != b.identifiers or not either or len(a.content & b.content) < SHARED * len(either):
        return None
    if a.numbers == b.numbers:
        return Reason.NEGATION if a.negated != b.negated else None
    if a.negated == b.negated and a.numbers - b.numbers and b.numbers - a.numbers:
        return Reason.NUMBER
    return None


def _relations_differ(one: Statement, other: Statement) -> bool:
    return any(
        kind in SINGLE_VALUED and (subject, kind) == (other_subject, other_kind) and target != other_target
        for subject, kind, target in one.relations
        for other_subject, other_kind, other_target in other.relations
    )
