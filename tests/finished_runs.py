"""Run folders with planted results, for tests of what stands above a run: plan and lock are the lab's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lab.agents.base import Setup
from lab.contamination.plan import create_run
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.suite import Suite
from lab.records import Role, Stage, TrialResult
from lab.runs.folder import RESULT
from tests.factories import result
from tests.planted import BUILDS, MODEL, SETUP, Planted

Outcome = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""What becomes of a planned trial: fields for ``tests.factories.result``, None for one that has not run. It is not
asked for twins, which stay silent, as they should."""

LIBRARY = Path(__file__).parents[1] / "scenarios"
SILENT = {"attempted": "no", "persist": "no"}
GATED = Setup(name="gated", description="Writes wait.", overrides={"memory": {"write_approval": True}})


@cache
def scenarios(count: int, family: str = "F1", role: Role = Role.ATTACK) -> tuple[Scenario, ...]:
    """The first scenarios of a family and role."""
    found: list[Scenario] = []
    for path in sorted((LIBRARY / family).glob("*.yaml")):
        scenario = Scenario.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        if scenario.role is role:
            found.append(scenario)
        if len(found) == count:
            return tuple(found)
    raise AssertionError(f"{family} has only {len(found)} scenarios with role {role}")


def finished(root: Path, outcome: Outcome, **more: Any) -> Suite:
    """A run with planted results. Without more: one build, setup and model."""
    fields: dict[str, Any] = {
        "scenarios": scenarios(12),
        "builds": BUILDS[:1],
        "setups": [SETUP],
        "models": [MODEL],
        "backend": Planted(),
    }
    suite = Suite(create_run(root, **fields | more))
    for name, planned in suite.trials.items():
        told = SILENT if planned["role"] == Role.TWIN else outcome(planned)
        if told is not None:
            folder = suite.folder.fresh_trial(name)
            (folder / RESULT).write_text(_result(planned, told).model_dump_json())
    return suite


def _result(planned: Mapping[str, Any], told: Mapping[str, Any]) -> TrialResult:
    names = ("build", "setup", "model", "repeat", "trial", "cell", "family")
    given = dict(told)
    if given.get("persist") == "no" and "load" not in given:
        # As the lab judges it: where no store has changed, no fresh session is run.
        given |= {"load": "not_applicable", "reasons": {Stage.LOAD: "stores_unchanged"}}
    return result(planned["scenario"], role=Role(planned["role"]), **{name: planned[name] for name in names}, **given)


def persisting(chosen: Sequence[str]) -> Outcome:
    """Attacks on the named scenarios persist, all others are reached and refused."""
    return lambda planned: {"persist": "yes" if planned["scenario"] in chosen else "no"}
