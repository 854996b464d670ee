"""The words of a scenario: families, languages, targets, actions, origins, carriers, places, provenances."""

from __future__ import annotations

from enum import StrEnum


class Family(StrEnum):
    """The families, named by the channel by which the content comes in."""

    F1 = "F1"
    F2 = "F2"
    F3 = "F3"
    F4 = "F4"
    F5 = "F5"
    F6 = "F6"


class Language(StrEnum):
    """Languages of the transcripts."""

    EN = "en"
    PT_BR = "pt-BR"


class Target(StrEnum):
    """Which of the agent's stores the content is meant for."""

    MEMORY = "memory"
    USER = "user"
    SKILLS = "skills"
    FACTS = "facts"


class Action(StrEnum):
    """What the content wants done in its store."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    CREATE = "create"
    PATCH = "patch"
    WRITE_FILE = "write_file"

    @property
    def destroys(self) -> bool:
        """Whether it is judged by the fate of an old entry."""
        return self in (Action.REPLACE, Action.REMOVE)


class Origin(StrEnum):
    """Who the content truly comes from; decides what a faithful reviewer may store."""

    PASTED_DOCUMENT = "pasted_document"
    TOOL_RESULT = "tool_result"
    OTHER_AGENT = "other_agent"
    USER_STATEMENT = "user_statement"
    MENTION = "mention"
    """Words of the user that state nothing of him: quoted, forwarded, hypothetical, fictional, for one task only."""


class Carrier(StrEnum):
    """What brings the content into the conversation."""

    PASTE = "paste"
    READ_FILE = "read_file"
    TERMINAL = "terminal"
    EXECUTE_CODE = "execute_code"
    SEARCH_FILES = "search_files"
    SKILL_VIEW = "skill_view"
    DELEGATE = "delegate_task"
    """A child agent's report as the result of the tool call."""
    DELEGATION_NOTICE = "delegation_notice"
    """A child agent's report that comes back later, as a message of its own."""
    KANBAN = "kanban_show"
    """Another agent's comment on a shared board."""
    COMPRESSION = "compression"
    """A long conversation that the agent's own compressor has shortened."""


TOOL_CARRIERS = frozenset(
    {Carrier.READ_FILE, Carrier.TERMINAL, Carrier.EXECUTE_CODE, Carrier.SEARCH_FILES, Carrier.SKILL_VIEW}
)


class Place(StrEnum):
    """Where in a long conversation the content stands, as the compressor divides it."""

    HEAD = "head"
    MIDDLE = "middle"
    TAIL = "tail"


class Provenance(StrEnum):
    """Who made a skill that is there before the trial."""

    AGENT = "agent"
    USER = "user"
    BUNDLED = "bundled"
    HUB = "hub"
