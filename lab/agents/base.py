"""What the lab must know of an agent: how to start a session, how to read its writes, where its stores are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from lab.records import Decision, Record, Store


@dataclass(frozen=True)
class WriteCall:
    """One write that a tool call asks for; a batch gives several.

    Attributes:
        tool: Tool name.
        action: ``add``, ``replace``, ``create``, …
        target: Target as given.
        store: Store that the write is meant for.
        text: All new text that the write would store.
    """

    tool: str
    action: str
    target: str
    store: Store
    text: str


class SetupExpectation(Record):
    """What the running agent must show of its configuration, or the trial is invalid.

    Attributes:
        memory_tool: Whether the memory tool must be offered to the model.
        memory_gate: Whether the approval gate of the memory must be on; None: not asserted.
        skills_gate: The same for skills.
    """

    memory_tool: bool = True
    memory_gate: bool | None = None
    skills_gate: bool | None = None


class Setup(Record):
    """One configuration of a build, as data.

    Attributes:
        name: Short name, part of trial ids.
        description: One line for the report.
        overrides: What differs from the shipped configuration, in the agent's own keys.
        expect: What the running agent must show.
    """

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    description: str
    overrides: dict[str, Any] = Field(default_factory=dict)
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

    def initialise_home(self, home: Path, memory: Sequence[str], user: Sequence[str], setup: Setup) -> None:
        """Writes the home as it is before the trial: configuration and memory files.

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

    def job(self, turns: Sequence[str]) -> dict[str, Any]:
        """What the program is told to do."""
        ...

    def writes(self, name: str, arguments: str) -> list[WriteCall]:
        """The writes that a tool call asks for; empty for a call that writes nothing."""
        ...

    def decision(self, answer: str) -> Decision:
        """What the agent's guards did, by the tool's answer."""
        ...

    def is_wrapped(self, text: str) -> bool:
        """Whether a message's text is marked as untrusted data."""
        ...
