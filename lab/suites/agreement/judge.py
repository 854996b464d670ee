"""Holds what a system made of a world against the truth: retrieval and truth apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.suites.agreement.data import Copy, Kind, Part, states
from lab.suites.agreement.systems import Examined
from lab.suites.base import Rate
from lab.suites.rates import rate


@dataclass(frozen=True)
class Judged:
    """Ids of cases by what became of them in one world.

    Attributes:
        wrong: Whose copy is wrong.
        first: Whose question has its own fact at rank 1.
        true: … and what stands there is true.
        lying: … and what stands there is not true, and nothing is said against it.
        flagged: Against whose copy something is said.
        named: … with the true value.
    """

    wrong: frozenset[str]
    first: frozenset[str]
    true: frozenset[str]
    lying: frozenset[str]
    flagged: frozenset[str]
    named: frozenset[str]


def judge(copies: Sequence[Copy], examined: Examined) -> Judged:
    """Judges one world."""
    cases = {copy.case.id: copy.case for copy in copies}
    true = {case for case in examined.own if states(examined.first[case], cases[case].true)}
    return Judged(
        wrong=frozenset(copy.case.id for copy in copies if copy.wrong),
        first=examined.own,
        true=frozenset(true),
        lying=examined.own - true - examined.flagged,
        flagged=examined.flagged,
        # Of "90 31 4" the part that differs may be named alone.
        named=frozenset(
            case
            for case, value in examined.named.items()
            if states(value, cases[case].true) or any(states(form, [value]) for form in cases[case].true)
        ),
    )


def rates(part: Part, system: str, faulty: Judged, repaired: Judged, *, names: bool) -> Iterator[Rate]:
    """The shares of one system on one part.

    Args:
        part: The cases.
        system: Its name.
        faulty: The copies as labelled.
        repaired: The same with every copy right.
        names: Whether the system names a value in place of the copy's.
    """

    def share(measure: str, better: str, of: str, among: Sequence[str], counted: frozenset[str], **group: str) -> Rate:
        return rate(
            measure,
            system=system,
            data=part.name,
            counted=[one for one in among if one in counted],
            among=among,
            of=of,
            better=better,
            group=group,
        )

    everything = [case.id for case in part.cases]
    wrong = [case for case in everything if case in faulty.wrong]
    sound = [case for case in everything if case not in faulty.wrong]
    yield share("fact at rank 1", "high", "questions", everything, faulty.first)
    yield share("at rank 1 and true", "high", "questions", everything, faulty.true)
    yield share("at rank 1, wrong and not flagged", "low", "questions whose copy is wrong", wrong, faulty.lying)
    yield share("wrong copies flagged", "high", "wrong copies", wrong, faulty.flagged)
    twins = {f"{case} twin" for case in repaired.flagged if case in faulty.wrong}
    accused = frozenset(twins | (faulty.flagged - faulty.wrong))
    names_of_twins = [f"{case} twin" for case in wrong]
    yield share("clean copies accused", "low", "clean copies", [*names_of_twins, *sound], accused)
    yield share("clean copies accused", "low", "clean twins", names_of_twins, accused, copies="clean twins")
    yield share("clean copies accused", "low", "such copies", sound, accused, copies="sound, but may look wrong")
    if names:
        flagged = [case for case in wrong if case in faulty.flagged]
        yield share("true value named", "high", "wrong copies that are flagged", flagged, faulty.named)
    for kind in Kind:
        of_kind = [case.id for case in part.cases if case.kind is kind]
        measure, better = ("wrong copies flagged", "high") if kind.wrong else ("clean copies accused", "low")
        yield share(measure, better, "copies of this kind", of_kind, faulty.flagged, kind=kind.value)
    for language in sorted({case.language for case in part.cases}):
        of_language = [case.id for case in part.cases if case.language == language and case.kind.wrong]
        yield share("wrong copies flagged", "high", "wrong copies", of_language, faulty.flagged, language=language)
