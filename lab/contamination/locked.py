"""What a run was locked with, read back from ``lock.json`` and ``plan.json`` with every part in its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.agents.base import Setup
from lab.contamination.live import Live
from lab.contamination.observe.judge import TrialIdentity
from lab.contamination.plan import PLAN
from lab.contamination.sessions.base import Starts
from lab.errors import InputError
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import digest
from lab.runs.lock import LOCK_SCHEMA
from lab.runs.retries import RetryTable, load_retries

_NEW_RUN = "start a new run: lab run"


@dataclass(frozen=True)
class LockedBuild:
    """A build as a run was locked with it.

    Attributes:
        name: Its name in the run.
        product: Name of the product.
        source: What prepares it again.
        environment_digest: Digest of the environment that the run was made in.
    """

    name: str
    product: str
    source: str
    environment_digest: str

    def check(self, environment: PreparedEnvironment) -> None:
        """Checks that a prepared environment is the locked one.

        Raises:
            InputError: It is another.
        """
        if environment.digest != self.environment_digest:
            told = (
                f"build {self.name} is no longer what the run was locked with: {self.source} now gives the environment "
                f"{environment.digest[:12]}, not {self.environment_digest[:12]}"
            )
            raise InputError(told, "restore it (same source, same --base, same driver), or start a new run: lab run")


@dataclass(frozen=True)
class Locked:
    """Lock and plan of a run.

    Attributes:
        builds: Builds by name.
        setups: Setups by name.
        scenarios: Digests of the scenarios by id.
        trials: Planned trials by id, in the order of the plan.
        backend: Name of the isolation backend.
        limits: Bounds of a session.
        seed: Decides the order of start.
        starts: How sessions are started.
        retries: Which errors are tried again.
        shard: ``2/4``; empty for a whole run.
        whole: Of a shard, the digests of all scenarios of the selection by id.
        live: What its live models are; None where it has none.
        recording: Folder of the run whose recording answers; empty where models do.
    """

    builds: dict[str, LockedBuild]
    setups: dict[str, Setup]
    scenarios: dict[str, str]
    trials: dict[str, dict[str, Any]]
    backend: str
    limits: Limits
    seed: int
    starts: Starts
    retries: RetryTable
    shard: str
    whole: dict[str, str]
    live: Live | None = None
    recording: str = ""

    def identity(self, trial: str) -> TrialIdentity:
        """Which trial this is."""
        return _identity(self.trials[trial])

    def check_same(self, backend: Backend, environments: Mapping[str, PreparedEnvironment]) -> None:
        """Checks that a run goes on with what it was locked with.

        Args:
            backend: The isolation to go on with.
            environments: The prepared environment of each build.

        Raises:
            InputError: Backend or an environment differ from the lock, or an environment is missing.
        """
        if backend.name != self.backend:
            raise InputError(f"the run was locked with backend {self.backend}, not {backend.name}", _NEW_RUN)
        for name, build in self.builds.items():
            if name not in environments:
                raise InputError(f"build {name} of the run is not prepared", f"lab build {build.source}")
            build.check(environments[name])


def read_locked(folder: Path, lock: Mapping[str, Any], plan: Mapping[str, Any]) -> Locked:
    """Checks lock and plan of a run and gives their parts.

    Args:
        folder: The run folder, to name it.
        lock: Its lock.
        plan: Its plan.

    Raises:
        InputError: One has another form, or was changed.
    """
    if lock.get("schema_version", LOCK_SCHEMA) != LOCK_SCHEMA:
        told = f"{folder}: its lock has the form {lock['schema_version']!r}, this lab reads {LOCK_SCHEMA}"
        raise InputError(told, "read it with the version of the lab that wrote it")
    try:
        if digest(plan) != lock["plan_digest"]:
            raise InputError(f"{folder / PLAN} was changed after the run was locked", _NEW_RUN)
        locked = _read(lock, plan)
        known: tuple[Mapping[str, object], ...] = (locked.scenarios, locked.setups, locked.builds)
        for planned in locked.trials.values():
            named = (planned["scenario"], planned["setup"], planned["build"])
            if not all(name in names for name, names in zip(named, known, strict=True)):
                raise InputError(f"{folder}: the plan names what the lock does not hold", _NEW_RUN)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"{folder}: lock.json or plan.json has not the form of a run ({type(error).__name__}: {error})"
        raise InputError(what.splitlines()[0], _NEW_RUN) from error
    return locked


def _read(lock: Mapping[str, Any], plan: Mapping[str, Any]) -> Locked:
    trials: dict[str, dict[str, Any]] = {t["trial"]: t for t in plan["trials"]}
    for planned in trials.values():
        _identity(planned)
    bounds = lock["limits"]
    # Runs of version 0.1.0 have neither source, seed, shard nor a table of retries.
    return Locked(
        builds={
            str(name): LockedBuild(
                str(name),
                str(body["product"]),
                str(body.get("source") or body["version"]),
                str(body["environment_digest"]),
            )
            for name, body in lock["builds"].items()
        },
        setups={str(name): Setup.model_validate(data) for name, data in lock["setups"].items()},
        scenarios={str(name): str(value) for name, value in lock["scenarios"].items()},
        trials=trials,
        backend=str(lock["backend"]["name"]),
        limits=Limits(int(bounds["memory_bytes"]), wall_seconds=float(bounds["wall_seconds"])),
        seed=int(lock.get("seed", 0)),
        starts=Starts.read(lock),
        retries=RetryTable.model_validate(lock["retries"]) if "retries" in lock else load_retries(),
        shard=str(lock.get("shard", "")),
        whole={str(name): str(value) for name, value in lock.get("whole", {}).items()},
        recording=str(lock["replayed"]["folder"]) if lock.get("replayed") else "",
        live=Live.model_validate(lock["live"]) if lock.get("live") else None,
    )


def _identity(planned: Mapping[str, Any]) -> TrialIdentity:
    return TrialIdentity(**{part: planned[part] for part in TrialIdentity.model_fields if part in planned})
