"""The warm start: nothing of one trial in the next, and typed ends. Its evidence: see ``test_warm_families``."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab.agents.hermes.adapter import (
    AGENT_PYTHON,
    DRIVER_DIRECTORY,
    EXCHANGE_DIRECTORY,
    SOCKET_NAME,
    HermesAgent,
)
from lab.contamination.plan import SESSION_LIMITS, load_setup
from lab.contamination.sessions import warm_sandbox
from lab.contamination.sessions.base import Launch, Place, SessionEnd, Sessions, give_to_sandbox
from lab.contamination.sessions.cold import ColdSessions
from lab.contamination.sessions.warm import WarmPlace, WarmSessions
from lab.contamination.warm_proof import first_difference, warm_differs
from lab.errors import SandboxCancelled
from lab.gateway.answers import ScriptedAnswers
from lab.gateway.exchange import read_exchanges
from lab.gateway.policies.base import Script
from lab.gateway.policies.scripted import policy_named
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from tests.warm_pools import watched_pool, zygotes

PROJECT = Path(__file__).parents[2]
DEFAULT = load_setup(PROJECT / "containers" / "hermes" / "setups" / "default.yaml")
Sandbox = tuple[Backend, PreparedEnvironment]

pytestmark = pytest.mark.agent


@pytest.fixture
def gateways() -> Iterator[GatewayHost]:
    with GatewayHost() as host:
        yield host


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[WarmSessions]:
    with watched_pool(tmp_path / "w") as sessions:
        yield sessions


def test_it_holds_on_every_backend(sandbox: Sandbox) -> None:
    assert warm_differs(*sandbox, DEFAULT, SESSION_LIMITS) == ""


def test_the_comparison_sees_one_byte(tmp_path: Path) -> None:
    one = {"requests": [("session", b"ab"), ("session", b"cd")], "files": ["x"]}
    assert first_difference(one, {**one}) == ""
    assert "number 2" in first_difference(one, {**one, "requests": [("session", b"ab"), ("session", b"cD")]})
    assert first_difference(one, {**one, "files": ["x", "y"]}) == "files differ"


# Sessions that run any program, so that a trial can be as hostile as it likes


class AnyProgram(HermesAgent):
    """Runs the program that the test puts into the exchange directory."""

    PROGRAM = f"{EXCHANGE_DIRECTORY}/driver.py"

    def command(self) -> tuple[str, ...]:
        command = super().command()
        return (*command[:4], AGENT_PYTHON, self.PROGRAM)

    def warm_command(self) -> tuple[str, ...]:
        command = super().warm_command()
        driver = command.index(f"{DRIVER_DIRECTORY}/driver.py")
        return (*command[:driver], self.PROGRAM)


@dataclass
class Stage:
    """Runs programs, each as a trial of its own unless the place is given."""

    sandbox: Sandbox
    gateways: GatewayHost
    folder: Path
    limits: Limits = SESSION_LIMITS
    agent: type[AnyProgram] = AnyProgram

    @property
    def launch(self) -> Launch:
        return Launch(*self.sandbox, self.agent(), DEFAULT, self.gateways, self.limits, "test")

    @contextmanager
    def place(self, sessions: Sessions) -> Iterator[Place]:
        with sessions.place(self.launch, threading.Event()) as place:
            give_to_sandbox(place.home)
            yield place

    def run(self, sessions: Sessions, program: str, **events: threading.Event) -> SessionEnd:
        with self.place(sessions) as place:
            return self.run_in(place, program, **events)

    def run_in(
        self,
        place: Place,
        program: str,
        cancel: threading.Event | None = None,
        died: threading.Event | None = None,
    ) -> SessionEnd:
        place.fresh_io()
        (place.io / "driver.py").write_text(program)
        give_to_sandbox(place.io)
        gateway = self.gateways.open(
            socket=place.io / SOCKET_NAME,
            answers=ScriptedAnswers(policy_named("never-write"), Script(turns=())),
            delivered=(),
            record=self.folder / "requests.jsonl",
            phase="session",
            model="scripted",
            after=len(read_exchanges(self.folder / "requests.jsonl")),
        )
        try:
            return place.run("session", {}, cancel or threading.Event(), died or threading.Event())
        finally:
            self.gateways.close(gateway)


@pytest.fixture
def stage(sandbox: Sandbox, gateways: GatewayHost, tmp_path: Path) -> Stage:
    return Stage(sandbox, gateways, tmp_path)


@pytest.fixture
def bwrap_stage(prepared: Callable[[str], Sandbox], gateways: GatewayHost, tmp_path: Path) -> Stage:
    return Stage(prepared("bwrap"), gateways, tmp_path)


LOOK = r"""
import ctypes, json, os, resource, signal, socket, sys, threading
def listing(top):
    return sorted(os.path.join(d, n) for d, ds, fs in os.walk(top) for n in ds + fs)
def can_connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        try: s.connect(address)
        except OSError: return False
        return True
def state(path):
    i = os.stat(path)
    return [oct(i.st_mode), i.st_uid, i.st_gid, i.st_nlink, i.st_size, os.listxattr(path)]
def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with open(f"/proc/{pid}/stat") as f: found.append(int(pid) not in (1, os.getpid()))
    return sum(found) - 1  # the relay
seen = {
    "home": listing("/home/agent"), "scratch": [listing("/tmp"), listing("/dev/shm")],
    "roots": [state(p) for p in ("/home/agent", "/run/lab", "/tmp", "/dev/shm")],
    "exchange": sorted(set(os.listdir("/run/lab")) - {"gw.sock"}),
    "umask": os.umask(0o022), "environment": dict(os.environ), "directory": os.getcwd(),
    "limits": [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")],
    "nice": [os.getpriority(os.PRIO_PROCESS, p) for p in (0, 1)], "processors": sorted(os.sched_getaffinity(0)),
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:3], "more": len(os.listdir("/proc/self/fd")),
    "threads": threading.active_count(), "processes": processes(), "parent": os.getppid(),
    "module": [hasattr(json, "planted"), hasattr(sys, "planted"), "planted" in sys.modules],
    "listeners": [can_connect(socket.AF_INET, ("127.0.0.1", 9999)), can_connect(socket.AF_UNIX, "\0planted")],
    "ipc": [len(open(f"/proc/sysvipc/{k}").readlines()) for k in ("shm", "sem", "msg")],
    "signals": [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "main": sys.modules["__main__"].__file__,
    "path": sys.path[0] == "" or len(sys.path),
}
print(json.dumps(seen))
"""

PLANT = r"""
import ctypes, json, os, signal, socket, subprocess, sys, threading, time
for place in ("/home/agent/.hermes/memories", "/tmp/deep/er", "/dev/shm"):
    os.makedirs(place, exist_ok=True)
    open(place + "/planted", "w").write("heron21")
open("/run/lab/outcome.json", "w").write("heron21")
open("/run/lab/planted", "w").write("heron21")
os.symlink("/etc/passwd", "/home/agent/link")
os.environ["PLANTED"] = "heron21"
os.umask(0o077)
json.planted = sys.planted = "heron21"
sys.modules["planted"] = json
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
lasting = '''
import os, signal, socket, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
tcp = socket.create_server(("127.0.0.1", 9999)); tcp.listen()
unix = socket.socket(socket.AF_UNIX); unix.bind("\\0planted"); unix.listen()
open("/tmp/up", "w").close()
while True:
    for place in ("/home/agent", "/tmp", "/dev/shm", "/run/lab"):
        open(f"{place}/late-{time.monotonic_ns()}", "w").close()
    try: socket.create_connection(("127.0.0.1", 8765), 1).sendall(b"GET /v1/planted HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n")
    except OSError: pass
    time.sleep(0.002)
'''
subprocess.Popen([sys.executable, "-c", lasting])
while not os.path.exists("/tmp/up"): time.sleep(0.01)
time.sleep(0.1)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""

ONE_REQUEST = r"""
import urllib.request
urllib.request.urlopen("http://127.0.0.1:8765/v1/models").read()
"""

DIFFERENT = {"environment"}
"""Names that bubblewrap or Docker set for process 1 are compared by themselves."""


def look(end: SessionEnd) -> dict[str, Any]:
    assert end.cause == "", (end, end.stderr)
    seen: dict[str, Any] = json.loads(end.stdout)
    return seen


def test_nothing_of_a_trial_reaches_the_next(stage: Stage, warm: WarmSessions) -> None:
    cold = look(stage.run(ColdSessions(), LOOK))
    first = look(stage.run(warm, LOOK))
    assert first == cold, "a fork sees what a cold start sees"
    (sandbox,) = warm._idle
    planted = look(stage.run(warm, PLANT + LOOK))
    blind = {name for name in cold if planted[name] == cold[name]}
    assert {"home", "scratch", "exchange", "umask", "environment", "threads", "processes"}.isdisjoint(blind)
    assert {"module", "listeners", "signals", "mask", "roots"}.isdisjoint(blind), "the look has eyes for it"
    before = read_exchanges(stage.folder / "requests.jsonl")
    assert any(e.path == "/v1/planted" for e in before), "the planted process did send"
    assert look(stage.run(warm, ONE_REQUEST + LOOK)) == cold
    after = read_exchanges(stage.folder / "requests.jsonl")[len(before) :]
    assert [(e.method, e.path) for e in after] == [("GET", "/v1/models")]
    assert warm._idle == [sandbox] or not sandbox.fit, "what can be taken away is, and the sandbox goes on"


LASTING_MARKS = {
    "memory": "ctypes.CDLL(None).shmget(4711, 4096, 0o1666)",
    "semaphore": "ctypes.CDLL(None).semget(4711, 1, 0o1666)",
    "messages": "ctypes.CDLL(None).msgget(4711, 0o1666)",
    "limit": "resource.prlimit(1, resource.RLIMIT_NOFILE, (77, 77))",
    "nice": "os.setpriority(os.PRIO_PROCESS, 1, 17)",
    "processor": "os.sched_setaffinity(1, {0})",
    "scheduler": "os.sched_setscheduler(1, os.SCHED_BATCH, os.sched_param(0))",
    "attribute": "os.setxattr('/home/agent', 'user.planted', b'heron21')",
    "mode": "os.chmod('/home/agent', 0o755)",
    "exchange-mode": "os.chmod('/run/lab', 0o711)",
}


@pytest.mark.parametrize("mark", LASTING_MARKS)
def test_what_cannot_be_taken_away_costs_the_sandbox(stage: Stage, warm: WarmSessions, mark: str) -> None:
    cold = look(stage.run(ColdSessions(), LOOK))
    assert look(stage.run(warm, LOOK)) == cold
    (sandbox,) = warm._idle
    assert look(stage.run(warm, LOOK)) == cold
    assert warm._idle == [sandbox], "without a mark the sandbox goes on"
    assert stage.run(warm, f"import ctypes, os, resource\n{LASTING_MARKS[mark]}\n").cause == ""
    assert warm._idle == []
    assert look(stage.run(warm, LOOK)) == cold


def test_a_mark_does_not_spoil_the_rest_of_its_own_trial(bwrap_stage: Stage, warm: WarmSessions) -> None:
    with bwrap_stage.place(warm) as place:
        mark = f"import ctypes\nopen('/home/agent/mine', 'w').write('x')\n{LASTING_MARKS['memory']}\n"
        assert bwrap_stage.run_in(place, mark).cause == ""
        seen = look(bwrap_stage.run_in(place, LOOK))
    assert seen["home"] == ["/home/agent/mine"]
    assert seen["ipc"] == [1, 1, 1], "the second session has a sandbox of its own"


ATTACK = r"""
import ctypes, json, os, signal, subprocess
target = 1 if FIRST else subprocess.Popen(["/usr/bin/sleep", "60"]).pid
got = []
def attempt(name, act):
    try: act()
    except OSError: return
    got.append(name)
attempt("write-memory", lambda: open(f"/proc/{target}/mem", "r+b").close())
attempt("read-memory", lambda: open(f"/proc/{target}/mem", "rb").close())
attempt("descriptors", lambda: os.listdir(f"/proc/{target}/fd"))
attempt("environment", lambda: open(f"/proc/{target}/environ", "rb").close())
attempt("score", lambda: open(f"/proc/{target}/oom_score_adj", "w").write("500"))
libc = ctypes.CDLL(None, use_errno=True)
if FIRST and libc.ptrace(16, target, None, None) == 0: got.append("trace")
if libc.mq_open(b"/planted", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0: got.append("queue")
if libc.syscall(248, b"user", b"planted", b"heron21", 7, -4) >= 0: got.append("keyring")
if os.path.exists("/run/lab/control.sock"): got.append("control")
for number in range(1, 65):
    if number != signal.SIGCHLD:
        try: os.kill(target, number)
        except OSError: pass
print(json.dumps(got))
"""


def test_the_first_process_cannot_be_reached(stage: Stage, warm: WarmSessions) -> None:
    elsewhere = look(stage.run(warm, f"FIRST = False\n{ATTACK}"))
    assert elsewhere == ["write-memory", "read-memory", "descriptors", "environment", "score"], "the attack is real"
    (sandbox,) = warm._idle
    assert look(stage.run(warm, f"FIRST = True\n{ATTACK}")) == []
    assert warm._idle == [sandbox]
    assert look(stage.run(warm, LOOK)) == look(stage.run(ColdSessions(), LOOK))


# Ends


def test_each_session_keeps_its_own_output_and_exit(stage: Stage, warm: WarmSessions) -> None:
    one = stage.run(warm, "import sys; print('one'); print('error', file=sys.stderr); sys.exit(7)")
    two = stage.run(warm, "print('two')")
    assert (one.stdout, one.stderr, one.cause, "7" in one.detail) == (b"one\n", b"error\n", "agent_exit", True)
    assert (two.stdout, two.stderr, two.cause) == (b"two\n", b"", "")


ENDS = {
    "raised": ("raise SystemExit(4)", "agent_raised"),
    "signal": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "agent_exit"),
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "sandbox_killed"),
    "endless": ("import time\nwhile True: time.sleep(60)", "sandbox_timeout"),
    "flood": ("while True: print('x' * 99999)", "sandbox_output_limit"),
    "memory": ("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1", "sandbox_oom"),
    "child-memory": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x = bytearray(1 << 30)\\nfor i in range(0, len(x), 4096): x[i] = 1'])",
        "sandbox_oom",
    ),
    "relay": (
        "import os, signal, time\n"
        "for p in filter(str.isdigit, os.listdir('/proc')):\n"
        "    if int(p) not in (1, os.getpid()): os.kill(int(p), signal.SIGKILL)\n"
        "time.sleep(100)",
        "relay_failed",
    ),
    "no-gateway": (
        "import os\nos.unlink('/run/lab/gw.sock')\n" + ONE_REQUEST + "\nimport time; time.sleep(9)",
        "gateway_gone",
    ),
    "no-gateway-and-gone-at-once": (
        "import os, socket\nos.unlink('/run/lab/gw.sock')\n"
        "s = socket.create_connection(('127.0.0.1', 8765))\ns.recv(1)\nos._exit(7)",
        "gateway_gone",
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_the_end_of_a_session_has_the_cause_of_a_cold_one(bwrap_stage: Stage, warm: WarmSessions, case: str) -> None:
    program, cause = ENDS[case]
    wall_seconds = 4 if cause == "sandbox_timeout" else 120
    bwrap_stage.limits = replace(bwrap_stage.limits, wall_seconds=wall_seconds, memory_bytes=200 << 20)
    assert bwrap_stage.run(ColdSessions(), program).cause == cause
    assert bwrap_stage.run(warm, program).cause == cause
    assert zygotes() == [] or cause in ("agent_raised", "agent_exit", "sandbox_killed", "relay_failed", "gateway_gone")
    bwrap_stage.limits = replace(bwrap_stage.limits, wall_seconds=120)
    assert bwrap_stage.run(warm, "print('next')").stdout == b"next\n"


def test_memory_ran_out_in_a_container(
    prepared: Callable[[str], Sandbox], gateways: GatewayHost, warm: WarmSessions, tmp_path: Path
) -> None:
    stage = Stage(prepared("docker"), gateways, tmp_path, replace(SESSION_LIMITS, memory_bytes=200 << 20))
    assert stage.run(warm, ENDS["child-memory"][0]).cause == "sandbox_oom"
    assert stage.run(warm, "print('next')").stdout == b"next\n"


def test_a_zygote_that_dies_is_an_error_of_one_trial(bwrap_stage: Stage, warm: WarmSessions) -> None:
    assert bwrap_stage.run(warm, "print('one')").cause == ""
    (pid,) = zygotes()
    timer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    timer.start()
    assert bwrap_stage.run(warm, "import time; time.sleep(30)").cause in ("sandbox_killed", "zygote_died")
    assert bwrap_stage.run(warm, "print('two')").stdout == b"two\n"


def test_a_zygote_that_died_between_two_trials(bwrap_stage: Stage, warm: WarmSessions) -> None:
    assert bwrap_stage.run(warm, "print('one')").cause == ""
    (pid,) = zygotes()
    os.kill(pid, signal.SIGKILL)
    assert bwrap_stage.run(warm, "print('two')").cause in ("sandbox_killed", "zygote_died")
    assert bwrap_stage.run(warm, "print('three')").stdout == b"three\n"


def test_cancel_and_the_death_of_the_endpoint_end_a_session(stage: Stage, warm: WarmSessions) -> None:
    cancel, died = threading.Event(), threading.Event()
    threading.Timer(0.5, died.set).start()
    assert stage.run(warm, "import time; time.sleep(60)", died=died).cause == "gateway_died"
    threading.Timer(0.5, cancel.set).start()
    with pytest.raises(SandboxCancelled):
        stage.run(warm, "import time; time.sleep(60)", cancel=cancel)


def test_a_sandbox_is_replaced_after_its_share_of_sessions(
    bwrap_stage: Stage, warm: WarmSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_sandbox, "SESSIONS", 2)
    used = []
    for _ in range(3):
        with bwrap_stage.place(warm) as place:
            assert isinstance(place, WarmPlace)
            used.append(place.slot.root)
            assert bwrap_stage.run_in(place, "pass").cause == ""
    assert used[0] == used[1] != used[2]


class FromExchange(AnyProgram):
    """Finds modules in the exchange directory."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONPATH": EXCHANGE_DIRECTORY}


SPOILING_IMPORTS = {
    "pass": "",
    "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()": "threads",
    "kept = open('/tmp/kept', 'w')": "files open",
    "import mmap\nkept = mmap.mmap(-1, 4096)": "shared memory",
    "import subprocess\nsubprocess.Popen(['/usr/bin/sleep', '60'])": "processes",
    "import ctypes\nctypes.CDLL(None).shmget(4711, 4096, 0o1666)": "System V",
}


@pytest.mark.parametrize("source", SPOILING_IMPORTS, ids=lambda s: SPOILING_IMPORTS[s] or "harmless")
def test_what_importing_leaves_behind_forbids_the_fork(bwrap_stage: Stage, source: str) -> None:
    bwrap_stage.agent = FromExchange
    sandbox = warm_sandbox.WarmSandbox(bwrap_stage.launch, None, threading.Event())
    try:
        assert sandbox._channel is not None
        (sandbox.slot.io / "planted.py").write_text(source)
        give_to_sandbox(sandbox.slot.io)
        command = {"op": "preload", "modules": ["planted", "planted_that_is_not_there"]}
        answer = sandbox._channel.ask(command, seconds=30, stop=lambda: False).answer
        assert answer["failed"] == ["planted_that_is_not_there: ModuleNotFoundError"]
        assert SPOILING_IMPORTS[source] in answer["unfit"] and bool(answer["unfit"]) == bool(SPOILING_IMPORTS[source])
    finally:
        sandbox.remove()


def test_descriptors_of_the_lab_do_not_grow(bwrap_stage: Stage, warm: WarmSessions) -> None:
    counts = []
    for _ in range(12):
        assert bwrap_stage.run(warm, "pass").cause == ""
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[-1] <= counts[1]
