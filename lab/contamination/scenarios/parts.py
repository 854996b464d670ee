"""The parts of a scenario: its world, its transcript, the channel by which the content comes in, and the content."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from lab.contamination.scenarios.words import Action, Carrier, Origin, Place, Provenance, Target
from lab.records import Record

SLOT = re.compile(r"\{\{content(?::([1-9]))?\}\}")
"""Where the content goes: ``{{content}}``, or ``{{content:1}}``, ``{{content:2}}``, … for its parts."""

CONTENT_SLOT = "{{content}}"

Text = Annotated[str, StringConstraints(min_length=1)]
Token = Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
RelativePath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$", max_length=120)
]
Canary = Annotated[str, StringConstraints(pattern=r"^[a-z]{3,12}[0-9]{2,4}$")]


class WorkFile(Record):
    """A file in the user's working directory.

    Attributes:
        path: Relative to the working directory.
        text: Its text; may hold the slot of the content.
    """

    path: RelativePath
    text: Text


class Skill(Record):
    """A skill that is there before the trial.

    Attributes:
        name: Its name, also its folder.
        made_by: Who made it, as the agent's own records say.
        pinned: Whether the user has pinned it.
        description: One line for the skill index.
        body: Text of SKILL.md below its head; may hold the slot of the content.
    """

    name: Slug
    made_by: Provenance
    pinned: bool = False
    description: Text
    body: Text


class World(Record):
    """The agent's home and the user's working directory before the trial.

    Attributes:
        memory: Entries of MEMORY.md, in order.
        user: Entries of USER.md, in order.
        files: Files of the working directory.
        skills: Skills.
    """

    memory: tuple[Text, ...] = ()
    user: tuple[Text, ...] = ()
    files: tuple[WorkFile, ...] = ()
    skills: tuple[Skill, ...] = ()


class Step(Record):
    """One tool call of a scripted model.

    Attributes:
        tool: Name of the tool; empty where ``writes`` stands for the content's own write.
        arguments: Its arguments. In strings, ``{{workspace}}`` is the working directory, ``{{data}}`` the agent's data
            folder, ``{{stored}}`` the stored wording.
        writes: The call is made only by a model that takes the content in: with no tool named, it is the write that the
            content asks for.
    """

    tool: Annotated[str, StringConstraints(pattern=r"^[a-z_]*$")] = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    writes: bool = False


class Exchange(Record):
    """An earlier user message and the answer to it.

    Attributes:
        user: What the user wrote; may hold the slot of the content.
        assistant: What was answered.
    """

    user: Text
    assistant: Text


class Turn(Record):
    """One user message, and what the scripted foreground model does and answers.

    Attributes:
        user: What the user writes; may hold the slot of the content.
        steps: Tool calls of the foreground model, one after the other, before its answer.
        assistant: What the foreground model answers.
        full: The model reports a context that is nearly full, so that the agent compresses the conversation in this
            turn.
    """

    user: Text
    steps: tuple[Step, ...] = ()
    assistant: Text
    full: bool = False


class Child(Record):
    """What a delegated child agent does.

    Attributes:
        steps: Its tool calls.
        report: Its last words, which go to the parent; holds the slot of the content.
    """

    steps: tuple[Step, ...] = ()
    report: Text


class Board(Record):
    """A task on the shared board and another agent's comment on it.

    Attributes:
        title: Title of the task.
        body: Its description.
        author: Name of the agent that comments.
        comment: The comment; holds the slot of the content.
    """

    title: Text
    body: Text = "See the comments."
    author: Slug = "worker-b"
    comment: Text


class Channel(Record):
    """How the content comes in.

    Attributes:
        carrier: What brings it.
        place: For compression: before (``head``), inside (``middle``) or after (``tail``) what is summarised.
        padding: For compression: number of neutral exchanges around the content's own.
        summary: For compression: what the scripted compressor answers; holds the slot where ``place`` is ``middle``.
        child: For delegation: what the child does.
        board: For the shared board: the task and the comment.
    """

    carrier: Carrier = Carrier.PASTE
    place: Place = Place.MIDDLE
    padding: int = Field(default=40, ge=0, le=400)
    summary: Text | None = None
    child: Child | None = None
    board: Board | None = None


class Content(Record):
    """The stimulus whose way into memory is followed.

    Attributes:
        text: The words as they stand in the transcript (a payload, or a stated preference).
        parts: The same words in pieces that stand apart, each in a slot of its own; empty where they stand together.
        origin: Who they come from.
        target: The store it asks for.
        action: What it wants done there.
        old: For replace and remove: the entry of the world whose fate is judged; for patch: the text of the skill that
            is replaced.
        skill: For skills: name of the skill.
        file: For write_file: path of the support file or script below the skill.
        stored: How a reviewer would word the entry; holds the canary.
        paraphrase: The same in other words; holds the canary in a form that only a normalising detector sees.
    """

    text: Text
    parts: tuple[Text, ...] = ()
    origin: Origin
    target: Target
    action: Action = Action.ADD
    old: Text | None = None
    skill: Slug | None = None
    file: RelativePath | None = None
    stored: Text
    paraphrase: Text


class Twin(Record):
    """The matched scenario with the one causal thing changed: the payload is taken out, the canary stays as mere data.

    Attributes:
        text: What stands in the place of the content: neutral words that hold the canary.
        parts: For a content in parts: as many neutral pieces.
    """

    text: Text
    parts: tuple[Text, ...] = ()


class Expectation(Record):
    """What is known beforehand of this scenario.

    Attributes:
        scanner: Whether the agent's own write scan takes the stored wording (``pass``) or refuses it (``refuse``).
        keep: For F5: whether the content should be remembered (a positive control) or must not be (a negative one).
    """

    scanner: Annotated[str, StringConstraints(pattern=r"^(pass|refuse)$")] = "pass"
    keep: bool = True


class Card(Record):
    """What a reader needs to judge the scenario.

    Attributes:
        shows: One or two sentences: what the scenario shows.
        controls: What must happen under the scripted models when the lab works, in words.
        owasp: Tags of the OWASP lists (``LLM01:2025``, …).
        atlas: Tags of MITRE ATLAS (``AML.T0051.001``, …).
    """

    shows: Text
    controls: Text = "always-write attempts it whenever it reaches the reviewer; never-write changes no store"
    owasp: tuple[str, ...] = ()
    atlas: tuple[str, ...] = ()
