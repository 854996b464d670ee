"""Tables of counts over the trials of a run: scenarios, decisions, stores, notices, twins, honest loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from lab.gateway.policies.base import SCRIPTED
from lab.records import Role, Stage, Status, Store, Value
from lab.report.model import (
    Count,
    DecisionRow,
    HonestLoss,
    Measures,
    NoticeRow,
    RateName,
    ScenarioCell,
    ScenarioRow,
    StoreRow,
    Tables,
    TwinRow,
)
from lab.report.planned import Planned, account
from lab.report.rates import is_lost, loss_reason, make_rate, tally
from lab.statistics.proportions import proportion

Where = tuple[str, str, str, str]
Voids = Mapping[tuple[str, str, str], tuple[str, ...]]
K = TypeVar("K", bound=tuple[object, ...])

_REFERENCE = ("scripted:never-write", "scripted:faithful")


def measures(model: str) -> Measures:
    """What rates under a model speak of: the agent's enforcement, a live model's susceptibility, or the harness."""
    if model in _REFERENCE:
        return Measures.REFERENCE
    return Measures.ENFORCEMENT if model.startswith(SCRIPTED) else Measures.SUSCEPTIBILITY


def group_by(trials: Iterable[Planned], key: Callable[[Planned], K]) -> list[tuple[K, list[Planned]]]:
    """Trials by a key, in the order of the keys."""
    found: dict[K, list[Planned]] = {}
    for trial in trials:
        found.setdefault(key(trial), []).append(trial)
    return sorted(found.items(), key=lambda item: tuple(str(part) for part in item[0]))


def _where(trial: Planned) -> Where:
    return trial.where


def void_of(voids: Voids, where: Where) -> tuple[str, ...]:
    """Why the family is void under this build and setup."""
    build, setup, _, family = where
    return voids.get((build, setup, family), ())


def honest_loss(trials: Sequence[Planned], voids: Voids) -> tuple[HonestLoss, ...]:
    """Positive controls that should have persisted and did not, by group."""
    rows = []
    for where, mine in group_by((t for t in trials if t.role is Role.CONTROL), _where):
        build, setup, model, family = where
        rate = make_rate(RateName.HONEST_LOSS, mine, stage=Stage.PERSIST, of="valid positive controls", hit=is_lost)
        decided = [t for t in mine if t.valid and t.value(Stage.PERSIST).decided]
        lost = [t for t in decided if is_lost(t)]
        units = {t.trial: t.scenario for t in mine}
        parts = []
        for hard in (False, True):
            kind = "hard" if hard else "easy"
            parts.append(
                proportion(
                    [t.trial for t in lost if t.result and t.result.hard is hard],
                    [t.trial for t in decided if t.result and t.result.hard is hard],
                    name=f"honest loss, {kind}",
                    of=f"valid {kind} positive controls with a decided verdict",
                    clusters=units,
                )
            )
        rows.append(
            HonestLoss(
                build=build,
                setup=setup,
                model=model,
                family=family,
                measures=measures(model),
                accounting=account("positive controls", mine),
                rate=rate,
                easy=parts[0],
                hard=parts[1],
                reasons=tally((loss_reason(t), t.trial) for t in lost),
                void=void_of(voids, where),
            )
        )
    return tuple(rows)


def _pairs(attacks: Iterable[Planned], twins: Iterable[Planned]) -> tuple[Count, ...]:
    other = {(t.where, t.scenario, t.repeat): t for t in attacks if t.valid}
    labelled = []
    for twin in twins:
        attack = other.get((twin.where, twin.scenario, twin.repeat))
        if attack is None or not twin.valid:
            continue
        mine, theirs = attack.value(Stage.PERSIST), twin.value(Stage.PERSIST)
        if not (mine.decided and theirs.decided):
            continue
        words = {
            (Value.YES, Value.NO): "attack only",
            (Value.NO, Value.YES): "twin only",
            (Value.YES, Value.YES): "both",
        }
        labelled.append((words.get((mine, theirs), "neither"), twin.trial))
    return tally(labelled)


def twin_rows(trials: Sequence[Planned], voids: Voids) -> tuple[TwinRow, ...]:
    """Twins by group, in denominators of their own."""
    rows = []
    attacks = [t for t in trials if t.role is Role.ATTACK]
    for where, mine in group_by((t for t in trials if t.role is Role.TWIN), _where):
        build, setup, model, family = where
        rows.append(
            TwinRow(
                build=build,
                setup=setup,
                model=model,
                family=family,
                accounting=account("twins", mine),
                attempt=make_rate(RateName.ATTEMPT_VALID, mine, stage=Stage.ATTEMPT, of="valid twins"),
                persist=make_rate(RateName.PERSIST_VALID, mine, stage=Stage.PERSIST, of="valid twins"),
                pairs=_pairs(attacks, mine),
                void=void_of(voids, where),
            )
        )
    return tuple(rows)


def _cell(where: tuple[str, str, str], mine: Sequence[Planned], void: bool) -> ScenarioCell:
    valid = [t for t in mine if t.valid and t.result]
    stages = {stage: dict(sorted(Counter(t.value(stage) for t in valid).items())) for stage in Stage}
    decisions = Counter(a.decision for t in valid if t.result for a in t.result.attempts if a.carries)
    decided = [t for t in valid if t.value(Stage.PERSIST).decided]
    status = Counter(t.status for t in mine)
    return ScenarioCell(
        build=where[0],
        setup=where[1],
        model=where[2],
        planned=len(mine),
        valid=status[Status.VALID],
        invalid=status[Status.INVALID],
        error=status[Status.ERROR],
        stages=stages,
        decisions=dict(sorted(decisions.items())),
        # Within one scenario the repeats themselves are the sample, so there are no units to nest them in.
        persist=proportion(
            [t.trial for t in decided if t.value(Stage.PERSIST) is Value.YES],
            [t.trial for t in decided],
            name="persisted",
            of="valid, decided repeats",
        ),
        trials=tuple(t.trial for t in mine),
        void=void,
    )


def scenario_rows(trials: Sequence[Planned], voids: Voids) -> tuple[ScenarioRow, ...]:
    """Every scenario in every role with its verdicts by build, setup and model."""
    rows = []
    for (family, scenario, role), mine in group_by(trials, lambda t: (t.family, t.scenario, t.role)):
        told = next((t.result for t in mine if t.result), None)
        cells = []
        for (build, setup, model), ours in group_by(mine, lambda t: (t.build, t.setup, t.model)):
            void = bool(void_of(voids, (build, setup, model, family)))
            cells.append(_cell((build, setup, model), ours, void))
        rows.append(
            ScenarioRow(
                scenario=scenario,
                title=told.title[:200] if told else "",
                family=family,
                role=role,
                hard=told.hard if told else False,
                cells=tuple(cells),
            )
        )
    return tuple(rows)


def _decisions(where: Where, role: Role, valid: Sequence[Planned]) -> list[DecisionRow]:
    build, setup, model, family = where
    told = [(t.trial, a) for t in valid if t.result for a in t.result.attempts]
    rows = []
    for origin, decision in sorted({(a.origin[:60], a.decision) for _, a in told}):
        ours = [(trial, a) for trial, a in told if (a.origin[:60], a.decision) == (origin, decision)]
        rows.append(
            DecisionRow(
                build=build,
                setup=setup,
                model=model,
                family=family,
                role=role,
                origin=origin,
                decision=decision,
                carrying=sum(a.carries for _, a in ours),
                other=sum(not a.carries for _, a in ours),
                trials=len({trial for trial, _ in ours}),
            )
        )
    return rows


def _stores(where: Where, role: Role, valid: Sequence[Planned]) -> list[StoreRow]:
    build, setup, model, family = where
    rows = []
    for store in Store:
        found = [f for t in valid if t.result for f in t.result.stores if f.store is store]
        if found:
            rows.append(
                StoreRow(
                    build=build,
                    setup=setup,
                    model=model,
                    family=family,
                    role=role,
                    store=store,
                    persistence=store.is_persistence,
                    holds=sum(f.value is Value.YES for f in found),
                    clean=sum(f.value is Value.NO for f in found),
                    undecided=sum(not f.value.decided for f in found),
                    changed=sum(f.changed for f in found),
                )
            )
    return rows


def _notices(where: Where, role: Role, valid: Sequence[Planned]) -> list[NoticeRow]:
    build, setup, model, family = where
    rows = []
    for notice in sorted({t.result.notice for t in valid if t.result}):
        values = [t.value(Stage.PERSIST) for t in valid if t.result and t.result.notice is notice]
        rows.append(
            NoticeRow(
                build=build,
                setup=setup,
                model=model,
                family=family,
                role=role,
                notice=notice,
                persisted=values.count(Value.YES),
                not_persisted=values.count(Value.NO),
                undecided=sum(not value.decided for value in values),
            )
        )
    return rows


def count_tables(trials: Sequence[Planned]) -> Tables:
    """Decisions, stores and notices of valid trials; roles apart."""
    decisions: list[DecisionRow] = []
    stores: list[StoreRow] = []
    notices: list[NoticeRow] = []
    for (*where, role), mine in group_by((t for t in trials if t.valid), lambda t: (*t.where, t.role)):
        build, setup, model, family = where
        place = (build, setup, model, family)
        decisions += _decisions(place, role, mine)
        stores += _stores(place, role, mine)
        notices += _notices(place, role, mine)
    return Tables(decisions=tuple(decisions), stores=tuple(stores), notices=tuple(notices))
