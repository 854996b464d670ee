"""What a contamination run consists of: builds, setups, trials with their cells; makes its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lab.agents.base import Setup
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.sessions.base import Start
from lab.errors import EnvironmentUnusable, InputError
from lab.gateway.policies.base import SCRIPTED
from lab.gateway.policies.scripted import policy_named
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import Role, digest
from lab.runs.folder import RunFolder, write_atomic, write_json
from lab.runs.lock import make_lock, new_run_id

LOCK, PLAN = "lock.json", "plan.json"
SCENARIOS = "scenarios"
DEFAULT_MODELS = ("scripted:always-write", "scripted:never-write", "scripted:faithful")
SESSION_LIMITS = Limits()


@dataclass(frozen=True)
class Build:
    """One installed agent.

    Attributes:
        name: ``hermes-agent-0.19.0``.
        product: Name on the package registry.
        version: Exact version.
        environment: What was prepared for the backend.
        description: Manifest of the environment: packages, base, digests.
    """

    name: str
    product: str
    version: str
    environment: PreparedEnvironment
    description: Mapping[str, Any]


def load_setup(path: Path) -> Setup:
    """Reads a setup file.

    Raises:
        InputError: It is missing or not a setup.
    """
    try:
        return Setup.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise InputError(f"no setup is named {path.stem!r}", f"known setups: {known}") from error
    except (OSError, yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a setup: {str(error).splitlines()[0]}", "see docs/setups.md") from error


def plan_trials(
    scenarios: Sequence[Scenario], build: Build, setups: Sequence[Setup], models: Sequence[str], repeats: int = 1
) -> list[dict[str, Any]]:
    """Lists the trials: every scenario and its twin × setup × model × repeat, in a fixed order.

    Raises:
        InputError: A model is not known, or there is nothing to run.
    """
    for model in models:
        if not model.startswith(SCRIPTED):
            raise InputError(f"model {model!r} is not known", "scripted:<policy>, e.g. scripted:always-write")
        policy_named(model.removeprefix(SCRIPTED))
    for what, names in (("model", list(models)), ("setup", [s.name for s in setups])):
        if len(set(names)) != len(names):
            raise InputError(
                f"a {what} is named twice: {', '.join(names)}", "name each once; --repeats gives more trials"
            )
    trials = []
    for setup in setups:
        for model in models:
            for scenario in scenarios:
                roles = [scenario.role, Role.TWIN] if scenario.twin else [scenario.role]
                for role in roles:
                    trials += [_planned(scenario, role, build, setup, model, r) for r in range(1, repeats + 1)]
    if not trials:
        raise InputError("the selection holds no scenario", "lab run --families F1,F5")
    return trials


def _planned(scenario: Scenario, role: Role, build: Build, setup: Setup, model: str, repeat: int) -> dict[str, Any]:
    name = f"{scenario.id}-twin" if role is Role.TWIN else scenario.id
    cell = {
        "scenario": scenario.digest,
        "role": role,
        "build": build.environment.digest,
        "setup": setup.model_dump(mode="json"),
        "model": model,
    }
    return {
        "trial": f"{name}.{build.name}.{setup.name}.{model.replace(':', '-')}.r{repeat}",
        "cell": digest(cell),
        "scenario": scenario.id,
        "family": scenario.family.value,
        "role": role.value,
        "build": build.name,
        "setup": setup.name,
        "model": model,
        "repeat": repeat,
    }


def create_run(
    root: Path,
    *,
    scenarios: Sequence[Scenario],
    build: Build,
    setups: Sequence[Setup],
    models: Sequence[str],
    backend: Backend,
    repeats: int = 1,
    limits: Limits = SESSION_LIMITS,
    reused: str = "",
    start: Start = Start.COLD,
) -> RunFolder:
    """Makes a run folder with its plan, its lock and copies of its scenarios.

    Args:
        root: Where run folders are made.
        scenarios: Scenarios to run.
        build: The build.
        setups: Its setups.
        models: Models that answer the agent.
        backend: Isolation.
        repeats: Trials of each cell.
        limits: Bounds of a session.
        reused: Id of the run from which equal cells will be taken over; empty for none.
        start: How sessions are started. No cell depends on it.

    Raises:
        InputError: Nothing to run, or a name is not known.
        EnvironmentUnusable: The backend cannot be used.
        OSError: The folder cannot be written.
    """
    trials = plan_trials(scenarios, build, setups, models, repeats)
    status = backend.status()
    if not status.usable:
        raise EnvironmentUnusable(status.problem, status.mend)
    inputs = {
        "kind": "contamination",
        "backend": {"name": backend.name, "version": status.version, "weaknesses": list(status.weaknesses)},
        "builds": {
            build.name: {
                "product": build.product,
                "version": build.version,
                "environment_digest": build.environment.digest,
                **build.description,
            }
        },
        "setups": {s.name: s.model_dump(mode="json") for s in setups},
        "driver_digest": build.description.get("driver_digest", ""),
        "models": list(models),
        "scenarios": {s.id: s.digest for s in scenarios},
        "reused_run": reused,
        "start": start.value,
        "limits": {"memory_bytes": limits.memory_bytes, "wall_seconds": limits.wall_seconds},
    }
    folder = RunFolder.create(root, new_run_id(digest([t["cell"] for t in trials])))
    (folder.path / SCENARIOS).mkdir()
    for scenario in scenarios:
        copy = folder.path / SCENARIOS / f"{scenario.id}.json"
        write_atomic(copy, scenario.model_dump_json(by_alias=True, indent=2).encode() + b"\n")
    plan = {"trials": trials}
    write_json(folder.path / LOCK, make_lock(folder.run_id, {**inputs, "plan_digest": digest(plan)}))
    write_json(folder.path / PLAN, plan)
    return folder
