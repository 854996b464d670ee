"""Form of a run's ``lock.json`` and ``plan.json``, as they are written now and as earlier versions wrote them.

What is read is decided by ``lab.contamination.locked``; these records state it for ``lab validate`` and for readers in
other languages. Fields that came later have a default, which is what their absence means.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from lab.agents.base import Setup
from lab.contamination.live import Live
from lab.contamination.observe.judge import TrialIdentity
from lab.records import Record
from lab.runs.retries import RetryTable


class PlannedTrial(TrialIdentity):
    """One planned trial.

    Attributes:
        trial: Its id, which is its folder's name.
        cell: Digest of all that decides its result.
        scenario: Id of the scenario.
        family: Its family.
        seed: For models that draw at random.
    """

    scenario: str
    family: str
    seed: int = 0


class PlanFile(Record):
    """All planned trials of a run.

    Attributes:
        trials: In the order of the plan.
        seed: Decides the order of start; 0 for the order of the plan.
    """

    trials: tuple[PlannedTrial, ...]
    seed: int = 0


class _Open(Record):
    """A part to which later versions may add."""

    model_config = ConfigDict(extra="allow")


class LockedBackend(_Open):
    """The isolation of a run."""

    name: str
    version: str = ""
    weaknesses: tuple[str, ...] = ()


class LockedEnvironment(_Open):
    """A build as a run was locked with it: packages, base and digests beside these."""

    product: str
    version: str
    environment_digest: str
    source: str = ""


class LockedLimits(_Open):
    """Bounds of a session."""

    memory_bytes: int
    wall_seconds: float


class LockFile(_Open):
    """What decides the results of a run.

    Attributes:
        schema_version: Version of this form; absent before there were versions.
        run_id: Id of the run.
        created: When, ISO 8601 in UTC; decides nothing.
        lab_version: Version of the lab.
        host: Facts about the host; decide nothing.
        kind: ``contamination``; absent in runs of 0.1.0.
        backend: The isolation.
        builds: Builds by name.
        setups: Setups by name.
        models: Models that answer the agent.
        scenarios: Digests by id.
        repeats: Trials of each cell.
        limits: Bounds of a session.
        plan_digest: Digest of ``plan.json``.
        seed: Decides the order of start.
        retries: Which errors are tried again.
        shard: ``2/4``; empty for a whole run.
        whole: Of a shard, the digests of all scenarios of the selection.
        reused_run: Run from which equal cells were taken over.
        start: How sessions were started.
        cold_starts: Reason for a cold start by build and setup.
        live: What the live ones among the models are, and how they are asked; absent where there are none.
        replayed: The run whose recording answered: its id and folder; absent where models did.
    """

    schema_version: int = 1
    run_id: str
    created: str
    lab_version: str
    host: dict[str, str] = Field(default_factory=dict)
    kind: str = "contamination"
    backend: LockedBackend
    builds: dict[str, LockedEnvironment]
    setups: dict[str, Setup]
    models: tuple[str, ...]
    scenarios: dict[str, str]
    repeats: int = 1
    limits: LockedLimits
    plan_digest: str
    seed: int = 0
    retries: RetryTable | None = None
    shard: str = ""
    whole: dict[str, str] = Field(default_factory=dict)
    reused_run: str = ""
    start: str = "cold"
    cold_starts: dict[str, str] = Field(default_factory=dict)
    live: Live | None = None
    replayed: dict[str, str] | None = None


class BenchLockFile(_Open):
    """What decides the results of a benchmark run.

    Attributes:
        schema_version: Version of this form; absent before there were versions.
        run_id: Id of the run.
        created: When; decides nothing.
        lab_version: Version of the lab.
        host: Facts about the host; decide nothing.
        kind: ``bench``.
        k: Depth of the rankings.
        sets: What was measured on.
        arms: Arms with their settings.
    """

    schema_version: int = 1
    run_id: str
    created: str
    lab_version: str
    host: dict[str, str] = Field(default_factory=dict)
    kind: str
    k: int
    sets: tuple[dict[str, Any], ...]
    arms: tuple[dict[str, Any], ...]
