"""Findings: each distinct mechanism by which content persisted past a guard, or a preference was lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.contamination.asymmetry import Area, Operation, Reading, Row, asymmetry_table, listed, operation_of
from lab.contamination.mechanisms.case import (
    Around,
    Case,
    FindingKind,
    Rule,
    Sighting,
    cases_of,
    from_attempts,
    setups_of,
    worlds_of,
)
from lab.contamination.mechanisms.guards import GUARD_RULES
from lab.contamination.mechanisms.losses import LOSS_RULES
from lab.contamination.mechanisms.reach import REACH_RULES
from lab.contamination.mechanisms.skills import SKILL_RULES
from lab.contamination.scenarios.scenario import Scenario
from lab.records import Decision, Evidence, Record, TrialResult

RULES: tuple[Rule, ...] = (*GUARD_RULES, *SKILL_RULES, *LOSS_RULES, *REACH_RULES)
_MOST_EVIDENCE = 6


class Where(Record):
    """A build and setup in which a mechanism was seen.

    Attributes:
        trials: Trials that show it there.
    """

    build: str
    setup: str
    trials: tuple[str, ...]


class Finding(Record):
    """One mechanism.

    Attributes:
        key: Stable name, made of the rule's name and of what tells this mechanism from others of the rule.
        kind: What it is about.
        statement: One sentence.
        places: Builds and setups in which it was seen.
        beside: Trials that show the other half, where it takes two: the refusal of what was taken elsewhere.
        smallest: The trial with the smallest scenario that shows it.
        scenario: That scenario.
        characters: How long it is; None where the scenarios were not at hand.
        evidence: Where in the folder of the smallest trial it is shown.
        void: All its trials belong to families that a failed control makes void.
    """

    key: str
    kind: FindingKind
    statement: str
    places: tuple[Where, ...]
    beside: tuple[str, ...] = ()
    smallest: str
    scenario: str
    characters: int | None = None
    evidence: tuple[Evidence, ...] = ()
    void: bool = False

    @property
    def trials(self) -> tuple[str, ...]:
        """All trials that show it."""
        return tuple(t for place in self.places for t in place.trials)


def find_mechanisms(
    results: Iterable[TrialResult], lock: Mapping[str, Any], scenarios: Mapping[str, Scenario] | None = None
) -> tuple[Finding, ...]:
    """Applies every rule to every valid trial other than twins.

    Args:
        results: Results of a run, of any status and in any order.
        lock: The run's lock, for its setups.
        scenarios: Scenarios by id; without them rules that need one stay silent.

    Returns:
        Findings by kind and key.
    """
    told = list(results)
    cases = cases_of(told, setups_of(lock), scenarios or {})
    around = Around(cases)
    found = []
    for rule in RULES:
        seen: dict[tuple[str, ...], list[tuple[Case, Sighting]]] = {}
        for case in cases:
            for sighting in rule.find(case, around):
                seen.setdefault(sighting.variant, []).append((case, sighting))
        found += [
            _finding(rule.key, rule.kind, rule.statement.format(*(v[:80] for v in variant)), variant, sightings)
            for variant, sightings in sorted(seen.items())
        ]
    found += _one_way(
        asymmetry_table(told, lock, worlds_of(scenarios) if scenarios else None), {c.result.trial: c for c in cases}
    )
    order = list(FindingKind)
    return tuple(sorted(found, key=lambda f: (order.index(f.kind), f.key)))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]


def _finding(
    key: str, kind: FindingKind, statement: str, variant: Sequence[str], sightings: Sequence[tuple[Case, Sighting]]
) -> Finding:
    # A scenario that is not at hand is of unknown size, so it is never called the smallest beside one that is.
    case, first = min(sightings, key=lambda s: (s[0].size is None, s[0].size or 0, s[0].result.trial))
    places: dict[tuple[str, str], set[str]] = {}
    for other, _ in sightings:
        places.setdefault(other.place, set()).add(other.result.trial)
    return Finding(
        key=":".join([key, *(_slug(str(v)) for v in variant)]),
        kind=kind,
        statement=statement,
        places=tuple(Where(build=b, setup=s, trials=tuple(sorted(ids))) for (b, s), ids in sorted(places.items())),
        beside=tuple(sorted({t for _, s in sightings for t in s.beside})),
        smallest=case.result.trial,
        scenario=case.result.scenario,
        characters=case.size,
        evidence=first.evidence[:_MOST_EVIDENCE],
    )


def _one_way(rows: Iterable[Row], cases: Mapping[str, Case]) -> list[Finding]:
    """What the table of the memory shows as a finding: what goes in unasked cannot be changed or taken out so."""
    seen: dict[tuple[str, str], list[tuple[Case, Sighting]]] = {}
    held: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row.reading(Area.MEMORY) is not Reading.CHANGES_HELD:
            continue
        memory = [c for c in row.cells if not c.operation.startswith("skill ")]
        adds = [t for c in memory if c.operation is Operation.ADD for told in c.told for t in told.trials]
        for cell in memory:
            for told in cell.held:
                variant = (row.origin, told.decision.value)
                for case in (cases[t] for t in told.trials if t in cases):
                    beside = _comparable(case, told.decision, [cases[t] for t in adds if t in cases])
                    if beside:
                        held.setdefault(variant, {})[cell.operation.value] = None
                        shown = [a for a in case.decided(told.decision) if operation_of(a) is cell.operation]
                        sighting = Sighting(variant, from_attempts(shown), beside)
                        seen.setdefault(variant, []).append((case, sighting))
    made = []
    for (origin, decision), sightings in sorted(seen.items()):
        same = " to the same file" if decision == Decision.REFUSED_DRIFT else ""
        what = listed(list(held[origin, decision]))
        statement = f"In the memory, {what} by the {origin} ended as {decision}, while its add{same} was applied."
        made.append(_finding("one-way", FindingKind.CONTAMINATION, statement, (origin, decision), sightings))
    return made


def _comparable(case: Case, decision: Decision, adds: Sequence[Case]) -> tuple[str, ...]:
    """Trials that show that adding was free where this was held back.

    Drift is a state of the file: there, only an addition to the same file can be set against a refused change.
    """
    if decision is Decision.REFUSED_DRIFT:
        adds = [a for a in adds if case.scenario and a.scenario and a.scenario.world == case.scenario.world]
    return tuple(a.result.trial for a in adds)[:3]
