"""Whether a build may be started warm: the same trial cold and twice warm must leave the same evidence.

A warm start is allowed where this proof holds on this machine, for this build and setup; the test suite shows the same
for whole families, and that nothing of one trial reaches the next.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lab.agents.base import Setup
from lab.agents.hermes.adapter import HermesAgent
from lab.agents.hermes.volatile import without_ids
from lab.agents.select import agent_for
from lab.contamination.observe.judge import AFTER, REQUESTS, TrialIdentity
from lab.contamination.plan import Build
from lab.contamination.preflight import PROBE_SCENARIO
from lab.contamination.sessions.base import Sessions, Start, Starts
from lab.contamination.sessions.cold import ColdSessions
from lab.contamination.sessions.warm import WarmSessions
from lab.contamination.stores import Manifest
from lab.contamination.trial import Bench, run_trial
from lab.errors import EnvironmentUnusable
from lab.gateway.exchange import read_exchanges
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import Role, Status, Store
from lab.runs.folder import RESULT

AUTO = "auto"
_MODEL = "scripted:always-write"
_TIMES_WARM = 2

_TIME = re.compile(r"[0-9]{8}-[0-9]{6}")
"""Time in the name of a file that the agent puts aside."""


def sessions_named(start: Start) -> Sessions:
    """Starts sessions in this way."""
    return WarmSessions() if start is Start.WARM else ColdSessions()


def settle_starts(
    wanted: str,
    backend: Backend,
    builds: Iterable[Build],
    setups: Iterable[Setup],
    limits: Limits,
    tell: Callable[[str], None],
) -> Starts:
    """Decides how a run's sessions are started.

    Args:
        wanted: ``cold``, ``warm``, or ``auto``: warm for each build and setup for which that is proven, else cold.
        backend: Isolation.
        builds: All builds of the run.
        setups: All its setups.
        limits: Bounds of one session.
        tell: Told one line before a comparison, and about each that fails.

    Raises:
        EnvironmentUnusable: A warm start was asked for by name and is not proven here.
    """
    if wanted == Start.COLD:
        return Starts()
    cold: dict[str, str] = {}
    pairs = list(itertools.product(builds, setups))
    for build, setup in pairs:
        tell(f"comparing a warm start with a cold one: {build.name}, {setup.name}")
        try:
            problem = warm_differs(backend, build.environment, setup, limits, agent_for(build.product))
        except EnvironmentUnusable as error:
            problem = error.message
        if problem and wanted == Start.WARM:
            told = f"no warm start of {build.name} in setup {setup.name}: {problem}"
            raise EnvironmentUnusable(told, "lab run --start auto")
        if problem:
            cold[f"{build.name} {setup.name}"] = problem
            tell(f"starting cold: {problem}")
    return Starts(Start.COLD) if len(cold) == len(pairs) else Starts(Start.WARM, cold)


def warm_differs(
    backend: Backend, environment: PreparedEnvironment, setup: Setup, limits: Limits, agent: HermesAgent | None = None
) -> str:
    """Runs the probe trial cold, then warm, one after the other in the same sandbox.

    Returns:
        The first difference in one line; empty where there is none.

    Raises:
        EnvironmentUnusable: A sandbox cannot be started, or the build cannot be forked.
    """
    adapter = agent or HermesAgent()
    warm = WarmSessions()
    order: tuple[Sessions, ...] = (ColdSessions(), *[warm] * _TIMES_WARM)
    with tempfile.TemporaryDirectory(prefix="lab-preflight-") as scratch, GatewayHost() as gateways:
        try:
            evidence = []
            for number, sessions in enumerate(order):
                folder = Path(scratch) / str(number)
                folder.mkdir()
                bench = Bench(backend, environment, adapter, gateways, limits, "proof", sessions)
                identity = TrialIdentity(
                    trial="proof", cell="proof", build="", setup=setup.name, model=_MODEL, role=Role.CONTROL
                )
                result = run_trial(identity, PROBE_SCENARIO, setup, bench, folder, threading.Event())
                if result.status is Status.ERROR:
                    return f"the probe ended in {result.cause}: {result.detail}"[:300]
                evidence.append(trial_evidence(folder))
        finally:
            warm.close()
    for other in evidence[1:]:
        if difference := first_difference(evidence[0], other):
            return difference
    return ""


def trial_evidence(folder: Path) -> dict[str, Any]:
    """What must not depend on the start: requests byte for byte, stores, files of the home, verdicts."""
    after = Manifest.model_validate_json((folder / AFTER).read_bytes())
    result = json.loads((folder / RESULT).read_bytes())
    del result["seconds"]
    for found in result["stores"] + (result["settled"] or {"stores": []})["stores"]:
        if found["store"] in (Store.OTHER, Store.PENDING):
            # Lines of the agent's logs with their times; staged writes with random ids, which stand in their names too.
            found["evidence"] = len(found["evidence"]) if found["store"] == Store.PENDING else None
    staged = sorted(path for path, state in after.files.items() if state.store is Store.PENDING)
    exchanges = read_exchanges(folder / REQUESTS)
    return {
        "requests": [(e.phase, e.kind, e.method, e.path, without_ids(e.request.data)) for e in exchanges],
        "stores": {
            path: state.sha256 for path, state in after.files.items() if state.store not in (Store.OTHER, Store.PENDING)
        },
        "staged": len(staged),
        "files": sorted(_TIME.sub("-", path) for path in after.files if path not in staged),
        "result": json.loads(without_ids(json.dumps(result).encode())),
    }


def first_difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Names the first kind of evidence in which two trials differ; empty where none does."""
    for name, value in one.items():
        if other[name] == value:
            continue
        if isinstance(value, list) and len(value) == len(other[name]):
            place = next(i for i, pair in enumerate(zip(value, other[name], strict=True)) if pair[0] != pair[1])
            return f"{name} differ at number {place + 1} of {len(value)}"
        return f"{name} differ"
    return ""
