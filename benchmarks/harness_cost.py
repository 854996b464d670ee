"""What the harness costs: a cold trial against the bare agent, and warm trials against one cold container for each.

Both are ratios measured on one machine in one process, so they may be compared between machines, which times may not.
Exit code 1 when a ratio misses its bound. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path

from lab.agents.base import SessionPlan
from lab.agents.hermes.adapter import (
    AGENT_PYTHON,
    DRIVER_DIRECTORY,
    ENDPOINT,
    EXCHANGE_DIRECTORY,
    JOB_NAME,
    MODEL_NAME,
    OUTCOME_NAME,
    SOCKET_NAME,
    HermesAgent,
)
from lab.agents.hermes.install import ensure
from lab.contamination.observe.judge import TrialIdentity
from lab.contamination.plan import SESSION_LIMITS, load_setup
from lab.contamination.scenarios.library import load_library
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.script import fresh_script, script_of, seed_of, session_plan
from lab.contamination.sessions.base import Sessions, give_to_sandbox
from lab.contamination.sessions.cold import ColdSessions
from lab.contamination.sessions.warm import WarmSessions
from lab.contamination.trial import Bench, run_trial
from lab.gateway.answers import ScriptedAnswers
from lab.gateway.policies.base import Script
from lab.gateway.policies.scripted import policy_named
from lab.gateway.server import GatewayHost
from lab.isolation import cgroup
from lab.isolation.base import SANDBOX_HOME, Backend, PreparedEnvironment
from lab.isolation.bwrap_reap import group_identity
from lab.isolation.select import backend_named
from lab.records import Status

PROJECT = Path(__file__).resolve().parents[1]
SETUP = load_setup(PROJECT / "containers" / "hermes" / "setups" / "default.yaml")
COST_BOUND = 1.25
RATE_BOUND = 6.0
CORES = 2
POLICIES = {"always-write": 2, "never-write": 1}
"""Policies, and the sessions that a trial of an attack has under each: a store that changed is looked at afresh."""

ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; exec "$@"'
AGENT = HermesAgent()
Sandbox = tuple[Backend, PreparedEnvironment]


@dataclass(frozen=True)
class Ratio:
    """One measured ratio with what it came from.

    Attributes:
        name: What was compared.
        value: The ratio.
        bound: Its bound.
        holds: Whether it is met.
        detail: The medians or rates behind it.
    """

    name: str
    value: float
    bound: float
    holds: bool
    detail: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints a table or JSON, returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", default="bwrap,docker", help="isolation backends, comma-separated")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of a bare and a cold trial, for each policy")
    parser.add_argument("--cold", type=int, default=8, help="cold trials in containers")
    parser.add_argument("--warm", type=int, default=60, help="warm trials")
    parser.add_argument("--only", choices=("cost", "rate"), help="one of the two measurements")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    names = options.backends.split(",")
    sandboxes = {name: (backend_named(name), ensure(name)) for name in names}
    ratios: list[Ratio] = []
    scratch = Path(tempfile.mkdtemp(prefix="lab-benchmark-"))
    try:
        with GatewayHost() as gateways:
            if options.only != "rate":
                for name, sandbox in sandboxes.items():
                    for policy in POLICIES:
                        ratios.append(cost(name, sandbox, gateways, policy, options.pairs, scratch))
            if options.only != "cost":
                ratios += rates(sandboxes, gateways, options.cold, options.warm, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(r) for r in ratios], indent=1))
    else:
        for ratio in ratios:
            verdict = "ok" if ratio.holds else "MISSED"
            print(f"{ratio.name:<52} {ratio.value:6.2f}  bound {ratio.bound:4.2f}  {verdict:<6}  {ratio.detail}")
    return 0 if all(ratio.holds for ratio in ratios) else 1


# A cold trial against the bare agent


def cost(name: str, sandbox: Sandbox, gateways: GatewayHost, policy: str, pairs: int, scratch: Path) -> Ratio:
    """Wall time of a cold trial over that of the bare agent doing the same; the median over pairs."""
    scenario = next(s for s in load_library(PROJECT / "scenarios") if s.id == "F1-001")
    bare: list[float] = []
    cold: list[float] = []
    for pair in range(pairs + 1):
        steps: list[tuple[list[float], Callable[[Path], float]]] = [
            (bare, lambda folder: bare_trial(sandbox, gateways, scenario, policy, folder)),
            (cold, lambda folder: timed_trial(sandbox, gateways, ColdSessions(), scenario, policy, folder)),
        ]
        # The order changes, so that a slow drift of the machine favours neither; the first pair fills the caches.
        for number, (taken, measure) in enumerate(steps if pair % 2 else reversed(steps)):
            folder = scratch / f"cost-{name}-{policy}-{pair}-{number}"
            folder.mkdir()
            seconds = measure(folder)
            if pair:
                taken.append(seconds)
    value = statistics.median(c / b for c, b in zip(cold, bare, strict=True))
    detail = f"median {statistics.median(cold):.2f} s to {statistics.median(bare):.2f} s over {pairs} pairs"
    return Ratio(f"cold trial / bare agent, {name}, {policy}", value, COST_BOUND, value <= COST_BOUND, detail)


def bare_trial(sandbox: Sandbox, gateways: GatewayHost, scenario: Scenario, policy: str, folder: Path) -> float:
    """Seconds that the agent alone takes for the sessions of a trial: its interpreter, the driver, the same answers.

    Home, endpoint and relay are there before the clock starts. There is no capture, no judgement, no entry program, no
    control group, and the network is the host's.
    """
    home, io = folder / "home", folder / "io"
    home.mkdir(mode=0o700)
    AGENT.initialise_home(home, seed_of(scenario, scenario.role), SETUP)
    seconds = 0.0
    fresh = fresh_script(scenario, AGENT)
    sessions = (
        (script_of(scenario, scenario.role, AGENT), AGENT.job(session_plan(scenario, scenario.role, SETUP))),
        (fresh, AGENT.job(SessionPlan([turn.user for turn in fresh.turns]))),
    )
    for number, (script, asked) in enumerate(sessions[: POLICIES[policy]]):
        io.mkdir(exist_ok=True)
        with endpoint(gateways, script, policy, io / f"{number}-{SOCKET_NAME}", folder) as url:
            config = home / ".hermes" / "config.yaml"
            config.write_text(config.read_text().replace(ENDPOINT, url))
            job = json.dumps(asked).replace(ENDPOINT, url)
            (io / JOB_NAME).write_text(job)
            give_to_sandbox(home)
            give_to_sandbox(io)
            command = bare_command(*sandbox, home, io)
            with same_share(sandbox[0]) as enter:
                started = time.monotonic()
                done = subprocess.run([*enter, *command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
                seconds += time.monotonic() - started
            config.write_text(config.read_text().replace(url, ENDPOINT))
        outcome = json.loads((io / OUTCOME_NAME).read_bytes())
        if done.returncode != 0 or not outcome["reviews"]:
            raise SystemExit(f"the bare agent failed: {done.stderr.decode(errors='replace')[-500:]}")
        (io / OUTCOME_NAME).unlink()
    return seconds


@contextmanager
def endpoint(
    gateways: GatewayHost,
    script: Script,
    policy: str,
    path: Path,
    folder: Path,
) -> Iterator[str]:
    """The lab's endpoint at a port of the host, by the sandbox's own relay, which is up when the context begins."""
    gateway = gateways.open(
        socket=path,
        answers=ScriptedAnswers(policy_named(policy), script),
        delivered=script.delivered,
        record=folder / f"{path.name}.jsonl",
        phase="session",
        model=MODEL_NAME,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        program = PROJECT / "containers" / "hermes" / "relay.py"
        command = [sys.executable, "-I", "-S", str(program), str(path), str(listener.fileno())]
        relay = subprocess.Popen(command, pass_fds=[listener.fileno()])
    try:
        with socket.create_connection(("127.0.0.1", port)) as probe:
            probe.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while probe.recv(4096):
                pass
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        relay.kill()
        relay.wait()
        gateways.close(gateway)


def bare_command(backend: Backend, environment: PreparedEnvironment, home: Path, io: Path) -> list[str]:
    """The driver in the same prepared environment, started as one would by hand."""
    driver = [AGENT_PYTHON, f"{DRIVER_DIRECTORY}/driver.py"]
    driver += [f"{EXCHANGE_DIRECTORY}/{JOB_NAME}", f"{EXCHANGE_DIRECTORY}/{OUTCOME_NAME}"]
    variables = {"HOME": SANDBOX_HOME, **AGENT.environment()}
    if backend.name == "docker":
        line = ["docker", "run", "--rm", "--network", "host", "-v", f"{home}:{SANDBOX_HOME}"]
        line += ["-v", f"{io}:{EXCHANGE_DIRECTORY}"]
        line += [part for name, value in variables.items() for part in ("-e", f"{name}={value}")]
        return [*line, environment.reference, *driver]
    line = ["bwrap", "--ro-bind", environment.reference, "/", "--proc", "/proc", "--dev", "/dev"]
    line += ["--tmpfs", "/tmp", "--tmpfs", "/run", "--bind", str(io), EXCHANGE_DIRECTORY]
    line += ["--bind", str(home), SANDBOX_HOME, "--ro-bind", str(environment.driver), DRIVER_DIRECTORY, "--clearenv"]
    line += [part for name, value in variables.items() for part in ("--setenv", name, value)]
    return [*line, "--chdir", SANDBOX_HOME, *driver]


@contextmanager
def same_share(backend: Backend) -> Iterator[list[str]]:
    """A control group without limits beside those of sandboxes, and what has a program enter it.

    On a busy machine a program outside would be given another share of the processors than one in a sandbox, and that
    would be measured. Docker's containers all lie beside one another anyway.
    """
    hierarchies = cgroup.detect() if backend.name == "bwrap" else None
    if hierarchies is None:
        yield []
        return
    group = cgroup.Group.named(hierarchies, group_identity("bare"))
    for path in group.paths.values():
        path.mkdir()
    try:
        yield ["/bin/sh", "-c", ENTER, "lab", *map(str, group.entry_files()), "--"]
    finally:
        group.kill()
        group.remove()


def timed_trial(
    sandbox: Sandbox, gateways: GatewayHost, sessions: Sessions, scenario: Scenario, policy: str, folder: Path
) -> float:
    """Seconds of one whole trial of the lab, from nothing to its result on disk."""
    bench = Bench(*sandbox, AGENT, gateways, SESSION_LIMITS, "benchmark", sessions)
    identity = TrialIdentity(
        trial=folder.name, cell="c", build="b", setup=SETUP.name, model=f"scripted:{policy}", role=scenario.role
    )
    started = time.monotonic()
    result = run_trial(identity, scenario, SETUP, bench, folder, threading.Event())
    seconds = time.monotonic() - started
    if result.status is not Status.VALID:
        raise SystemExit(f"the trial is {result.status}: {result.cause} {result.detail}")
    return seconds


# Warm trials against one cold container for each


def rates(sandboxes: dict[str, Sandbox], gateways: GatewayHost, cold: int, warm: int, scratch: Path) -> list[Ratio]:
    """Trials per minute, two at once, each with its session, its review and its fresh session."""
    if "docker" not in sandboxes:
        return []
    base, _ = rate(sandboxes["docker"], gateways, ColdSessions(), cold, scratch / "cold")
    found = []
    for name, sandbox in sandboxes.items():
        with closing(WarmSessions()) as sessions:
            forked, start = rate(sandbox, gateways, sessions, warm, scratch / f"warm-{name}")
        value = forked / base
        # Trials after which the start of the pool is paid back.
        paid = start / 60 / (1 / base - 1 / forked) if forked > base else float("inf")
        detail = (
            f"{forked:.1f} to {base:.1f} trials a minute; {start:.1f} s to start, paid back after {paid:.0f} trials"
        )
        ratio = Ratio(f"warm / cold container, {name}, {CORES} at once", value, RATE_BOUND, value >= RATE_BOUND, detail)
        found.append(ratio)
    return found


def rate(sandbox: Sandbox, gateways: GatewayHost, sessions: Sessions, count: int, folder: Path) -> tuple[float, float]:
    """Trials per minute once everything is up, and the seconds that took."""
    library = [s for s in load_library(PROJECT / "scenarios") if s.family == "F1" and s.content.action == "add"]
    chosen = list(islice(cycle(library), count + CORES))

    def one(number: int) -> float:
        place = folder / str(number)
        place.mkdir(parents=True)
        return timed_trial(sandbox, gateways, sessions, chosen[number], "always-write", place)

    with ThreadPoolExecutor(CORES) as pool:
        first = list(pool.map(one, range(CORES)))
        started = time.monotonic()
        rest = list(pool.map(one, range(CORES, count + CORES)))
        seconds = time.monotonic() - started
    return 60 * count / seconds, max(0.0, max(first) - statistics.median(rest))


if __name__ == "__main__":
    sys.exit(main())
