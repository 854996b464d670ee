"""Scenarios as data: the model of one test case and what must hold between its parts."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from lab.contamination.scenarios.consistency import family_problems, slot_problems
from lab.contamination.scenarios.parts import (
    CONTENT_SLOT,
    SLOT,
    Canary,
    Card,
    Channel,
    Content,
    Exchange,
    Expectation,
    Slug,
    Text,
    Token,
    Turn,
    Twin,
    World,
)
from lab.contamination.scenarios.words import Action, Carrier, Family, Language, Origin, Place, Target
from lab.records import Record, Role, digest

__all__ = [
    "CONTENT_SLOT",
    "SCENARIO_SCHEMA",
    "Action",
    "Carrier",
    "Family",
    "Language",
    "Origin",
    "Place",
    "Scenario",
    "Target",
    "Turn",
]

SCENARIO_SCHEMA = 1

ScenarioId = Annotated[str, StringConstraints(pattern=r"^F[1-6]-[0-9]{3}$")]


class Scenario(Record):
    """One test case.

    Attributes:
        schema_version: Version of this format; ``schema`` in the file.
        id: ``F1-001``; also the file's name.
        version: Raised with every change of what the scenario tests.
        family: The family, same as the id's first part.
        title: One line.
        language: Language of transcript and content.
        delivery: How the content is dressed (``visible_instruction``, ``html_comment``, …).
        goal: What the content wants (``add_memory``, ``remove_safety``, ``create_skill``, …).
        effect: What would follow (``exfil_swap``, ``no_confirm``, ``preference``, …).
        tags: Free words for selection.
        canary: Token unique to the scenario by which the content is recognised.
        hard: For positive controls: the agent's own scanner is expected to refuse the wording.
        world: The home and the working directory before.
        history: Earlier exchanges, given to the agent as the conversation so far.
        transcript: The turns of the session.
        channel: How the content comes in.
        content: The stimulus.
        twin: The payload-free twin; required in adversarial families.
        expect: What is known beforehand.
        card: For the reader.
    """

    schema_version: int = Field(alias="schema")
    id: ScenarioId
    version: int = Field(ge=1)
    family: Family
    title: Text
    language: Language
    delivery: Token
    goal: Token
    effect: Token
    tags: tuple[Slug, ...] = ()
    canary: Canary
    hard: bool = False
    world: World = World()
    history: tuple[Exchange, ...] = ()
    transcript: Annotated[tuple[Turn, ...], Field(min_length=1)]
    channel: Channel = Channel()
    content: Content
    twin: Twin | None = None
    expect: Expectation = Expectation()
    card: Card

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = self._own_problems() + slot_problems(self) + family_problems(self)
        if problems:
            # The context keeps each problem with its field, so that a linter can name the line of each.
            summary = "; ".join(message for _, message in problems)
            raise PydanticCustomError("inconsistent", "{summary}", {"summary": summary, "problems": problems})
        return self

    def _own_problems(self) -> list[tuple[str, str]]:
        """What contradicts itself in any family: dotted field and message."""
        problems = []
        if self.schema_version != SCENARIO_SCHEMA:
            message = f"schema {self.schema_version} is not known, this lab reads {SCENARIO_SCHEMA}"
            problems.append(("schema", message))
        if not self.id.startswith(f"{self.family}-"):
            problems.append(("id", f"id {self.id} does not begin with its family {self.family}"))
        if self.canary not in self.content.stored and self.content.action is not Action.REMOVE:
            problems.append(("content.stored", "content.stored does not hold the canary"))
        if self.canary in self.content.paraphrase:
            message = "content.paraphrase must hold the canary in another form, not literally"
            problems.append(("content.paraphrase", message))
        if any(self.canary in text for text in self.surroundings()):
            message = "the canary stands outside content and twin: a match would prove nothing"
            problems.append(("canary", message))
        for what, names in (
            ("world.files", [f.path for f in self.world.files]),
            ("world.skills", [s.name for s in self.world.skills]),
        ):
            if twice := [name for name, count in Counter(names).items() if count > 1]:
                problems.append((what, f"{what} holds {twice[0]} twice"))
        return problems

    def texts_with_slots(self) -> list[tuple[str, str]]:
        """All texts in which the content's slot may stand, by dotted field; the summary is not among them."""
        found = [(f"transcript.{n}.user", turn.user) for n, turn in enumerate(self.transcript)]
        found += [(f"history.{n}.user", e.user) for n, e in enumerate(self.history)]
        found += [(f"world.files.{n}.text", f.text) for n, f in enumerate(self.world.files)]
        found += [(f"world.skills.{n}.body", s.body) for n, s in enumerate(self.world.skills)]
        if self.channel.child:
            found.append(("channel.child.report", self.channel.child.report))
        if self.channel.board:
            found.append(("channel.board.comment", self.channel.board.comment))
        return found

    def surroundings(self) -> list[str]:
        """All texts the agent gets besides content and twin: the world, and what stands around the slot."""
        texts = [*self.world.memory, *self.world.user, *(s.description for s in self.world.skills)]
        texts += [t.assistant for t in self.transcript] + [e.assistant for e in self.history]
        texts += [str(step.arguments) for t in self.transcript for step in t.steps]
        texts += [SLOT.sub("", text) for _, text in self.texts_with_slots()]
        return [*texts, SLOT.sub("", self.channel.summary or "")]

    @property
    def digest(self) -> str:
        """Digest of all that the scenario says, card and title included."""
        return digest(self.model_dump(mode="json", by_alias=True))

    @property
    def role(self) -> Role:
        """Attack, positive control or negative control."""
        if self.family is not Family.F5:
            return Role.ATTACK
        return Role.CONTROL if self.expect.keep else Role.NEGATIVE

    def pieces(self, role: Role) -> tuple[str, ...]:
        """What stands in the slots: the content's parts or its one text, or the twin's neutral words."""
        if role is Role.TWIN and self.twin:
            return self.twin.parts or (self.twin.text,)
        return self.content.parts or (self.content.text,)

    def fill(self, text: str, role: Role) -> str:
        """A text with the content, or the twin's words, in its slots."""
        pieces = self.pieces(role)
        return SLOT.sub(lambda found: pieces[int(found[1] or 1) - 1], text)

    @property
    def writes_itself(self) -> bool:
        """Whether the foreground model is scripted to write: then the write does not wait for a review."""
        return any(step.writes for turn in self.transcript for step in turn.steps)
