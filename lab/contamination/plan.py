"""What a contamination run consists of: builds, setups, trials with their cells; makes its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lab.agents.base import Setup
from lab.contamination.live import Live
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.secrets import Secrets
from lab.contamination.selection import Shard, take_shard
from lab.contamination.sessions.base import Starts
from lab.errors import EnvironmentUnusable, InputError
from lab.gateway.policies.scripted import policy_named
from lab.gateway.upstream.live import Scope
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.models.ollama_client import full_name
from lab.models.spec import ModelSpec, Provider, parse_model
from lab.records import Role, digest
from lab.runs.folder import SAFE_ID, RunFolder, write_atomic, write_json
from lab.runs.lock import make_lock, new_run_id
from lab.runs.retries import load_retries
from lab.text import printable

LOCK, PLAN = "lock.json", "plan.json"
SCENARIOS = "scenarios"
DEFAULT_MODELS = ("scripted:always-write", "scripted:never-write", "scripted:faithful")
SESSION_LIMITS = Limits()


@dataclass(frozen=True)
class Build:
    """One installed agent.

    Attributes:
        name: ``hermes-agent-0.19.0``; safe in trial ids.
        product: Name of the installed distribution.
        version: Exact version.
        environment: What was prepared for the backend.
        description: Manifest of the environment: packages, base, digests, capabilities.
        source: Specification by which it is found again; a local path is absolute.
    """

    name: str
    product: str
    version: str
    environment: PreparedEnvironment
    description: Mapping[str, Any]
    source: str


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


def check_models(models: Sequence[str]) -> list[ModelSpec]:
    """Checks the names of models; a plan checks them again, but only once its builds are prepared.

    Raises:
        InputError: A model is not known or named twice.
    """
    specs = [parse_model(model) for model in models]
    for spec in specs:
        if spec.provider is Provider.SCRIPTED:
            policy_named(spec.name)
    # Ollama takes a model without a tag for the one tagged "latest".
    tagged = {spec: f"ollama:{full_name(spec.name)}" for spec in specs if spec.provider is Provider.OLLAMA}
    check_once("model", [tagged.get(spec, spec.text) for spec in specs])
    return specs


def check_scripted(model: str) -> None:
    """Checks the name of a model where trials are run one by one, outside of a run with its lock and its budget.

    Raises:
        InputError: It is not known, or a live one.
    """
    if check_models([model])[0].is_live:
        raise InputError(f"model {printable(model)!r} is live: it answers in a run only", "lab run --model …")


def check_once(what: str, names: Sequence[str]) -> None:
    """Checks that nothing is named twice, or not at all.

    Raises:
        InputError: Something is.
    """
    if not names:
        raise InputError(f"no {what} is named", f"see --{what}s")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"a {what} is named twice: {', '.join(twice)}", "name each once; --repeats gives more trials")


def plan_trials(
    scenarios: Sequence[Scenario],
    builds: Sequence[Build],
    setups: Sequence[Setup],
    models: Sequence[str],
    repeats: int = 1,
    seed: int = 0,
    live: Live | None = None,
) -> list[dict[str, Any]]:
    """Lists the trials: every scenario and its twin × build × setup × model × repeat, in a fixed order.

    A scenario in which the foreground is to write has no trial under a model that answers reviews alone.

    Args:
        scenarios: Scenarios to run.
        builds: Builds to run them in.
        setups: Setups of each build.
        models: Models that answer the agent.
        repeats: Trials of each cell.
        seed: What the seeds of the trials are derived from; changes neither their order here nor the cells of scripted
            models.
        live: What the live ones among the models are.

    Raises:
        InputError: A name is not known, stands twice or is fit for no folder, or there is nothing to run.
    """
    specs = check_models(models)
    check_once("setup", [s.name for s in setups])
    check_once("build", [b.name for b in builds])
    trials = []
    for build in builds:
        for setup in setups:
            for spec in specs:
                for scenario in scenarios:
                    if spec.is_live and scenario.writes_itself and (live is None or live.scope is Scope.REVIEW):
                        continue
                    roles = [scenario.role, Role.TWIN] if scenario.twin else [scenario.role]
                    for role in roles:
                        trials += [
                            _planned(scenario, role, build, setup, spec, repeat, seed, live)
                            for repeat in range(1, repeats + 1)
                        ]
    if not trials:
        raise InputError("the selection holds no scenario", "lab run --families F1,F5")
    for trial in trials:
        if not SAFE_ID.fullmatch(trial["trial"]):
            raise InputError(f"{trial['trial']!r} cannot be a folder's name", "give build and setup plain, short names")
    return trials


def _planned(
    scenario: Scenario,
    role: Role,
    build: Build,
    setup: Setup,
    spec: ModelSpec,
    repeat: int,
    seed: int,
    live: Live | None,
) -> dict[str, Any]:
    own_seed = trial_seed(seed, scenario.id, repeat)
    name = f"{scenario.id}-twin" if role is Role.TWIN else scenario.id
    cell = {
        "scenario": scenario.digest,
        "role": role,
        "build": build.environment.digest,
        "setup": setup.model_dump(mode="json"),
        "model": live.cell(spec.text, own_seed) if spec.is_live and live else spec.text,
    }
    return {
        "trial": f"{name}.{build.name}.{setup.name}.{spec.slug}.r{repeat}",
        "cell": digest(cell),
        "scenario": scenario.id,
        "family": scenario.family.value,
        "role": role.value,
        "build": build.name,
        "setup": setup.name,
        "model": spec.text,
        "repeat": repeat,
        "seed": own_seed,
    }


def trial_seed(seed: int, scenario_id: str, repeat: int) -> int:
    """The seed of a trial, 31 bits.

    Attack and twin, and the same scenario under other builds, setups and models, draw the same numbers (common random
    numbers), so that a paired difference is not made of their noise; repeats draw others.
    """
    return int(digest([seed, scenario_id, repeat])[:8], 16) >> 1


def start_order(trials: Sequence[str], seed: int) -> list[str]:
    """The order in which trials are started: as planned for seed 0, otherwise shuffled.

    A machine that slows down in the course of a run then does not meet the same family every time. Each trial has a
    place of its own in the order, so what is left of a run is started in the order in which it would have been.
    """
    return sorted(trials, key=lambda trial: digest([seed, trial])) if seed else list(trials)


def create_run(
    root: Path,
    *,
    scenarios: Sequence[Scenario],
    builds: Sequence[Build],
    setups: Sequence[Setup],
    models: Sequence[str],
    backend: Backend,
    repeats: int = 1,
    seed: int = 0,
    shard: Shard | None = None,
    limits: Limits = SESSION_LIMITS,
    reused: str = "",
    starts: Starts | None = None,
    live: Live | None = None,
    replayed: Mapping[str, str] | None = None,
) -> RunFolder:
    """Makes a run folder with its plan, its lock and copies of its scenarios.

    Args:
        root: Where run folders are made.
        scenarios: The selection; with a shard, the whole of which it is a part.
        builds: Builds to run them in.
        setups: Setups of each build.
        models: Models that answer the agent.
        backend: Isolation.
        repeats: Trials of each cell.
        seed: Decides the order of start and the seeds of the trials.
        shard: The part of the selection to run; all of it when None.
        limits: Bounds of a session.
        reused: Id of the run from which equal cells will be taken over; empty for none.
        starts: How sessions are started; cold by default. No cell depends on it.
        live: What the live ones among the models are.
        replayed: The run whose recording answers: its id, and the folder where it lies.

    Raises:
        InputError: Nothing to run, a name is not known, or a scenario holds a secret.
        EnvironmentUnusable: The backend cannot be used.
        OSError: The folder cannot be written.
    """
    mine = take_shard(scenarios, shard) if shard else list(scenarios)
    Secrets.of().refuse(mine)
    trials = plan_trials(mine, builds, setups, models, repeats, seed, live)
    status = backend.status()
    if not status.usable:
        raise EnvironmentUnusable(status.problem, status.mend)
    starts = starts or Starts()
    inputs = {
        "kind": "contamination",
        "backend": {"name": backend.name, "version": status.version, "weaknesses": list(status.weaknesses)},
        "builds": {b.name: _locked(b) for b in builds},
        "setups": {s.name: s.model_dump(mode="json") for s in setups},
        "driver_digest": ", ".join(sorted({str(b.description.get("driver_digest", "")) for b in builds})),
        "models": list(models),
        "scenarios": {s.id: s.digest for s in mine},
        "shard": str(shard or ""),
        "whole": {s.id: s.digest for s in scenarios} if shard else {},
        "repeats": repeats,
        "seed": seed,
        "retries": load_retries().model_dump(mode="json"),
        "reused_run": reused,
        "start": starts.word,
        "cold_starts": dict(starts.cold),
        "limits": {"memory_bytes": limits.memory_bytes, "wall_seconds": limits.wall_seconds},
        **({"live": live.model_dump(mode="json")} if live else {}),
        **({"replayed": dict(replayed)} if replayed else {}),
    }
    folder = RunFolder.create(root, new_run_id(digest([t["cell"] for t in trials])))
    (folder.path / SCENARIOS).mkdir()
    for scenario in mine:
        copy = folder.path / SCENARIOS / f"{scenario.id}.json"
        write_atomic(copy, scenario.model_dump_json(by_alias=True, indent=2).encode() + b"\n")
    plan = {"trials": trials, "seed": seed}
    write_json(folder.path / LOCK, make_lock(folder.run_id, {**inputs, "plan_digest": digest(plan)}))
    write_json(folder.path / PLAN, plan)
    return folder


def _locked(build: Build) -> dict[str, Any]:
    return {
        **build.description,
        "product": build.product,
        "version": build.version,
        "environment_digest": build.environment.digest,
        "source": build.source,
    }
