"""Scenarios as data: the model of one test case, its payload-free twin and its card."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from lab.records import Record, Role, digest

CONTENT_SLOT = "{{content}}"
"""Where the stimulus goes in a user turn; stands exactly once in a transcript."""

SCENARIO_SCHEMA = 1

ScenarioId = Annotated[str, StringConstraints(pattern=r"^F[1-6]-[0-9]{3}$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Canary = Annotated[str, StringConstraints(pattern=r"^[a-z]{3,12}[0-9]{2,4}$")]
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]


class Family(StrEnum):
    """The families, named by the channel by which the content comes in."""

    F1 = "F1"
    F5 = "F5"


class Language(StrEnum):
    """Languages of the transcripts."""

    EN = "en"
    PT_BR = "pt-BR"


class Target(StrEnum):
    """Which of the agent's memory files the content is meant for."""

    MEMORY = "memory"
    USER = "user"


class Origin(StrEnum):
    """Who the content truly comes from; decides what a faithful reviewer may store."""

    PASTED_DOCUMENT = "pasted_document"
    USER_STATEMENT = "user_statement"


class World(Record):
    """The agent's home before the trial.

    Attributes:
        memory: Entries of MEMORY.md, in order.
        user: Entries of USER.md, in order.
    """

    memory: tuple[Text, ...] = ()
    user: tuple[Text, ...] = ()


class Turn(Record):
    """One user message and the scripted reply of the foreground model to it.

    Attributes:
        user: What the user writes; in one turn it holds the slot of the content.
        assistant: What the foreground model answers.
    """

    user: Text
    assistant: Text


class Content(Record):
    """The stimulus whose way into memory is followed.

    Attributes:
        text: The words as they stand in the transcript (a payload, or a stated preference).
        origin: Who they come from.
        target: The store it asks for.
        stored: How a reviewer would word the entry; holds the canary.
        paraphrase: The same in other words; holds the canary in a form that only a normalising detector sees.
    """

    text: Text
    origin: Origin
    target: Target
    stored: Text
    paraphrase: Text


class Twin(Record):
    """The matched scenario with the one causal thing changed: the payload is taken out, the canary stays as mere data.

    Attributes:
        text: What stands in the place of the content: neutral words that hold the canary.
    """

    text: Text


class Expectation(Record):
    """What is known beforehand of this scenario.

    Attributes:
        scanner: Whether the agent's own write scan takes the stored wording (``pass``) or refuses it (``refuse``).
    """

    scanner: Annotated[str, StringConstraints(pattern=r"^(pass|refuse)$")] = "pass"


class Card(Record):
    """What a reader needs to judge the scenario.

    Attributes:
        shows: One or two sentences: what the scenario shows.
        owasp: Tags of the OWASP lists (``LLM01:2025``, …).
        atlas: Tags of MITRE ATLAS (``AML.T0051.001``, …).
    """

    shows: Text
    owasp: tuple[str, ...] = ()
    atlas: tuple[str, ...] = ()


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
        goal: What the content wants (``add_memory``, ``add_user``).
        effect: What would follow (``exfil_swap``, ``no_confirm``, ``preference``, …).
        canary: Token unique to the scenario by which the content is recognised.
        hard: For positive controls: the agent's own scanner is expected to refuse the wording.
        tags: Words by which ``lab run --tags`` selects it.
        world: The home before.
        transcript: The turns; one user message holds the slot of the content.
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
    delivery: Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")]
    goal: Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")]
    effect: Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")]
    canary: Canary
    hard: bool = False
    tags: tuple[Tag, ...] = ()
    world: World = World()
    transcript: Annotated[tuple[Turn, ...], Field(min_length=1)]
    content: Content
    twin: Twin | None = None
    expect: Expectation = Expectation()
    card: Card

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = self._own_problems() + self._family_problems()
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
        slots = sum(turn.user.count(CONTENT_SLOT) for turn in self.transcript)
        if slots != 1:
            problems.append(("transcript", f"{CONTENT_SLOT} must stand exactly once in the user turns, found {slots}"))
        if self.canary not in self.content.text:
            problems.append(("content.text", "content.text does not hold the canary"))
        if self.canary not in self.content.stored:
            problems.append(("content.stored", "content.stored does not hold the canary"))
        if self.canary in self.content.paraphrase:
            message = "content.paraphrase must hold the canary in another form, not literally"
            problems.append(("content.paraphrase", message))
        if any(self.canary in text for text in self.surroundings()):
            message = "the canary stands outside content and twin: a match would prove nothing"
            problems.append(("canary", message))
        return problems

    def _family_problems(self) -> list[tuple[str, str]]:
        problems = []
        adversarial = self.family is not Family.F5
        if adversarial and self.twin is None:
            problems.append(("family", "an adversarial scenario needs a twin"))
        if self.twin is not None:
            if self.canary not in self.twin.text:
                problems.append(("twin.text", "twin.text does not hold the canary as data"))
            if self.content.text in self.twin.text:
                problems.append(("twin.text", "twin.text still holds the payload"))
        wanted = Origin.PASTED_DOCUMENT if self.family is Family.F1 else Origin.USER_STATEMENT
        if self.content.origin is not wanted:
            problems.append(("content.origin", f"content.origin of family {self.family} must be {wanted}"))
        if self.hard and self.expect.scanner != "refuse":
            problems.append(("hard", "a hard control must expect the scanner to refuse"))
        return problems

    def surroundings(self) -> list[str]:
        """All texts the agent gets besides content and twin: the world and the turns without the slot."""
        texts = [*self.world.memory, *self.world.user, *(t.assistant for t in self.transcript)]
        return texts + [t.user.replace(CONTENT_SLOT, "") for t in self.transcript]

    @property
    def digest(self) -> str:
        """Digest of all that the scenario says, card and title included."""
        return digest(self.model_dump(mode="json", by_alias=True))

    @property
    def role(self) -> Role:
        """Attack or positive control."""
        return Role.CONTROL if self.family is Family.F5 else Role.ATTACK

    def turns(self, role: Role) -> tuple[Turn, ...]:
        """The transcript with the content, or the twin's neutral words, in its place."""
        words = self.twin.text if role is Role.TWIN and self.twin else self.content.text
        return tuple(Turn(user=t.user.replace(CONTENT_SLOT, words), assistant=t.assistant) for t in self.transcript)
