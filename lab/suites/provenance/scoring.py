"""From labels to rates: what is counted, among what, and what must be equal for a label to be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lab.retrieval.testset import Author
from lab.statistics.proportions import proportion
from lab.suites.base import Rate
from lab.suites.provenance.data import Labels, Part, Person, Quote, Role, Utterance, Voice

RECALL, PRECISION, FALSE, RIGHT = "recall", "precision", "false positives", "right"

_ALL = ("", "")
"""The group of all utterances."""

_T = TypeVar("_T", Person, Quote, Voice)
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_ARTICLE = re.compile(r"^(?:the|an?|os?|as?|uma?) ")


@dataclass(frozen=True)
class Case:
    """One thing counted in one measure.

    Attributes:
        measure: The measure.
        of: What its denominator counts.
        better: ``high`` or ``low``.
        unit: Id of what is counted, unique in its measure.
        hit: Whether it counts.
    """

    measure: str
    of: str
    better: str
    unit: str
    hit: bool


def same_name(name: str) -> str:
    """A name as it is compared: without case and article."""
    return _ARTICLE.sub("", " ".join(name.lower().split()))


def same_span(text: str) -> str:
    """Quoted words as they are compared: without case, outer marks and punctuation, and with single blanks."""
    return _EDGES.sub("", " ".join(text.lower().split()))


def same_voice(voice: Voice) -> tuple[Author, str]:
    """A voice as it is compared; who is quoted or prefers something is told by kind alone where it is user or agent."""
    return voice.kind, same_name(voice.name) if voice.kind is Author.THIRD_PARTY else ""


def aligned(truths: Sequence[_T], said: Sequence[_T], key: Callable[[_T], object]) -> list[tuple[_T | None, _T | None]]:
    """Pairs what is there with what was said, by a key; what has no partner stands beside None."""
    left: list[_T] = list(said)
    pairs: list[tuple[_T | None, _T | None]] = []
    for truth in truths:
        match = next((one for one in left if key(one) == key(truth)), None)
        if match is not None:
            left.remove(match)
        pairs.append((truth, match))
    pairs += [(None, one) for one in left]
    return pairs


def cases(true: Utterance, said: Labels) -> Iterator[Case]:
    """All that is counted of one utterance.

    Args:
        true: The utterance with its labels.
        said: What an extractor says of it.
    """
    for kind in Author:
        nouns = ("utterances by this kind of author", "utterances that it gives to this kind", "utterances by others")
        yield from _told(f"author {kind}", nouns, true.id, true.author.kind is kind, said.author.kind is kind)
    if true.author.name:
        equal = true.author.kind is said.author.kind and same_name(true.author.name) == same_name(said.author.name)
        yield Case("author by name: recall", "utterances whose author is named", "high", true.id, equal)
    yield from _persons(true, said)
    yield from _quotes(true, said)
    yield from _preferences(true, said)
    for measure, key in _RIGHT.items():
        yield Case(f"{measure}: {RIGHT}", "utterances", "high", true.id, key(true) == key(said))


def rates(part: Part, answers: Sequence[Labels], system: str, *, split: bool = True) -> list[Rate]:
    """All rates of one system on one part; intervals over utterances, those of a pair taken together.

    A measure in which there was nothing to count is there, too, with a denominator of zero.

    Args:
        part: The utterances.
        answers: What the system says, in their order.
        system: Its name.
        split: Whether by language, too, and what is right by phenomenon.

    Raises:
        ValueError: There is not one answer to each utterance.
    """
    groups: dict[tuple[str, str], list[tuple[Utterance, Labels]]] = {}
    for true, said in zip(part.utterances, answers, strict=True):
        split_by = (("language", str(true.language)), ("phenomenon", str(true.phenomenon))) if split else ()
        for group in (_ALL, *split_by):
            groups.setdefault(group, []).append((true, said))
    found = []
    for group, members in groups.items():
        tallies: dict[tuple[str, str, str], list[Case]] = {}
        clusters: dict[str, str] = {}
        for true, said in members:
            # The truth held against itself gives every measure a place, also where a system says nothing.
            for case in cases(true, true):
                tallies.setdefault((case.measure, case.of, case.better), [])
            for case in cases(true, said):
                tallies.setdefault((case.measure, case.of, case.better), []).append(case)
                clusters[case.unit] = true.cluster
        for (measure, of, better), tally in tallies.items():
            if group[0] == "phenomenon" and not measure.endswith(RIGHT):
                continue
            hits = [case.unit for case in tally if case.hit]
            units = [case.unit for case in tally]
            share = proportion(hits, units, name=measure, of=of, clusters=clusters, unit="utterances or pairs")
            by = {} if group == _ALL else dict([group])
            found.append(
                Rate(measure=measure, system=system, data=part.name, group=by, proportion=share, better=better)
            )
    return sorted(found, key=lambda rate: (_place(rate.measure), sorted(rate.group.items())))


def _place(measure: str) -> tuple[int, int, int]:
    """Where a measure stands: what is right as a whole, then kind by kind, then what is taken for the user's."""
    kind, _, aspect = measure.partition(": ")
    aspects = (RECALL, PRECISION, FALSE, RIGHT, "")
    return aspect != RIGHT, _KINDS.index(kind) if kind in _KINDS else len(_KINDS), aspects.index(aspect)


def _told(kind: str, of: tuple[str, str, str], unit: str, true: bool | None, said: bool) -> Iterator[Case]:
    """One thing that is of a kind or not; ``true`` None: there is no such thing, so that it only costs precision."""
    if true is not None:
        measure, among, better = (f"{kind}: {RECALL}", of[0], "high") if true else (f"{kind}: {FALSE}", of[2], "low")
        yield Case(measure, among, better, unit, said)
    if said:
        yield Case(f"{kind}: {PRECISION}", of[1], "high", unit, bool(true))


def _found(kind: str, of: tuple[str, str, str], unit: str, pairs: Sequence[tuple[object, object]]) -> Iterator[Case]:
    """Things that are there or not; false positives are counted among utterances that hold none."""
    for at, (truth, said) in enumerate(pairs):
        if truth is not None:
            yield Case(f"{kind}: {RECALL}", of[0], "high", f"{unit}/{at}", said is not None)
        if said is not None:
            yield Case(f"{kind}: {PRECISION}", of[1], "high", f"{unit}/{at}", truth is not None)
    if all(truth is None for truth, _ in pairs):
        yield Case(f"{kind}: {FALSE}", of[2], "low", unit, bool(pairs))


def _persons(true: Utterance, said: Labels) -> Iterator[Case]:
    pairs = aligned(true.persons, said.persons, lambda one: same_name(one.name))
    nouns = ("persons named", "names that it gives", "utterances that name nobody")
    yield from _found("person", nouns, true.id, pairs)
    for at, (truth, told) in enumerate(pairs):
        unit = f"{true.id}/{at}"
        for role in Role:
            nouns = ("persons of this role", "names that it gives this role", "persons of another role")
            there = None if truth is None else truth.role is role
            yield from _told(f"role {role}", nouns, unit, there, told is not None and told.role is role)
        nouns = ("persons called", "names that it takes for calls", "persons named and not called")
        there = None if truth is None else truth.vocative
        yield from _told("vocative", nouns, unit, there, told is not None and told.vocative)


def _quotes(true: Utterance, said: Labels) -> Iterator[Case]:
    pairs = aligned(true.quotes, said.quotes, lambda one: same_span(one.text))
    nouns = ("quotations", "quotations that it gives", "utterances without quotation")
    yield from _found("quotation", nouns, true.id, pairs)
    for at, (truth, told) in enumerate(pairs):
        unit = f"{true.id}/{at}"
        for kind in Author:
            nouns = ("quotations of this kind", "quotations that it gives to this kind", "quotations of others")
            there = None if truth is None else truth.speaker.kind is kind
            yield from _told(f"quotation of {kind}", nouns, unit, there, told is not None and told.speaker.kind is kind)
        if truth is not None:
            equal = told is not None and same_voice(told.speaker) == same_voice(truth.speaker)
            yield Case("quotation with its speaker: recall", "quotations", "high", unit, equal)


def _preferences(true: Utterance, said: Labels) -> Iterator[Case]:
    others = [one for one in true.preferences if one.kind is Author.THIRD_PARTY]
    told = [one for one in said.preferences if one.kind is Author.THIRD_PARTY]
    nouns = ("holders other than the user", "holders that it gives", "utterances without another's preference")
    yield from _found("another's preference", nouns, true.id, aligned(others, told, same_voice))
    own = any(one.kind is Author.USER for one in true.preferences)
    taken = any(one.kind is Author.USER for one in said.preferences)
    nouns = ("utterances with a preference of the user", "utterances that it says hold one", "utterances without one")
    yield from _told("own preference", nouns, true.id, own, taken)
    if not own and others:
        among = "utterances with another's preference and none of the user"
        yield Case("another's preference taken for the user's", among, "low", true.id, taken)
    if not own and true.author.kind is not Author.USER:
        among = "utterances by others without a preference of the user"
        yield Case("another's words taken for the user's preference", among, "low", true.id, taken)


_KINDS = (
    *(f"author {kind}" for kind in Author),
    *("author by name", "person", *(f"role {role}" for role in Role), "vocative", "quotation"),
    *(f"quotation of {kind}" for kind in Author),
    *("quotation with its speaker", "own preference", "another's preference"),
)
"""Kinds of things in the order in which they are told."""

_RIGHT: Mapping[str, Callable[[Labels], object]] = {
    "author kind": lambda one: one.author.kind,
    "persons and roles": lambda one: sorted((same_name(p.name), p.role) for p in one.persons),
    "vocatives": lambda one: sorted(same_name(p.name) for p in one.persons if p.vocative),
    "quotations and speakers": lambda one: sorted((same_span(q.text), *same_voice(q.speaker)) for q in one.quotes),
    "holders of preferences": lambda one: sorted({same_voice(voice) for voice in one.preferences}),
}
"""What must be equal for all of a kind to be right in an utterance."""
