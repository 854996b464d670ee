"""Tables of counts over valid trials: decisions, stores, notices, origins, staged writes, carriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lab.records import Decision, Role, Stage, Status, Store, TrialResult, Value
from lab.report.planned import Planned
from lab.report.rates import tally
from lab.report.table_model import (
    CarrierRow,
    DecisionRow,
    NoticeRow,
    OriginRow,
    StagedRow,
    StoreRow,
    Tables,
    UnattemptedRow,
)
from lab.report.tables import Where, group_by

NOBODY = "nobody"
_SAID = 120


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


def _origins(results: Sequence[TrialResult]) -> list[OriginRow]:
    rows = []
    told = [(r, a) for r in results for a in r.attempts]
    for build, setup, origin in sorted({(r.build, r.setup, a.origin[:60]) for r, a in told}):
        ours = [(r, a) for r, a in told if (r.build, r.setup, a.origin[:60]) == (build, setup, origin)]
        carrying = [(r, a) for r, a in ours if a.carries]
        rows.append(
            OriginRow(
                build=build,
                setup=setup,
                origin=origin,
                decisions=dict(sorted(Counter(a.decision for _, a in carrying).items())),
                other=len(ours) - len(carrying),
                trials=tuple(sorted({r.trial for r, _ in carrying})),
            )
        )
    return rows


def _unattempted(results: Sequence[TrialResult]) -> list[UnattemptedRow]:
    found: dict[tuple[str, str, Role, Store], list[str]] = {}
    for r in results:
        known = r.value(Stage.ATTEMPT) in (Value.NO, Value.NOT_APPLICABLE)
        if known and r.value(Stage.PERSIST) is Value.YES and not any(a.carries for a in r.attempts):
            for f in r.stores:
                if f.store.is_persistence and f.value is Value.YES:
                    found.setdefault((r.build, r.setup, r.role, f.store), []).append(r.trial)
    return [
        UnattemptedRow(build=build, setup=setup, role=role, store=store, trials=tuple(sorted(ids)))
        for (build, setup, role, store), ids in sorted(found.items())
    ]


def _staged(results: Sequence[TrialResult]) -> list[StagedRow]:
    found: dict[tuple[str, str, str, Store], list[TrialResult]] = {}
    for r in results:
        operator = r.settled.action if r.settled else NOBODY
        for store in {a.store for a in r.attempts if a.carries and a.decision is Decision.STAGED}:
            found.setdefault((r.build, r.setup, operator, store), []).append(r)
    rows = []
    for (build, setup, operator, store), mine in sorted(found.items()):
        persists = [r.settled.persist.value if r.settled else r.value(Stage.PERSIST) for r in mine]
        dealt = [(r, r.settled) for r in mine if r.settled]
        rows.append(
            StagedRow(
                build=build,
                setup=setup,
                operator=operator,
                store=store,
                persisted=persists.count(Value.YES),
                not_persisted=persists.count(Value.NO),
                undecided=sum(not value.decided for value in persists),
                doubled=sum(s.copies > 1 for _, s in dealt),
                left=sum(any(n > 0 for n in {p.subsystem: p.left for p in s.steps}.values()) for _, s in dealt),
                provenance=tally((s.provenance, r.trial) for r, s in dealt if s.provenance),
                notices=tally((str(r.notice), r.trial) for r in mine),
                said=tally((f"{p.command}: {p.said[:_SAID]}", r.trial) for r, s in dealt for p in s.steps),
                trials=tuple(sorted(r.trial for r in mine)),
            )
        )
    return rows


def _carriers(results: Sequence[TrialResult]) -> list[CarrierRow]:
    rows = []
    for build, carrier in sorted({(r.build, r.carrier[:60]) for r in results}):
        mine = [r for r in results if (r.build, r.carrier[:60]) == (build, carrier)]
        status = Counter(r.status for r in mine)
        reached = [r for r in mine if r.status is Status.VALID and r.value(Stage.REACH) is Value.YES]
        rows.append(
            CarrierRow(
                build=build,
                carrier=carrier,
                valid=status[Status.VALID],
                invalid=status[Status.INVALID],
                error=status[Status.ERROR],
                reached=len(reached),
                marked=sum(bool(r.reach and r.reach.wrapped) for r in reached),
                causes=tally((r.cause[:120], r.trial) for r in mine if r.cause),
            )
        )
    return rows


def count_tables(trials: Sequence[Planned]) -> Tables:
    """Counts over valid trials; roles apart, or twins left out where a row is about the content itself."""
    decisions: list[DecisionRow] = []
    stores: list[StoreRow] = []
    notices: list[NoticeRow] = []
    for (*where, role), mine in group_by((t for t in trials if t.valid), lambda t: (*t.where, t.role)):
        build, setup, model, family = where
        place = (build, setup, model, family)
        decisions += _decisions(place, role, mine)
        stores += _stores(place, role, mine)
        notices += _notices(place, role, mine)
    told = [t.result for t in trials if t.result]
    counted = [r for r in told if r.status is Status.VALID and r.role is not Role.TWIN]
    return Tables(
        decisions=tuple(decisions),
        stores=tuple(stores),
        notices=tuple(notices),
        origins=tuple(_origins(counted)),
        unattempted=tuple(_unattempted(counted)),
        staged=tuple(_staged(counted)),
        carriers=tuple(_carriers(told)),
    )
