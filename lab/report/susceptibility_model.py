"""Records of the susceptibility report: how often live models tried, beside what the guards let through at most."""

from __future__ import annotations

from enum import StrEnum

from lab.compare.model import Difference, Row
from lab.gateway.upstream.live import Scope
from lab.models.identity import LiveModel, Sampling
from lab.records import Record
from lab.report.rate_model import Accounting, Count, Rate
from lab.statistics.proportions import Proportion


class Slicing(StrEnum):
    """By what attack trials are told apart. In each way every planned trial is in exactly one part."""

    FAMILY = "family"
    DELIVERY = "delivery"
    LANGUAGE = "language"
    POSITION = "position"


class Position(StrEnum):
    """Where the content stood in the message list of the review's request.

    Let i be the index of its message from 0 and n the length of the list: early where i/n < 1/3, late where
    i/n ≥ 2/3, middle between them.
    """

    EARLY = "early"
    MIDDLE = "middle"
    LATE = "late"
    NOT_REACHED = "not reached"
    """Valid trials in whose request it did not stand."""
    UNKNOWN = "unknown"
    """Trials that do not say: errors, invalid ones, undecided reach."""


class Tried(Record):
    """How often some trials attempted the write, and how often it persisted.

    Attributes:
        accounting: Where the trials went, errors by cause among them; they are in no numerator.
        attempt: Write attempted; of attack trials given reach, of others among the valid ones.
        persist: Persisted; of attack trials given an attempt (what the guards did), of others among the valid ones.
    """

    accounting: Accounting
    attempt: Rate
    persist: Rate


class Slice(Tried):
    """Attack trials of one live model that have something in common.

    Attributes:
        label: What they have in common; ``all`` of the whole.
        stopped: What the guards did with carrying attempts, in trials that attempted and did not persist.
        ceiling: The same scenarios and repeats under the reviewer that always tries; None where it was not run.
        void: Reasons why they prove nothing; empty where they do.
    """

    label: str
    stopped: tuple[Count, ...] = ()
    ceiling: Tried | None = None
    void: tuple[str, ...] = ()


class Split(Record):
    """A model's attack trials told apart in one way."""

    by: Slicing
    slices: tuple[Slice, ...]


class Answers(Record):
    """What a live model made of its part, in valid trials of every role.

    Attributes:
        refusals: Answers to reviews that decline in words and call nothing, among all answers to reviews.
        unparsable: Tool calls whose arguments are no JSON object, among the calls in answers to reviews.
        unknown_tools: Calls to a tool that was not offered, among the same.
        silent: Valid trials without a single answer of the model.
    """

    refusals: Proportion
    unparsable: Proportion
    unknown_tools: Proportion
    silent: int


class Use(Record):
    """What a live model used up, in trials of every role and status.

    Attributes:
        trials: Trials with an answer of the model.
        requests: Its answers.
        prompt_tokens: Tokens of the requests as its server counted them.
        completion_tokens: Tokens of the answers.
        uncounted: Answers of which the server told no tokens; they are in neither sum.
        seconds: Wall seconds of all answers, waiting in line left out.
        tokens_per_trial: Mean; None without a trial.
        seconds_per_trial: Mean; None without a trial.
    """

    trials: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    uncounted: int
    seconds: float
    tokens_per_trial: float | None
    seconds_per_trial: float | None


class LiveRow(Record):
    """One live model in one setup of one build.

    Attributes:
        families: Families that ``whole`` is over.
        left_out: Families that are not in it, because they are void.
        whole: All attack trials of sound families.
        splits: The same told apart; void families stand in the split by family only.
        twins: Twins without the payload: an attempt here is a false alarm of the measure.
        controls: Positive controls: what the user asked to be kept.
        flips: Attack cells whose repeats disagree on the attempt, among those with two decided repeats at least.
        repeats: Most repeats that a cell was planned with.
        answers: Refusals and calls that it could not make.
        use: Tokens and time.
        reading: What it says and what not, a sentence each, without a foreign word.
    """

    build: str
    setup: str
    model: str
    families: tuple[str, ...]
    left_out: tuple[str, ...]
    whole: Slice
    splits: tuple[Split, ...]
    twins: Tried
    controls: Tried
    flips: Proportion
    repeats: int
    answers: Answers
    use: Use
    reading: tuple[str, ...]


class PairRow(Record):
    """Two models over the same scenarios and repeats.

    Attributes:
        build: Their build.
        setup: Their setup.
        first: A model, or the ceiling.
        second: The other one, of which the verdict speaks.
        row: The paired table with its test and verdict, as ``lab compare`` makes it.
        bootstrap: The same difference with a bootstrap interval over scenarios, for comparison; no verdict is by it.
    """

    build: str
    setup: str
    first: str
    second: str
    row: Row
    bootstrap: Difference


class Tests(Record):
    """A family of tests that Holm's correction is over.

    Attributes:
        tests: How many.
        pairs: The compared pairs.
    """

    tests: int
    pairs: tuple[PairRow, ...] = ()


class Susceptibility(Record):
    """The susceptibility part of a report.

    Attributes:
        facts: What each live model is, as locked; a model that the lock does not describe is not in it.
        scope: Which requests the models answered; None where the lock does not say.
        sampling: Options that were sent; None where the lock does not say.
        replayed: Id of the run whose recording answered in the models' place; empty where they did themselves.
        rows: Each model in each setup and build.
        between: All pairs of live models, on the attempt.
        ceiling: Each live model against the ceiling, on attempt and persistence.
        margin: Largest difference that is taken for none.
    """

    facts: tuple[LiveModel, ...]
    scope: Scope | None
    sampling: Sampling | None
    replayed: str
    rows: tuple[LiveRow, ...]
    between: Tests
    ceiling: Tests
    margin: float
