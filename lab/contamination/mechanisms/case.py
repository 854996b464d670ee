"""What a rule of the findings looks at: one valid trial with its scenario and setup, and the trials around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from lab.agents.base import Setup
from lab.contamination.observe.fold import skeleton
from lab.contamination.scenarios.parts import Skill
from lab.contamination.scenarios.scenario import Scenario
from lab.records import Attempt, Decision, Evidence, Role, Stage, Status, Store, TrialResult, Value, digest

MEMORIES = (Store.MEMORY, Store.USER)
REVIEWERS = ("review", "delegate_review")
MEMORY_GATE, SKILLS_GATE, SKILL_GUARD = "memory_gate", "skills_gate", "skill_guard"
GATE_OF = {
    Store.MEMORY: MEMORY_GATE,
    Store.USER: MEMORY_GATE,
    Store.FACTS: MEMORY_GATE,
    Store.SKILLS: SKILLS_GATE,
}
"""The gate that a user expects to stand before a store."""


class FindingKind(StrEnum):
    """What a finding is about."""

    CONTAMINATION = "contamination"
    LOSS = "loss"
    MISREPORT = "misreport"
    BLINDSPOT = "harness-blindspot"
    REACH = "reach"
    """How foreign content came before the reviewer: context to the others, no persistence by itself."""


@dataclass(frozen=True)
class Case:
    """One valid trial.

    Attributes:
        result: Its result.
        scenario: Its scenario; None where the report is built without scenarios.
        setup: Its setup; None where the lock does not hold it.
    """

    result: TrialResult
    scenario: Scenario | None = None
    setup: Setup | None = None

    @property
    def place(self) -> tuple[str, str]:
        """Build and setup."""
        return self.result.build, self.result.setup

    @cached_property
    def carrying(self) -> tuple[Attempt, ...]:
        """The write attempts that carry the content."""
        return tuple(a for a in self.result.attempts if a.carries)

    @cached_property
    def applied(self) -> tuple[Attempt, ...]:
        """Those of them that the files show to have been applied."""
        return tuple(a for a in self.carrying if a.decision is Decision.APPLIED)

    @cached_property
    def holding(self) -> frozenset[Store]:
        """The stores of persistence that hold the content."""
        return frozenset(f.store for f in self.result.stores if f.store.is_persistence and f.value is Value.YES)

    def decided(self, *decisions: Decision) -> tuple[Attempt, ...]:
        """Carrying attempts that ended in one of the decisions."""
        return tuple(a for a in self.carrying if a.decision in decisions)

    def says(self, stage: Stage, value: Value = Value.YES) -> bool:
        """Whether a stage's verdict has a value."""
        return self.result.value(stage) is value

    def shown(self, name: str) -> str:
        """What the running agent showed of a gate or switch: ``on``, ``off``, ``absent``, or empty where nothing."""
        told = self.result.setup_assertions.get(name, "")
        return {"True": "on", "False": "off", "absent": "absent"}.get(told, "")

    @property
    def hostile(self) -> bool:
        """Whether the content must not be remembered."""
        return self.result.role in (Role.ATTACK, Role.NEGATIVE)

    @property
    def wanted(self) -> bool:
        """Whether the content should be remembered."""
        return self.result.role is Role.CONTROL

    @property
    def refusable(self) -> bool:
        """Whether the agent's own write scan is known beforehand to refuse the wording."""
        return self.result.hard or bool(self.scenario and self.scenario.expect.scanner == "refuse")

    def seeded(self, name: str) -> Skill | None:
        """The skill of that name that was there before the trial."""
        skills = self.scenario.world.skills if self.scenario else ()
        return next((s for s in skills if s.name == name), None)

    @cached_property
    def size(self) -> int | None:
        """Characters of all that the scenario puts into the session; None without the scenario."""
        scenario = self.scenario
        if scenario is None:
            return None
        role, channel = self.result.role, scenario.channel
        texts = [text for _, text in scenario.texts_with_slots()] + [channel.summary or ""]
        answers = [t.assistant for t in scenario.transcript] + [e.assistant for e in scenario.history]
        return sum(len(scenario.fill(text, role)) for text in texts) + sum(len(text) for text in answers)

    @cached_property
    def words(self) -> str:
        """The stored wording by its letters alone, the canary taken out: what differs in dress only is equal here."""
        if self.scenario is None:
            return ""
        text = self.scenario.content.stored.replace(self.scenario.canary, "")
        return re.sub(r"[\W_]+", "", skeleton(text))


@dataclass(frozen=True)
class Sighting:
    """One time that a rule was seen to hold.

    Attributes:
        variant: What tells this mechanism from others of the same rule; fills the places of the sentence.
        evidence: Where in the trial's folder it is shown.
        beside: Trials that show the other half, where it takes two.
    """

    variant: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    beside: tuple[str, ...] = ()


class Around:
    """All cases of a run, by where they are.

    Args:
        cases: Valid trials other than twins.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._by_place: dict[tuple[str, str], list[Case]] = {}
        for case in cases:
            self._by_place.setdefault(case.place, []).append(case)
        self._refused = {
            place: [c for c in mine if c.decided(Decision.REFUSED_SCAN)] for place, mine in self._by_place.items()
        }

    def here(self, case: Case) -> Sequence[Case]:
        """The cases under the same build and setup."""
        return self._by_place[case.place]

    def scan_refused(self, case: Case) -> Sequence[Case]:
        """The cases under the same build and setup whose content a scan refused."""
        return self._refused[case.place]


Find = Callable[[Case, Around], Iterable[Sighting]]


@dataclass(frozen=True)
class Rule:
    """One mechanism, derived from features of trials and from nothing else.

    Attributes:
        key: Stable name.
        kind: What it is about.
        statement: One sentence; `{0}`, ``{1}``, … stand for the variant.
        find: Where it is seen in a case.
    """

    key: str
    kind: FindingKind
    statement: str
    find: Find = field(repr=False)


def from_attempts(attempts: Iterable[Attempt]) -> tuple[Evidence, ...]:
    """Where the answers with these calls stand in the recording."""
    return tuple(
        Evidence(file="requests.jsonl", pointer=f"line {a.exchange} /response", excerpt=a.arguments[:200])
        for a in attempts
    )


def from_stores(case: Case, stores: Iterable[Store]) -> tuple[Evidence, ...]:
    """Where the stores hold the content."""
    wanted = set(stores)
    return tuple(e for f in case.result.stores if f.store in wanted for e in f.evidence)


def from_settled(case: Case) -> tuple[Evidence, ...]:
    """Where the operator's commands and their answers stand."""
    settled = case.result.settled
    steps = settled.steps if settled else ()
    told = tuple(
        Evidence(file="outcome-pending.json", pointer=f"/pending/{n}", excerpt=step.said[:200])
        for n, step in enumerate(steps)
    )
    return told + (settled.persist.evidence if settled else ())


def setups_of(lock: Mapping[str, object]) -> dict[str, Setup]:
    """The setups that a lock holds; one that cannot be read is left out, and rules that need it stay silent."""
    found = {}
    held = lock.get("setups")
    for name, body in held.items() if isinstance(held, Mapping) else ():
        try:
            found[str(name)] = Setup.model_validate({"name": name, "description": ""} | dict(body))
        except (TypeError, ValueError):
            continue
    return found


def worlds_of(scenarios: Mapping[str, Scenario]) -> dict[str, str]:
    """By scenario, a digest of the home before: equal where two scenarios begin with the same files."""
    return {name: digest(scenario.world.model_dump(mode="json")) for name, scenario in scenarios.items()}


def cases_of(
    results: Iterable[TrialResult], setups: Mapping[str, Setup], scenarios: Mapping[str, Scenario]
) -> list[Case]:
    """The valid trials other than twins, in the order of their ids."""
    counted = [r for r in results if r.status is Status.VALID and r.role is not Role.TWIN]
    return [Case(r, scenarios.get(r.scenario), setups.get(r.setup)) for r in sorted(counted, key=lambda r: r.trial)]
