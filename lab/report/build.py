"""Builds the report model from the lock, the plan, the results and the evidence of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.contamination.controls import (
    Control,
    ControlName,
    ControlVerdict,
    Scope,
    evaluate_controls,
    void_families,
)
from lab.contamination.scenario import Scenario
from lab.records import Role, TrialResult
from lab.report.evidence import trial_views
from lab.report.model import Build, Group, Header, Report, Run, Setup
from lab.report.notes import NOTES
from lab.report.planned import Planned, account, join
from lab.report.rates import funnel, headline
from lab.report.tables import (
    Voids,
    Where,
    count_tables,
    group_by,
    honest_loss,
    measures,
    scenario_rows,
    twin_rows,
    void_of,
)

_GATES = ("write_approval",)


def _mapping(value: Any) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, item in sorted(_mapping(value).items()):
        if isinstance(item, Mapping) and item:
            flat |= _flat(item, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = _word(item)
    return flat


def _words(value: Any) -> tuple[str, ...]:
    return tuple(_word(item) for item in value) if isinstance(value, list | tuple) else ()


def gated_setups(lock: Mapping[str, Any]) -> frozenset[str]:
    """Names of the setups that hold memory writes for approval, by their overrides or by what they expect to see.

    Args:
        lock: The run's lock.
    """
    found = set()
    for name, body in _mapping(lock.get("setups")).items():
        setup = _mapping(body)
        overrides = _flat(_mapping(setup.get("overrides")))
        switched = any(key.rsplit(".", 1)[-1] in _GATES and word == "true" for key, word in overrides.items())
        if switched or _mapping(setup.get("expect")).get("memory_gate") is True:
            found.add(name)
    return frozenset(found)


def read_header(lock: Mapping[str, Any]) -> Header:
    """What the lock says of versions and digests; a key it lacks is left empty."""
    backend = _mapping(lock.get("backend"))
    builds = []
    for name, body in sorted(_mapping(lock.get("builds")).items()):
        entry = _mapping(body)
        plain = {key: _word(entry.get(key)) for key in ("product", "version", "environment_digest", "python")}
        packages = {key: _word(item) for key, item in sorted(_mapping(entry.get("packages")).items())}
        builds.append(Build(name=name, packages=packages, **plain))
    setups = []
    for name, body in sorted(_mapping(lock.get("setups")).items()):
        entry = _mapping(body)
        overrides = _flat(_mapping(entry.get("overrides")))
        setups.append(Setup(name=name, description=_word(entry.get("description")), overrides=overrides))
    return Header(
        lab_version=_word(lock.get("lab_version")),
        backend=_word(backend.get("name")),
        backend_version=_word(backend.get("version")),
        weaknesses=_words(backend.get("weaknesses")),
        builds=tuple(builds),
        setups=tuple(setups),
        models=_words(lock.get("models")),
        scenarios={key: _word(item) for key, item in sorted(_mapping(lock.get("scenarios")).items())},
        driver_digest=_word(lock.get("driver_digest")),
        host={key: _word(_mapping(lock.get("host")).get(key)) for key in ("kernel", "arch", "python")},
    )


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


def build_report(
    lock: Mapping[str, Any],
    plan: Mapping[str, Any],
    results: Sequence[TrialResult],
    run_dir: Path | None = None,
    *,
    scenarios: Mapping[str, Scenario] | None = None,
) -> Report:
    """Builds the report of a run; the order of the results changes nothing.

    Args:
        lock: The run's lock, read defensively.
        plan: The run's plan.
        results: All results that were read back; planned trials without one count as errors.
        run_dir: Run folder, for the evidence excerpts and for the links that exist; None for a report without them.
        scenarios: Scenarios by id, so that the content can be marked in the excerpts.

    Raises:
        InputError: Plan and results do not belong together.
    """
    trials = join(plan, results)
    scopes = [Scope(family=t.family, build=t.build, setup=t.setup) for t in trials]
    told = [t.result for t in trials if t.result]
    controls = evaluate_controls(told, planned=scopes, gated=gated_setups(lock))
    found = void_families(controls, scopes)
    voids: Voids = {(v.build, v.setup, v.family): v.reasons for v in found}
    return Report(
        notes=NOTES,
        run=Run(id=_word(lock.get("run_id")) or "unknown", created=_word(lock.get("created"))),
        header=read_header(lock),
        accounting=account("all trials", trials),
        by_role=tuple(account(str(role), [t for t in trials if t.role is role]) for role in Role),
        groups=_groups(trials, controls, voids),
        honest_loss=honest_loss(trials, voids),
        twins=twin_rows(trials, voids),
        scenarios=scenario_rows(trials, voids),
        tables=count_tables(trials),
        controls=tuple(controls),
        voids=tuple(found),
        trials=trial_views(trials, run_dir, scenarios or {}),
    )
