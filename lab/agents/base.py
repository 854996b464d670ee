"""What the lab must know of an agent: how to start a session, how to read its writes, where its stores are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from lab.gateway.replies import ToolCall
from lab.gateway.request import Schemas
from lab.records import Decision, Record, Store


@dataclass(frozen=True)
class WriteCall:
    """One write that a tool call asks for; a batch gives several.

    Attributes:
        tool: Tool name.
        action: ``add``, ``replace``, ``create``, …; ``batch.add`` and its like for a step of a batch.
        target: Target as given.
        store: Store that the write is meant for.
        text: All new text that the write would store.
        old: The old text that it names, to be replaced or removed.
    """

    tool: str
    action: str
    target: str
    store: Store
    text: str
    old: str = ""


@dataclass(frozen=True)
class WriteIntent:
    """What a content wants written, in the lab's words; the adapter knows the calls for it.

    Attributes:
        store: Where.
        action: ``add``, ``replace``, ``remove``, ``create``, ``patch`` or ``write_file``.
        old: Old text that is replaced or removed.
        skill: Name of the skill.
        file: Path of a support file below the skill.
    """

    store: Store
    action: str = "add"
    old: str = ""
    skill: str = ""
    file: str = ""


@dataclass(frozen=True)
class SeedSkill:
    """A skill that is there before the trial.

    Attributes:
        name: Its name.
        made_by: ``agent``, ``user``, ``bundled`` or ``hub``.
        pinned: Whether the user has pinned it.
        description: One line for the skill index.
        body: Text below the head.
    """

    name: str
    made_by: str
    pinned: bool
    description: str
    body: str


@dataclass(frozen=True)
class Seed:
    """What the home holds before the trial.

    Attributes:
        memory: Entries of the agent's notes.
        user: Entries of the user's profile.
        skills: Skills.
        files: Files of the user's working directory, by relative path.
    """

    memory: Sequence[str] = ()
    user: Sequence[str] = ()
    skills: Sequence[SeedSkill] = ()
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SessionPlan:
    """What one session does, in the lab's words.

    Attributes:
        turns: The user's turns.
        history: Earlier user messages and the answers to them.
        delegation: ``inline`` where a child's report is to come as the tool's result, ``background`` where it is to
            come back as a message; empty without delegation.
        board: Title, body, author and comment of a task on the shared board.
        crash: The process is killed as soon as the reviews have ended.
    """

    turns: Sequence[str]
    history: Sequence[tuple[str, str]] = ()
    delegation: str = ""
    board: Mapping[str, str] | None = None
    crash: bool = False


class PendingAction(StrEnum):
    """What the operator does with staged writes after the session."""

    NONE = "none"
    APPROVE = "approve"
    REJECT = "reject"
    APPROVE_TWICE = "approve-twice"
    APPROVE_AFTER_CRASH = "approve-after-crash"


Gate = bool | Literal["absent"] | None
"""On, off (a gate that a build does not have is off, too), ``absent`` for just that; None: not asserted."""


class SetupExpectation(Record):
    """What the running agent must show of its configuration, or the trial is invalid.

    Attributes:
        memory_tool: Whether the memory tool must be offered to the model; None: not asserted.
        memory_gate: State of the approval gate of the memory.
        skills_gate: The same for skills.
        skill_guard: State of the scan of skills that the agent writes.
        memory_enabled: Whether the agent holds a memory of notes.
        provider: Name of the external memory provider that must be active; empty for none.
        auto_extract: Whether that provider takes facts from a session by itself.
        reviewer_model: Model name under which reviews must come in.
    """

    memory_tool: bool | None = True
    memory_gate: Gate = None
    skills_gate: Gate = None
    skill_guard: Gate = None
    memory_enabled: bool | None = None
    provider: str | None = None
    auto_extract: bool | None = None
    reviewer_model: str | None = None


class Setup(Record):
    """One configuration of a build, as data.

    Attributes:
        name: Short name, part of trial ids.
        description: One line for the report.
        overrides: What differs from the shipped configuration, in the agent's own keys.
        raw_config: Text written as the configuration file instead, broken as it may be.
        prior_turns: Neutral exchanges that come before every session: some reviews are due only then.
        guards: Guards that the user believes to be on: ``memory_gate``, ``skills_gate``, ``skill_guard``.
        unattended: Stores that this setup may change without any write call of a model.
        pending: What the operator does with staged writes after the session.
        expect: What the running agent must show.
    """

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    description: str
    overrides: dict[str, Any] = Field(default_factory=dict)
    raw_config: str | None = None
    prior_turns: int = Field(default=0, ge=0, le=100)
    guards: tuple[Literal["memory_gate", "skills_gate", "skill_guard"], ...] = ()
    unattended: tuple[Store, ...] = ()
    pending: PendingAction = PendingAction.NONE
    expect: SetupExpectation = SetupExpectation()


class StoreMap(Protocol):
    """Where in the home the stores are."""

    def store_of(self, path: str) -> Store:
        """The store that a file of the home belongs to; ``path`` is relative to the home."""
        ...

    def stores_below(self, path: str) -> set[Store]:
        """The stores that lie at or below a path, or that hold it: what is out of sight when it is a link."""
        ...


class Agent(StoreMap, Protocol):
    """An adapter for one product."""

    product: str
    workspace: str
    """The user's working directory, as the sandbox sees it."""
    data: str
    """The agent's data folder, as the sandbox sees it."""
    delegate_tool: str
    fact_tables: tuple[str, ...]
    """Tables of the fact store whose rows are what it remembers."""

    def initialise_home(self, home: Path, seed: Seed, setup: Setup) -> None:
        """Writes the home as it is before the trial.

        Raises:
            OSError: It cannot be written.
        """
        ...

    def command(self) -> tuple[str, ...]:
        """The program to run inside the sandbox."""
        ...

    def warm_command(self) -> tuple[str, ...]:
        """The program of a sandbox that imports the agent once and forks a session at a time."""
        ...

    def environment(self) -> Mapping[str, str]:
        """The complete environment of that program."""
        ...

    def job(self, plan: SessionPlan) -> dict[str, Any]:
        """What the program is told to do in a session."""
        ...

    def pending_job(self, action: PendingAction) -> dict[str, Any]:
        """What the program is told to do with staged writes."""
        ...

    def compose(self, intent: WriteIntent, wording: str, schemas: Schemas) -> list[ToolCall]:
        """The calls by which a model of this agent writes, given the tools that it is offered."""
        ...

    def batched(self, calls: Sequence[ToolCall], schemas: Schemas) -> list[ToolCall]:
        """The same writes as one batch, where the offered tools have one."""
        ...

    def recall(self, intent: WriteIntent) -> list[ToolCall]:
        """Calls by which a fresh session opens what it does not have in its prompt."""
        ...

    def writes(self, name: str, arguments: str) -> list[WriteCall]:
        """The writes that a tool call asks for; empty for a call that writes nothing."""
        ...

    def comparable(self, request: bytes) -> bytes:
        """A request without what differs between two sessions that are the same: random ids, times, the date."""
        ...

    def decision(self, answer: str) -> Decision:
        """What the agent's guards did, by the tool's answer."""
        ...

    def is_wrapped(self, text: str) -> bool:
        """Whether a message's text is marked as untrusted data."""
        ...
