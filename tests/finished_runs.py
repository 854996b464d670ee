"""Run folders with planted results, for tests of what stands above a run: plan and lock are the lab's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lab.agents.base import Setup
from lab.contamination.plan import create_run
from lab.contamination.scenarios.library import load_library
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.suite import Suite
from lab.records import Role, Stage, TrialResult
from lab.runs.folder import RESULT, write_atomic
from tests.factories import result
from tests.planted import BUILDS, MODEL, SETUP, Planted

Outcome = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""What becomes of a planned trial: fields for ``tests.factories.result``, None for one that has not run. It is not
asked for twins, which stay silent, as they should."""

SILENT = {"attempted": "no", "persist": "no"}
GATED = Setup(name="gated", description="Writes wait.", overrides={"memory": {"write_approval": True}})


@cache
def library() -> tuple[Scenario, ...]:
    return tuple(load_library(Path(__file__).parents[1] / "scenarios"))


def scenarios(count: int, family: str = "F1", role: Role = Role.ATTACK) -> list[Scenario]:
    """The first scenarios of a family and role."""
    mine = [s for s in library() if s.family.value == family and s.role is role][:count]
    assert len(mine) == count
    return mine


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
            write_atomic(folder / RESULT, _result(planned, told).model_dump_json().encode())
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
