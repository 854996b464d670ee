"""What is wrong with a system's labels as a whole, beside being bad: swapped, constant, of another row, one-eyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lab.retrieval.testset import Author
from lab.suites.provenance.data import Labels, Part, Person, Role, Utterance
from lab.suites.provenance.scoring import aligned, same_name, same_span

Pairs = Sequence[tuple[Utterance, Labels]]

ENOUGH = 5
"""Fewest cases on which something is said of all of them."""


def alarms(part: Part, answers: Sequence[Labels]) -> dict[str, str]:
    """What a system does wrong systematically: the alarm, and what it was seen by.

    Args:
        part: The utterances.
        answers: What the system says, in their order.

    Raises:
        ValueError: There is not one answer to each utterance.
    """
    pairs = list(zip(part.utterances, answers, strict=True))
    found: dict[str, str] = {}
    for look in (_ungrounded, _shifted, _swapped, _called, _constant, _holders, _doubled, _mute):
        for alarm, detail in look(pairs):
            found[alarm] = detail
    return found


def _ungrounded(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Words that are not in the message cannot have been found in it."""
    foreign = []
    for true, said in pairs:
        text = same_span(true.text)
        words = [same_span(q.text) for q in said.quotes] + [same_span(p.name) for p in said.persons]
        if any(word not in text for word in words):
            foreign.append(true.id)
    if foreign:
        yield "ungrounded", f"names or quotations that are not in the message: {_some(foreign)}"


def _shifted(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Labels of another row agree with that row better than with their own."""
    truths = [true.author.kind for true, _ in pairs]
    told = [said.author.kind for _, said in pairs]
    if len(set(told)) < 2 or len(pairs) < ENOUGH:
        return
    own = sum(a is b for a, b in zip(truths, told, strict=True))
    for step in (-1, 1):
        # The last row has no next one: the ring of all rows is compared, so that both sums have the same number.
        other = sum(truths[at] is told[(at + step) % len(told)] for at in range(len(truths)))
        # Neighbours are often alike: a bad extractor may agree with them by a hair, one that is shifted by far.
        if other - own >= ENOUGH:
            yield "shifted", f"{other} of {len(truths)} authors are those of the row beside, {own} those of their own"


def _swapped(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Two roles are each taken for the other more often than for themselves."""
    seen: Counter[tuple[Role, Role]] = Counter((truth.role, told.role) for truth, told in _both(pairs))
    roles = list(Role)
    for at, one in enumerate(roles):
        for other in roles[at + 1 :]:
            if seen[one, other] > seen[one, one] and seen[other, one] > seen[other, other]:
                detail = f"{seen[one, other]} {one} are said to be {other}, {seen[other, one]} the other way round"
                yield f"swapped {one} and {other}", detail


def _called(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Those who are called are less often said to be than those who are not."""
    called = [told.vocative for truth, told in _both(pairs) if truth.vocative]
    others = [told.vocative for truth, told in _both(pairs) if not truth.vocative]
    if min(len(called), len(others)) >= ENOUGH and sum(called) * len(others) < sum(others) * len(called):
        detail = f"{sum(called)} of {len(called)} who are called, {sum(others)} of {len(others)} who are not"
        yield "vocatives inverted", detail


def _constant(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """One label for everything where the truth has several."""
    authors = ([true.author.kind for true, _ in pairs], [said.author.kind for _, said in pairs])
    speakers = (
        [quote.speaker.kind for true, _ in pairs for quote in true.quotes],
        [quote.speaker.kind for _, said in pairs for quote in said.quotes],
    )
    for what, (truths, told) in (("author", authors), ("speaker", speakers)):
        if len(told) >= ENOUGH and len(set(told)) == 1 and len(set(truths)) > 1:
            yield (
                f"constant {what}",
                f"all {len(told)} are said to be {told[0]}, the truth has {len(set(truths))} kinds",
            )


def _holders(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Whoever prefers something, it is the user."""
    others = [true for true, _ in pairs if any(v.kind is Author.THIRD_PARTY for v in true.preferences)]
    told = [voice.kind for _, said in pairs for voice in said.preferences]
    if len(others) >= ENOUGH and len(told) >= ENOUGH and set(told) == {Author.USER}:
        yield "every preference is the user's", f"all {len(told)}; {len(others)} messages tell another's"


def _doubled(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """A person said twice, with two roles, would count as right in both."""
    twice = [t.id for t, said in pairs if len({same_name(p.name) for p in said.persons}) < len(said.persons)]
    if twice:
        yield "doubled", f"a person is given more than once: {_some(twice)}"


def _mute(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Nothing is found in one language, though things are found in the other."""
    for what in ("persons", "quotes", "preferences"):
        there: Counter[str] = Counter()
        told: Counter[str] = Counter()
        for true, said in pairs:
            there[true.language] += len(getattr(true, what))
            told[true.language] += len(getattr(said, what))
        for language, count in sorted(there.items()):
            if count >= ENOUGH and not told[language] and sum(told.values()) >= ENOUGH:
                yield f"no {what} in {language}", f"none of {count}; {sum(told.values())} in other messages"


def _both(pairs: Pairs) -> Iterator[tuple[Person, Person]]:
    for true, said in pairs:
        for truth, told in aligned(true.persons, said.persons, lambda one: same_name(one.name)):
            if truth is not None and told is not None:
                yield truth, told


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
