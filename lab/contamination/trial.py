"""Runs one trial: home, gateway, sandboxed session, capture from bytes, fresh session, judgement."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.agents.base import PendingAction, SessionPlan, Setup
from lab.agents.hermes.adapter import JOB_NAME, MODEL_NAME, OUTCOME_NAME, SOCKET_NAME, HermesAgent
from lab.contamination.answering import Answering, Scripted
from lab.contamination.capture import capture, drop_unchanged
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
from lab.contamination.secrets import Secrets
from lab.contamination.sessions.base import CRASHED_ON_DEMAND, Launch, Place, Sessions, give_to_sandbox
from lab.contamination.sessions.cold import ColdSessions
from lab.contamination.stores import Manifest, store_changed, text_diff
from lab.errors import BudgetSpent, LabError
from lab.gateway.answers import FailureCause
from lab.gateway.policies.base import Script
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.records import Store, TrialResult
from lab.runs.folder import RESULT, write_atomic, write_json

RAISE = "lab resume with a larger --budget-tokens or --budget-cost; without one the run's own budget holds again"


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
        sessions: How sessions are started.
        answering: Who answers the agent.
        secrets: What no file of a trial may hold.
    """

    backend: Backend
    environment: PreparedEnvironment
    agent: HermesAgent
    gateways: GatewayHost
    limits: Limits
    run_id: str
    sessions: Sessions = field(default_factory=ColdSessions)
    answering: Answering = field(default_factory=Scripted)
    secrets: Secrets = field(default_factory=Secrets.of)


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
    launch = Launch(bench.backend, bench.environment, bench.agent, setup, bench.gateways, bench.limits, bench.run_id)
    try:
        with bench.sessions.place(launch, cancel) as place:
            course = _Course(identity, scenario, setup, bench, folder, place, cancel).run()
    except LabError:
        raise
    except Exception as error:
        if _is_the_machines(error):
            raise
        # One odd trial must neither end the run nor become a result.
        course = Course(cause="lab_fault", detail=f"{type(error).__name__}: {error}"[:500])
    redactor = bench.secrets.redactor(scenario)
    told = {"detail": redactor.text(course.detail), "requests_sha256": requests_digest(folder)}
    course = course.model_copy(update=told)
    write_json(folder / COURSE, course.model_dump(mode="json"))
    try:
        text = judge(identity, scenario, setup, bench.agent, folder).model_dump_json(indent=2)
    except LabError:
        raise
    except Exception as error:
        if _is_the_machines(error):
            raise
        detail = redactor.text(f"{type(error).__name__}: {error}"[:500])
        course = course.model_copy(update={"cause": "judge_fault", "detail": detail})
        write_json(folder / COURSE, course.model_dump(mode="json"))
        text = judge(identity, scenario, setup, bench.agent, folder).model_dump_json(indent=2)
    write_atomic(folder / RESULT, text.encode() + b"\n")
    return TrialResult.model_validate_json(text)


def _is_the_machines(error: Exception) -> bool:
    """Whether an error would meet every other trial as well: a full, read-only or broken disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class _Course:
    """One trial under way."""

    def __init__(
        self,
        identity: TrialIdentity,
        scenario: Scenario,
        setup: Setup,
        bench: Bench,
        folder: Path,
        place: Place,
        cancel: threading.Event,
    ) -> None:
        self.identity, self.scenario, self.setup, self.bench = identity, scenario, setup, bench
        self.folder, self.cancel = folder, cancel
        self.place, self.home, self.io = place, place.home, place.io
        self.seconds: dict[str, float] = {}
        self.requests = 0
        self.redactor = bench.secrets.redactor(scenario)
        self.answering = bench.answering.trial(identity, bench.agent)

    def run(self) -> Course:
        scenario, role, setup, agent = self.scenario, self.identity.role, self.setup, self.bench.agent
        agent.initialise_home(self.home, seed_of(scenario, role), setup)
        give_to_sandbox(self.home)
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
        """Runs one session against an endpoint of its own.

        Returns:
            Cause and detail of an infrastructure error; both empty where it ended well.
        """
        self.place.fresh_io()
        (self.io / JOB_NAME).write_bytes(json.dumps(job).encode())
        write_json(self.folder / f"job-{phase}.json", job)
        give_to_sandbox(self.io)
        gateway = self.bench.gateways.open(
            socket=self.io / SOCKET_NAME,
            answers=self.answering.phase(script),
            delivered=script.delivered,
            record=self.folder / REQUESTS,
            phase=phase,
            model=MODEL_NAME,
            after=self.requests,
            redact=self.redactor.data,
        )
        started = time.monotonic()
        try:
            end = self.place.run(phase, {"trial": self.identity.trial}, self.cancel, gateway.died)
        finally:
            self.bench.gateways.close(gateway)
            self.requests = gateway.seq
            self.seconds[phase] = round(time.monotonic() - started, 3)
        write_atomic(self.folder / f"{phase}.stdout.txt", self.redactor.data(end.stdout))
        write_atomic(self.folder / f"{phase}.stderr.txt", self.redactor.data(end.stderr))
        if isinstance(gateway.failure, OSError):
            raise gateway.failure
        if gateway.failure:
            return "recording_limit", str(gateway.failure)
        if gateway.unanswered:
            if gateway.unanswered.cause is FailureCause.BUDGET:
                raise BudgetSpent(gateway.unanswered.detail, RAISE)
            return gateway.unanswered.cause.value, gateway.unanswered.detail[:500]
        outcome = self.io / OUTCOME_NAME
        kept = {"session": OUTCOME, "pending": PENDING_OUTCOME}.get(phase)
        if kept and outcome.is_file() and not outcome.is_symlink():
            write_atomic(self.folder / kept, self.redactor.data(outcome.read_bytes()[: 4 << 20]))
        asked = phase == "session" and self.setup.pending is PendingAction.APPROVE_AFTER_CRASH
        if asked and end.cause == CRASHED_ON_DEMAND:
            return "", ""
        return end.cause, end.detail

    def _capture(self, name: str) -> Manifest:
        manifest = capture(self.home, self.bench.agent, self.folder, self.redactor)
        write_json(self.folder / name, manifest.model_dump(mode="json"))
        return manifest
