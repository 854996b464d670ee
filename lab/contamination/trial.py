"""Runs one trial: home, gateway, sandboxed session, capture from bytes, fresh session, judgement."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.agents.base import PendingAction, SessionPlan, Setup
from lab.agents.hermes.adapter import EXCHANGE_DIRECTORY, JOB_NAME, MODEL_NAME, OUTCOME_NAME, SOCKET_NAME, HermesAgent
from lab.contamination.observe.judge import (
    AFTER,
    BEFORE,
    COURSE,
    JUDGED_STORES,
    OUTCOME,
    PENDING_OUTCOME,
    REQUESTS,
    SETTLED,
    Course,
    TrialIdentity,
    judge,
    requests_digest,
)
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.script import fresh_script, script_of, seed_of, session_plan
from lab.contamination.stores import Manifest, capture, drop_unchanged, store_changed, text_diff
from lab.errors import EnvironmentUnusable, LabError, SandboxCancelled, SandboxError, SandboxStartFailed
from lab.gateway.policies.base import SCRIPTED, Script
from lab.gateway.policies.scripted import policy_named
from lab.gateway.server import GatewayHost, TrialGateway
from lab.isolation.base import (
    SANDBOX_HOME,
    Backend,
    Limits,
    Mount,
    PreparedEnvironment,
    SandboxSpec,
    sandbox_ids,
)
from lab.records import Store, TrialResult
from lab.runs.folder import RESULT, write_atomic, write_json

UPSTREAM_GONE, RELAY_FAILED, AGENT_IMPORT, AGENT_RAISED, CRASHED = 97, 98, 3, 4, 5
_EXIT_CAUSES = {
    UPSTREAM_GONE: "gateway_gone",
    RELAY_FAILED: "relay_failed",
    AGENT_IMPORT: "agent_cannot_be_imported",
    AGENT_RAISED: "agent_raised",
}
WORK_PREFIX = "lab-work-"


@dataclass(frozen=True)
class Bench:
    """What all trials of a run share.

    Attributes:
        backend: Isolation.
        environment: The prepared build.
        agent: Adapter of the product.
        gateways: Host of the model endpoints.
        limits: Bounds of one session.
        run_id: Label on every sandbox.
    """

    backend: Backend
    environment: PreparedEnvironment
    agent: HermesAgent
    gateways: GatewayHost
    limits: Limits
    run_id: str


def run_trial(
    identity: TrialIdentity, scenario: Scenario, setup: Setup, bench: Bench, folder: Path, cancel: threading.Event
) -> TrialResult:
    """Runs a trial and writes its evidence, then its result as the last file.

    Args:
        identity: Which trial.
        scenario: Its scenario.
        setup: Its setup.
        bench: What the run shares.
        folder: Empty folder of the trial.
        cancel: Set from outside to end the trial.

    Returns:
        The result; an infrastructure error is one too.

    Raises:
        SandboxCancelled: ``cancel`` was set; there is no result.
        OSError: Evidence cannot be written (a full disk); there is no result.
    """
    work = Path(tempfile.mkdtemp(prefix=f"{WORK_PREFIX}{os.getpid()}-"))
    try:
        course = _Course(identity, scenario, setup, bench, folder, work, cancel).run()
    except LabError:
        raise
    except Exception as error:
        if _is_the_machines(error):
            raise
        # One odd trial must neither end the run nor become a result.
        course = Course(cause="lab_fault", detail=f"{type(error).__name__}: {error}"[:500])
    finally:
        remove_tree(work)
    course = course.model_copy(update={"requests_sha256": requests_digest(folder)})
    write_json(folder / COURSE, course.model_dump(mode="json"))
    try:
        text = judge(identity, scenario, setup, bench.agent, folder).model_dump_json(indent=2)
    except LabError:
        raise
    except Exception as error:
        if _is_the_machines(error):
            raise
        course = course.model_copy(update={"cause": "judge_fault", "detail": f"{type(error).__name__}: {error}"[:500]})
        write_json(folder / COURSE, course.model_dump(mode="json"))
        text = judge(identity, scenario, setup, bench.agent, folder).model_dump_json(indent=2)
    write_atomic(folder / RESULT, text.encode() + b"\n")
    return TrialResult.model_validate_json(text)


def _is_the_machines(error: Exception) -> bool:
    """Whether an error would meet every other trial as well: a full, read-only or broken disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def remove_tree(path: Path) -> None:
    """Removes a directory that a sandbox may have filled; the system's ``rm`` takes any depth and follows no link."""
    subprocess.run(["rm", "-rf", "--one-file-system", "--", path], check=False, stderr=subprocess.DEVNULL)


def sweep_work_directories() -> list[str]:
    """Removes working directories whose lab process is gone: a killed lab cannot tidy up.

    Returns:
        Paths of the removed directories.
    """
    removed = []
    for path in Path(tempfile.gettempdir()).glob(f"{WORK_PREFIX}*"):
        owner = path.name.removeprefix(WORK_PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and path.lstat().st_uid == os.geteuid():
            remove_tree(path)
            removed.append(str(path))
    return removed


class _Course:
    """One trial under way."""

    def __init__(
        self,
        identity: TrialIdentity,
        scenario: Scenario,
        setup: Setup,
        bench: Bench,
        folder: Path,
        work: Path,
        cancel: threading.Event,
    ) -> None:
        self.identity, self.scenario, self.setup, self.bench = identity, scenario, setup, bench
        self.folder, self.cancel = folder, cancel
        self.home, self.io = work / "home", work / "io"
        self.seconds: dict[str, float] = {}
        self.requests = 0

    def run(self) -> Course:
        scenario, role, setup, agent = self.scenario, self.identity.role, self.setup, self.bench.agent
        self.home.mkdir(mode=0o700)
        agent.initialise_home(self.home, seed_of(scenario, role), setup)
        self._give_to_sandbox(self.home)
        before = self._capture(BEFORE)
        job = agent.job(session_plan(scenario, role, setup))
        cause, detail = self._session("session", job, script_of(scenario, role, agent))
        after = self._capture(AFTER)
        write_atomic(self.folder / "stores.diff", text_diff(before, after, self.folder).encode())
        settled = None
        if not cause and setup.pending is not PendingAction.NONE and store_changed(before, after, Store.PENDING):
            cause, detail = self._session("pending", agent.pending_job(setup.pending), Script(turns=()))
            settled = self._capture(SETTLED)
        drop_unchanged(before, [m for m in (after, settled) if m], self.folder)
        loaded = False
        last = settled or after
        if not cause and any(store_changed(before, last, store) for store in JUDGED_STORES):
            script = fresh_script(scenario, agent)
            cause, detail = self._session("load", agent.job(SessionPlan([t.user for t in script.turns])), script)
            loaded = not cause
        return Course(cause=cause, detail=detail, loaded=loaded, settled=settled is not None, seconds=self.seconds)

    def _session(self, phase: str, job: Mapping[str, Any], script: Script) -> tuple[str, str]:
        """Runs one session in a sandbox of its own.

        Returns:
            Cause and detail of an infrastructure error; both empty where it ended well.
        """
        remove_tree(self.io)
        self.io.mkdir(mode=0o755)
        (self.io / JOB_NAME).write_bytes(json.dumps(job).encode())
        write_json(self.folder / f"job-{phase}.json", job)
        self._give_to_sandbox(self.io)
        gateway = self.bench.gateways.open(
            socket=self.io / SOCKET_NAME,
            script=script,
            policy=policy_named(self.identity.model.removeprefix(SCRIPTED)),
            record=self.folder / REQUESTS,
            phase=phase,
            model=MODEL_NAME,
            after=self.requests,
        )
        started = time.monotonic()
        try:
            cause, detail = self._sandbox(phase, gateway)
        finally:
            self.bench.gateways.close(gateway)
            self.requests = gateway.seq
            self.seconds[phase] = round(time.monotonic() - started, 3)
        if isinstance(gateway.failure, OSError):
            raise gateway.failure
        if gateway.failure:
            return "recording_limit", str(gateway.failure)
        outcome = self.io / OUTCOME_NAME
        kept = {"session": OUTCOME, "pending": PENDING_OUTCOME}.get(phase)
        if kept and outcome.is_file() and not outcome.is_symlink():
            write_atomic(self.folder / kept, outcome.read_bytes()[: 4 << 20])
        return cause, detail

    def _sandbox(self, phase: str, gateway: TrialGateway) -> tuple[str, str]:
        spec = SandboxSpec(
            environment=self.bench.environment,
            command=self.bench.agent.command(),
            env=self.bench.agent.environment(),
            mounts=(Mount(self.home, SANDBOX_HOME, writable=True), Mount(self.io, EXCHANGE_DIRECTORY, writable=True)),
            limits=self.bench.limits,
            labels={"run": self.bench.run_id, "trial": self.identity.trial, "phase": phase},
        )
        stop = _Either(self.cancel, gateway.died)
        try:
            exit_ = self.bench.backend.run(spec, stop)
        except SandboxError as error:
            if isinstance(error, SandboxStartFailed):
                # What cannot start here cannot start for any trial: the run ends, and goes on when it is mended.
                raise EnvironmentUnusable(error.message, error.mend) from error
            self._keep_output(phase, error.stdout, error.stderr)
            if self.cancel.is_set():
                raise SandboxCancelled("the run was interrupted", "lab resume") from error
            if gateway.died.is_set():
                return "gateway_died", "the model endpoint ended in the middle of the trial"
            return f"sandbox_{error.cause}", str(error)
        self._keep_output(phase, exit_.stdout, exit_.stderr)
        if gateway.died.is_set():
            return "gateway_died", "the model endpoint ended in the middle of the trial"
        wanted = CRASHED if phase == "session" and self.setup.pending is PendingAction.APPROVE_AFTER_CRASH else 0
        if exit_.code == wanted:
            return "", ""
        return _EXIT_CAUSES.get(exit_.code, "agent_exit"), f"the {phase} ended with exit code {exit_.code}"

    def _capture(self, name: str) -> Manifest:
        manifest = capture(self.home, self.bench.agent, self.folder)
        write_json(self.folder / name, manifest.model_dump(mode="json"))
        return manifest

    def _keep_output(self, phase: str, stdout: bytes, stderr: bytes) -> None:
        write_atomic(self.folder / f"{phase}.stdout.txt", stdout)
        write_atomic(self.folder / f"{phase}.stderr.txt", stderr)

    @staticmethod
    def _give_to_sandbox(path: Path) -> None:
        """Makes a directory the sandbox user's, where the lab may; otherwise both are the same user."""
        if os.geteuid() != 0:
            return
        for directory, _, names in os.walk(path):
            os.chown(directory, *sandbox_ids())
            for name in names:
                os.chown(Path(directory) / name, *sandbox_ids(), follow_symlinks=False)


class _Either(threading.Event):
    """Set when either of two events is; backends wait on it like on any event."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(e.is_set() for e in self._events)
