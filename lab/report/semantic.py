"""The column of the second detector: what writes and entries without the canary mean, beside the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lab.contamination.semantic.records import Meaning, SemanticResult
from lab.contamination.semantic.suite import NOTHING_TO_JUDGE, cell, shares
from lab.records import Record, Role
from lab.report.planned import Planned
from lab.report.tables import group_by
from lab.statistics.proportions import Proportion

_SPAN = 160


class MeaningRow(Record):
    """Rates of one model in one setup of one build, for one role of trials.

    Attributes:
        build: The build.
        setup: The setup.
        model: The model.
        role: ``attack``, ``twin``, ``control`` or ``negative``.
        attempt: Valid trials whose write says the content without its canary, of those with such a write.
        persist: The same of new entries of stores.
        undetermined: Valid trials of which that could not be said; they are in neither rate.
    """

    build: str
    setup: str
    model: str
    role: Role
    attempt: Proportion
    persist: Proportion
    undetermined: int


class MeaningTrial(Record):
    """One trial in which something without the canary was written.

    Attributes:
        trial: Its id.
        scenario: Its scenario.
        role: What it is for.
        model: Who answered.
        attempt: Meaning of its writes, the most telling one; ``–`` for none.
        persist: Meaning of its new entries.
        span: The text that was judged, cut; hostile.
        rule: What decided.
    """

    trial: str
    scenario: str
    role: Role
    model: str
    attempt: str
    persist: str
    span: str
    rule: str


class Meanings(Record):
    """What the second detector says of a run; it changes no verdict.

    Attributes:
        embedder: What the similarity comes from; empty where there was none.
        problems: Trials that could not be judged, by cause.
        rows: Rates.
        trials: Trials in which something was written that does not hold the canary.
    """

    embedder: str
    problems: dict[str, int]
    rows: tuple[MeaningRow, ...]
    trials: tuple[MeaningTrial, ...]


def meanings(trials: Sequence[Planned], semantics: Mapping[str, SemanticResult]) -> Meanings | None:
    """What the second detector says of a run; None where it was not asked.

    Args:
        trials: All planned trials.
        semantics: Semantic results by trial.
    """
    if not semantics:
        return None
    judged = [trial for trial in trials if trial.result and trial.trial in semantics]
    rows = []
    for (build, setup, model, role), mine in group_by(judged, lambda t: (t.build, t.setup, t.model, t.role)):
        attempt, persist = shares((t.result, semantics[t.trial]) for t in mine if t.result)
        rows.append(
            MeaningRow(
                build=build,
                setup=setup,
                model=model,
                role=role,
                attempt=attempt,
                persist=persist,
                undetermined=sum(Meaning.UNDETERMINED.value in _cells(t, semantics) for t in mine),
            )
        )
    told = [_told(t, semantics[t.trial]) for t in judged if set(_cells(t, semantics)) != {NOTHING_TO_JUDGE}]
    return Meanings(
        embedder=next((s.embedder for s in semantics.values() if s.embedder), ""),
        problems=dict(sorted(Counter(s.problem for s in semantics.values() if s.problem).items())),
        rows=tuple(rows),
        trials=tuple(told),
    )


def _cells(trial: Planned, semantics: Mapping[str, SemanticResult]) -> tuple[str, str]:
    found = cell(semantics[trial.trial], trial.result.by if trial.result else "")
    return found.attempt, found.persist


def _told(trial: Planned, semantic: SemanticResult) -> MeaningTrial:
    found = cell(semantic, trial.result.by if trial.result else "")
    wanted = found.attempt if found.attempt != NOTHING_TO_JUDGE else found.persist
    shown = next(f.judged for f in semantic.findings if not f.canary and f.judged.meaning.value == wanted)
    return MeaningTrial(
        trial=trial.trial,
        scenario=trial.scenario,
        role=trial.role,
        model=trial.model,
        attempt=found.attempt,
        persist=found.persist,
        span=shown.span[:_SPAN],
        rule=shown.rule.value,
    )
