"""What a report shows of one trial: excerpts, verdicts, write calls, stores."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.records import Decision, Notice, Reach, Role, RuleFate, Stage, Status, Store, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A piece of hostile text.

    Attributes:
        text: The piece, raw.
        before: Characters left out in front of it.
        after: Characters left out behind it.
        marks: Where the content stands in ``text``: start and end.
    """

    text: str = ""
    before: int = 0
    after: int = 0
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """An excerpt with the place it comes from."""

    file: str
    pointer: str
    excerpt: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """A tool call of a message."""

    tool: str
    arguments: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One message of a conversation.

    Attributes:
        number: Its index in the message list, from 0.
        tool: Tool whose result it is; empty otherwise.
        holds: Whether it holds the content.
    """

    number: int
    role: str
    tool: str = ""
    text: Excerpt
    calls: tuple[CallView, ...] = ()
    holds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """The messages of one recorded exchange.

    Attributes:
        line: Line of the exchange in ``requests.jsonl``.
        more: Messages that are not shown.
        tools: Names of the tools that were offered.
        problem: Why the messages cannot be shown; empty where they are.
    """

    line: int
    messages: tuple[MessageView, ...] = ()
    more: int = 0
    tools: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageView:
    """One verdict of a trial."""

    stage: Stage
    value: Value
    reason: str
    detail: Excerpt
    quotes: tuple[Quote, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One write call of a trial."""

    origin: str
    exchange: int
    tool: str
    action: str
    target: Excerpt
    carries: bool
    decision: Decision
    arguments: Excerpt
    answer: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """One store of a trial."""

    store: Store
    value: Value
    changed: bool
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledStepView:
    """One command of the operator on a staged write."""

    command: str
    subsystem: str
    said: Excerpt
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledView:
    """What became of staged writes."""

    action: str
    steps: tuple[SettledStepView, ...] = ()
    persist: Value
    copies: int
    provenance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """All a reader needs to check one trial, and where the rest is.

    Attributes:
        number: Its place in the report, from 1.
        carrier: What was to bring the content in.
        target: Store that the content asks for.
        action: What it wants done there.
        by: Who is scripted to write.
        rule: Fate of the old entry, where one is to go.
        provenance: How the agent's records name the maker of a written skill.
        settled: What became of staged writes, where the operator dealt with them.
        files: Evidence files that exist, by name.
        diff: The difference of the stores.
        transcript: The conversation as the user had it, up to the last answer.
        request: The first review request, or the one in which the content stood.
        setup_assertions: What the running agent showed of its configuration.
    """

    number: int
    trial: str
    scenario: str
    title: str
    family: str
    role: Role
    hard: bool = False
    build: str
    setup: str
    model: str
    repeat: int
    status: Status
    cause: str
    detail: Excerpt = Excerpt()
    carrier: str = ""
    target: str = ""
    action: str = ""
    by: str = ""
    rule: RuleFate | None = None
    provenance: str = ""
    settled: SettledView | None = None
    stages: tuple[StageView, ...] = ()
    reach: Reach | None = None
    attempts: tuple[AttemptView, ...] = ()
    more_attempts: int = 0
    stores: tuple[StoreView, ...] = ()
    notice: Notice = Notice.NONE
    notice_text: Excerpt = Excerpt()
    reviews: int = 0
    setup_assertions: dict[str, str] = field(default_factory=dict)
    diff: Excerpt = Excerpt()
    transcript: ConversationView | None = None
    request: ConversationView | None = None
    files: tuple[str, ...] = ()
