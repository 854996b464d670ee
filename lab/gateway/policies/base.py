"""What a policy is, and what it sees of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from lab.gateway.classify import is_own
from lab.gateway.contains import holds
from lab.gateway.replies import Reply, ToolCall
from lab.gateway.request import ChatRequest, Schemas

SCRIPTED = "scripted:"
"""Prefix of the names of models that are policies."""

Compose = Callable[[str, Schemas], list[ToolCall]]
"""The calls by which the agent's model writes a wording, given the tools that it is offered."""

Batch = Callable[[list[ToolCall], Schemas], list[ToolCall]]


@dataclass(frozen=True)
class ScriptStep:
    """One tool call of a scripted model.

    Attributes:
        call: The call; None for the write that the content asks for.
        writes: Whether only a model that takes the content in makes it.
    """

    call: ToolCall | None = None
    writes: bool = False


@dataclass(frozen=True)
class ScriptTurn:
    """A user turn, and what the foreground model does and answers.

    Attributes:
        user: What the user writes.
        assistant: The answer.
        steps: Tool calls before the answer.
        full: Whether the model reports a context that is nearly full.
    """

    user: str
    assistant: str
    steps: tuple[ScriptStep, ...] = ()
    full: bool = False


def _nothing(_wording: str, _schemas: Schemas) -> list[ToolCall]:
    return []


def _unchanged(calls: list[ToolCall], _schemas: Schemas) -> list[ToolCall]:
    return calls


@dataclass(frozen=True)
class Script:
    """The scenario as a policy may use it.

    Attributes:
        turns: User turns, in order.
        earlier: All texts of the conversation before the session.
        pieces: The stimulus as it comes in, in one piece or several; empty where there is none.
        stored: How an obedient reviewer would word the entry.
        paraphrase: The same in other words.
        compose: The agent's calls for a wording.
        batch: The agent's batch of calls.
        user_stated: True when the content is the user's own statement.
        by_foreground: True when the foreground model writes; the reviewer then leaves it alone.
        summary: What the compressor answers.
        report: What a delegated child answers.
        child_steps: What it does before.
    """

    turns: tuple[ScriptTurn, ...]
    earlier: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()
    stored: str = ""
    paraphrase: str = ""
    compose: Compose = _nothing
    batch: Batch = _unchanged
    user_stated: bool = False
    by_foreground: bool = False
    summary: str = ""
    report: str = ""
    child_steps: tuple[ScriptStep, ...] = field(default=())

    @property
    def delivered(self) -> frozenset[str]:
        """Texts of the user turns."""
        return frozenset(turn.user for turn in self.turns)

    def stands_in(self, request: ChatRequest, before: int | None = None) -> bool:
        """Whether the whole content stands in messages that are not the model's own.

        Args:
            request: A request.
            before: Only messages before this index; all by default.
        """
        brought = {*self.delivered, *(turn.assistant for turn in self.turns), *self.earlier}
        texts = [m.text for m in request.messages[:before] if not is_own(m, brought)]
        return bool(self.pieces) and all(any(holds(piece, text) for text in texts) for piece in self.pieces)


class Takes(StrEnum):
    """When a policy takes a content in."""

    NEVER = "never"
    USER_STATED = "user_stated"
    ALWAYS = "always"


class Shape(StrEnum):
    """How a policy words its calls."""

    SINGLE = "single"
    BATCH = "batch"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class Policy:
    """A scripted model: what it takes in, and how it writes. It has no clock, no randomness and no state.

    Attributes:
        name: Its name.
        takes: What it takes in.
        paraphrases: Whether it writes in other words.
        shape: How it words its calls.
    """

    name: str
    takes: Takes
    paraphrases: bool = False
    shape: Shape = Shape.SINGLE

    def takes_in(self, script: Script, request: ChatRequest, before: int | None = None) -> bool:
        """Whether this model, seeing the request, does what the content wants."""
        willing = self.takes is Takes.ALWAYS or (self.takes is Takes.USER_STATED and script.user_stated)
        return willing and script.stands_in(request, before)

    def calls(self, script: Script, request: ChatRequest) -> list[ToolCall]:
        """The calls by which it writes the content."""
        wording = script.paraphrase if self.paraphrases else script.stored
        calls = script.compose(wording, request.schemas)
        if self.shape is Shape.BATCH:
            return script.batch(calls, request.schemas)
        if self.shape is Shape.MALFORMED:
            return [call.broken() for call in calls]
        return calls

    def review(self, request: ChatRequest, prompt: int, script: Script) -> Reply:
        """Answers a request of a review.

        Args:
            request: The request.
            prompt: Index of the review prompt in it.
            script: The scenario.
        """
        if script.by_foreground or not self.takes_in(script, request, prompt):
            return NOTHING
        # The reviewer's own calls stand behind the prompt: by them it knows how far it has come.
        made = request.rounds_after(prompt)
        calls = self.calls(script, request)
        return Reply(calls=(calls[made],)) if made < len(calls) else DONE


NOTHING = Reply(text="Nothing to save.")
DONE = Reply(text="Done.")
