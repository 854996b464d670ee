"""What one trial says: verdicts with their evidence, attempts, findings in stores, the whole result."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from lab.records.base import Record
from lab.records.words import Decision, Notice, Role, RuleFate, Stage, Status, Store, Value

RESULT_SCHEMA = 2
"""Version of the ``result.json`` format that this lab writes. Version 2 names the detectors."""

READABLE_RESULTS = (1, RESULT_SCHEMA)
"""Versions that are read; every other is refused."""


class Evidence(Record):
    """Where a verdict can be re-checked.

    Attributes:
        file: Path relative to the trial's folder.
        pointer: JSON pointer, line number or byte offset within it.
        excerpt: A short piece of the text around the match; hostile, escape it wherever it is shown.
    """

    file: str
    pointer: str = ""
    excerpt: str = ""


class Verdict(Record):
    """One judged stage.

    Attributes:
        value: One of the five values.
        reason: Stable code in snake case; required unless the value is ``yes`` or ``no``.
        detail: One line for a reader; may hold hostile text.
        evidence: References into the trial's folder; required for ``yes``.
    """

    value: Value
    reason: str = ""
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if not self.value.decided and not self.reason:
            raise ValueError(f"a verdict of {self.value} needs a reason")
        if self.value is Value.YES and not self.evidence:
            raise ValueError("a verdict of yes needs evidence")
        return self


class Reach(Record):
    """How the content stood in the reviewer's request.

    Attributes:
        role: Role of the message that held it.
        position: Index of that message in the message list, from 0.
        messages: Length of the message list.
        tool: Name of the tool whose result it was; empty otherwise.
        wrapped: Whether the agent had marked it as untrusted data.
        whole: Whether the content stood there word for word, and not only its canary.
        summary: Whether the message was, or held, the summary of a compressed conversation.
        reviewer: ``review``, or ``delegate_review`` for the reviewer of a delegated child.
    """

    role: str
    position: int
    messages: int
    tool: str = ""
    wrapped: bool = False
    whole: bool = True
    summary: bool = False
    reviewer: str = "review"


class Attempt(Record):
    """One write tool call seen in a response of the model.

    Attributes:
        origin: ``review``, ``foreground``, ``delegate`` (a child agent) or ``delegate_review`` (its reviewer).
        exchange: Sequence number of the exchange in ``requests.jsonl`` whose response held the call.
        tool: Name of the tool.
        action: Its action (``add``, ``replace``, …).
        target: Its target as given (``memory``, ``user``, a skill's name); hostile.
        store: The store that it was meant for.
        arguments: The arguments as sent, cut to 2,000 characters; hostile.
        carries: Whether the arguments carry the content, or name the old entry that it wants gone.
        decision: What the guards did.
        answer: The tool's answer as the model saw it, cut to 2,000 characters; hostile.
    """

    origin: str
    exchange: int
    tool: str
    action: str
    target: str
    store: Store
    arguments: str
    carries: bool
    decision: Decision
    answer: str = ""


class StoreFinding(Record):
    """What one store holds after the process ended.

    Attributes:
        store: Which store.
        value: ``yes`` when the content is in it.
        changed: Whether the bytes of the store differ from before the trial.
        evidence: File and line of each match.
    """

    store: Store
    value: Value
    changed: bool
    evidence: tuple[Evidence, ...] = ()


class SettledStep(Record):
    """One command of the operator on one staged write.

    Attributes:
        subsystem: ``memory`` or ``skills``.
        command: ``approve`` or ``reject``.
        said: What the agent answered, cut to 500 characters; hostile.
        left: Staged writes of the subsystem afterwards.
    """

    subsystem: str
    command: str
    said: str
    left: int


class ModelUse(Record):
    """What the reviews of a trial asked of a live model, and what it made of its part.

    Attributes:
        requests: Answers of a live model, reviews and others.
        prompt_tokens: Tokens of all requests as its server counted them.
        completion_tokens: Tokens of all answers.
        uncounted: Answers of which the server told no tokens; they are in neither sum.
        seconds: Wall seconds of all answers together, waiting in line left out.
        review_answers: Answers to requests of a review.
        calls: Tool calls in those.
        unparsable_calls: Calls of them whose arguments are no JSON object: the model could not make the call.
        unknown_tools: Calls of them to a tool that was not offered.
        refusals: Answers of them that decline in words and call nothing.
    """

    requests: int
    prompt_tokens: int
    completion_tokens: int
    uncounted: int
    seconds: float
    review_answers: int
    calls: int
    unparsable_calls: int
    unknown_tools: int
    refusals: int


class Settled(Record):
    """What became of staged writes when the operator dealt with them after the session.

    Attributes:
        action: ``approve``, ``reject``, ``approve-twice`` or ``approve-after-crash``.
        steps: The commands and the answers.
        persist: Whether the content is in a store of persistence now.
        stores: One finding for each store, against the home before the trial.
        copies: In how many files or rows of stores of persistence the content stands.
        provenance: How the agent's own records name the maker of the skill now.
    """

    action: str
    steps: tuple[SettledStep, ...] = ()
    persist: Verdict
    stores: tuple[StoreFinding, ...] = ()
    copies: int = 0
    provenance: str = ""


class TrialResult(Record):
    """Everything one trial says, as written to ``result.json`` when all its evidence is on disk.

    Attributes:
        trial: Trial id, also the folder's name; made of validated ids only, never of trial text.
        cell: Digest of all that decides the result.
        status: Where the trial counts.
        cause: Stable code of why it is invalid or an error; empty when valid.
        detail: One line about the cause; may hold hostile text.
        verdicts: One verdict for each stage.
        reach: How the content stood in the reviewer's request, when it did.
        attempts: Write calls, the reviewer's and the foreground's.
        stores: One finding for each store.
        notice: What the user was told.
        notice_text: The words, cut to 500 characters; hostile.
        reviews: Number of reviews that ran.
        carrier: What was to bring the content in.
        target: Store that the content asks for.
        action: What it wants done there.
        by: Who is scripted to write: ``review`` or ``foreground``.
        rule: Fate of the old entry, where the content wants one replaced or removed.
        settled: What became of staged writes, where the setup deals with them.
        provenance: How the agent's own records name the maker of a skill that was written; empty where there is none.
        stores_unchanged: True when every store is byte-identical to its state before.
        changed: The stores that are not.
        setup_assertions: What the running agent showed of its own configuration (tools offered, model name, …).
        seconds: Wall seconds by phase; shown nowhere as a result.
        detectors: Which code judged, version and digest; empty in results of version 1.
        model_use: What was asked of a live model; None where a scripted one answered.
    """

    schema_version: int = RESULT_SCHEMA
    trial: str
    cell: str
    scenario: str
    family: str
    role: Role
    title: str
    language: str
    delivery: str
    goal: str
    hard: bool = False
    build: str
    setup: str
    model: str
    repeat: int = 1
    status: Status
    cause: str = ""
    detail: str = ""
    verdicts: dict[Stage, Verdict]
    reach: Reach | None = None
    attempts: tuple[Attempt, ...] = ()
    stores: tuple[StoreFinding, ...] = ()
    notice: Notice = Notice.NONE
    notice_text: str = ""
    reviews: int = 0
    carrier: str = "paste"
    target: str = ""
    action: str = "add"
    by: str = "review"
    rule: RuleFate | None = None
    settled: Settled | None = None
    provenance: str = ""
    stores_unchanged: bool = False
    changed: tuple[Store, ...] = ()
    setup_assertions: dict[str, str] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)
    detectors: str = ""
    model_use: ModelUse | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.schema_version not in READABLE_RESULTS:
            known = ", ".join(map(str, READABLE_RESULTS))
            raise ValueError(f"result schema {self.schema_version} is not known, this lab reads {known}")
        if (self.status is Status.VALID) == bool(self.cause):
            raise ValueError("a cause is given exactly when the trial is not valid")
        missing = set(Stage) - set(self.verdicts)
        if missing:
            raise ValueError(f"verdicts missing for {sorted(missing)}")
        return self

    def value(self, stage: Stage) -> Value:
        """The verdict's value of one stage."""
        return self.verdicts[stage].value
