"""Builds the report model from the lock, the plan, the results and the evidence of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.contamination.asymmetry import asymmetry_table
from lab.contamination.controls import (
    Control,
    ControlName,
    ControlVerdict,
    Scope,
    evaluate_controls,
    void_families,
)
from lab.contamination.findings import Finding, find_mechanisms
from lab.contamination.mechanisms.case import setups_of, worlds_of
from lab.contamination.predictions import predictions
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.semantic.records import SemanticResult
from lab.records import Role, TrialResult
from lab.report.counts import count_tables
from lab.report.header import read_header, read_run
from lab.report.model import Report
from lab.report.notes import NOTES
from lab.report.planned import Planned, account, join
from lab.report.rate_model import Group, Measures, Overall
from lab.report.rates import funnel, headline
from lab.report.scenario_table import scenario_rows
from lab.report.semantic import meanings
from lab.report.slim import slim
from lab.report.susceptibility import susceptibility
from lab.report.tables import Voids, Where, false_memory, group_by, honest_loss, measures, twin_rows, void_of
from lab.report.trial_row import trial_rows


def _missing(controls: Sequence[Control], where: Where) -> tuple[str, ...]:
    build, setup, _, family = where
    return tuple(
        f"{c.name} under {c.model}"
        for c in controls
        if c.verdict is ControlVerdict.NOT_RUN
        and (c.build, c.setup) == (build, setup)
        and (c.family == family or c.name is ControlName.EASY_POSITIVE)
    )


def _groups(trials: Sequence[Planned], controls: Sequence[Control], voids: Voids) -> tuple[Group, ...]:
    groups = []
    for where, mine in group_by((t for t in trials if t.role is Role.ATTACK), lambda t: t.where):
        build, setup, model, family = where
        groups.append(
            Group(
                build=build,
                setup=setup,
                model=model,
                family=family,
                measures=measures(model),
                accounting=account("attack trials", mine),
                persist=headline(mine),
                rates=funnel(mine),
                void=void_of(voids, where),
                not_run=_missing(controls, where),
            )
        )
    return tuple(groups)


def _overall(trials: Sequence[Planned], voids: Voids) -> tuple[Overall, ...]:
    """What the first screen says: each build, setup and model over its families, without void ones and references."""
    rows = []
    attacks = [t for t in trials if t.role is Role.ATTACK and measures(t.model) is not Measures.REFERENCE]
    for (build, setup, model), mine in group_by(attacks, lambda t: (t.build, t.setup, t.model)):
        left_out = {t.family for t in mine if void_of(voids, t.where)}
        sound = [t for t in mine if t.family not in left_out]
        if sound:
            rows.append(
                Overall(
                    build=build,
                    setup=setup,
                    model=model,
                    measures=measures(model),
                    families=tuple(sorted({t.family for t in sound})),
                    left_out=tuple(sorted(left_out)),
                    persist=headline(sound),
                )
            )
    return tuple(rows)


def _findings(
    told: Sequence[TrialResult], lock: Mapping[str, Any], scenarios: Mapping[str, Scenario], voids: Voids
) -> tuple[Finding, ...]:
    """The findings; one is void when every trial that shows it is of a void family."""
    void = {r.trial for r in told if (r.build, r.setup, r.family) in voids}
    return tuple(f.model_copy(update={"void": set(f.trials) <= void}) for f in find_mechanisms(told, lock, scenarios))


def build_report(
    lock: Mapping[str, Any],
    plan: Mapping[str, Any],
    results: Iterable[TrialResult],
    *,
    scenarios: Mapping[str, Scenario] | None = None,
    semantics: Mapping[str, SemanticResult] | None = None,
) -> Report:
    """Builds the report of a run; the order of the results changes nothing.

    Args:
        lock: The run's lock, read defensively.
        plan: The run's plan.
        results: All results that were read back, taken one by one; planned trials without one count as errors.
        scenarios: Scenarios by id, for the findings that need them.
        semantics: What the second detector says, by trial.

    Raises:
        InputError: Plan and results do not belong together.
    """
    trials = join(plan, slim(results))
    scopes = [Scope(family=t.family, build=t.build, setup=t.setup) for t in trials]
    told = [t.result for t in trials if t.result]
    unattended = {name: setup.unattended for name, setup in setups_of(lock).items()}
    controls = evaluate_controls(told, planned=scopes, unattended=unattended)
    found = void_families(controls, scopes)
    voids: Voids = {(v.build, v.setup, v.family): v.reasons for v in found}
    return Report(
        notes=NOTES,
        run=read_run(lock),
        header=read_header(lock),
        accounting=account("all trials", trials),
        by_role=tuple(account(str(role), [t for t in trials if t.role is role]) for role in Role),
        overall=_overall(trials, voids),
        groups=_groups(trials, controls, voids),
        honest_loss=honest_loss(trials, voids),
        false_memory=false_memory(trials, voids),
        twins=twin_rows(trials, voids),
        scenarios=scenario_rows(trials, voids),
        tables=count_tables(trials),
        asymmetry=asymmetry_table(told, lock, worlds_of(scenarios) if scenarios else None),
        findings=_findings(told, lock, scenarios or {}, voids),
        predictions=predictions(told, unattended),
        controls=tuple(controls),
        voids=tuple(found),
        trials=trial_rows(trials),
        susceptibility=susceptibility(trials, voids, lock),
        meanings=meanings(trials, semantics or {}),
    )
