"""First process of a warm sandbox: imports the agent once, then forks one child for each session.

Standard library and the agent only. The lab outside is obeyed over one connected socket that no session has. Between
two sessions nothing of the first is left: every other process is killed, everything writable that is not mounted from
the lab is emptied, and what one process can change of another is compared with what it was at first. A sandbox that is
not as it was says so, and the lab throws it away. See docs/warm-start.md.

Commands, JSON in one message each: ``learn`` runs a session and tells the modules it imported, ``preload`` imports a
list of them, ``run`` runs a session. ``learn`` and ``run`` bring two descriptors, the session's standard output and
standard error.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any, ClassVar

import entry
import relay

SCRATCH = ("/tmp", "/dev/shm")
# Writable, but without a place for bytes that outlive their process: terminals, and message queues, of which the limit
# set below allows none.
EPHEMERAL = ("/dev/pts", "/dev/mqueue")
MESSAGE_BYTES = 1 << 20
ORPHAN_MILLISECONDS = 50
PR_SET_DUMPABLE = 4
# sched_getattr(2) and ioprio_get(2), which the standard library lacks; asm/unistd_64.h and asm-generic/unistd.h.
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
IOPRIO_GET = {"x86_64": 252, "aarch64": 31}
IOPRIO_WHO_PROCESS = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Runs ``zygote.py CONTROL SOCKET PORT DRIVER JOB OUTCOME``; returns when the lab hangs up."""
    if os.getpid() != 1:
        print("zygote: this is not process 1 of a sandbox, and would kill what it must not", file=sys.stderr)
        return 1
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(sys.argv[1])
    mounts = (os.environ["HOME"], os.path.dirname(sys.argv[1]))
    zygote = Zygote(control, mounts, sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    while True:
        message, output, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 2)
        if not message:
            return 0
        command = json.loads(message)
        operation = {"learn": zygote.learn, "run": zygote.run}.get(command["op"])
        answer = operation(output) if operation else zygote.preload(command["modules"])
        control.send(json.dumps(answer).encode())


class Zygote:
    """The imported agent, of which every session gets a copy.

    Args:
        control: Connection to the lab.
        mounts: Directories that the lab itself empties.
        upstream: Path of the gateway's socket.
        port: Port of the relay.
        driver: The driver's path and its arguments.
    """

    def __init__(
        self, control: socket.socket, mounts: tuple[str, ...], upstream: str, port: int, driver: list[str]
    ) -> None:
        self._control, self._mounts = control, mounts
        self._upstream, self._port = upstream, port
        self._driver = driver
        self._before: dict[str, Any] = {}
        # Process 1 ignores every signal that it has no handler for, so a session can neither end nor stop it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Nor may a session write its memory or take its descriptors, though it has the same user id.
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        # A message queue would outlive its session, and without a right to mount nobody could list it.
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))

    def learn(self, output: list[int]) -> dict[str, Any]:
        """Runs a session as it would run under a cold start.

        Returns:
            Beside what ``run`` returns, ``modules``: what it imported, in that order; ``touched``: which paths of the
            home mere importing looked at, and whether at their content, names or kind.
        """
        with open(os.memfd_create("modules"), "r+b") as report:
            answer = self._session(output, report.fileno())
            report.seek(0)
            return {"modules": [], "touched": {}, **json.loads(report.read() or b"{}"), **answer}

    def preload(self, modules: list[str]) -> dict[str, Any]:
        """Imports the agent; ``unfit`` says why this process must not be copied, and is empty where it may be."""
        failed = []
        for name in modules:
            try:
                importlib.import_module(name)
            except BaseException as error:  # as if it had not been asked for: the session will meet it again
                failed.append(f"{name}: {type(error).__name__}")
        unfit = self._unfit()
        for place in SCRATCH:
            empty(place)
        self._before = measure()
        gc.collect()
        gc.freeze()
        return {"unfit": unfit or unclean(self._before), "failed": failed, "modules": len(sys.modules)}

    def run(self, output: list[int]) -> dict[str, Any]:
        """Runs one session and cleans up after it."""
        return self._session(output)

    def _session(self, output: list[int], report: int | None = None) -> dict[str, Any]:
        """Runs a session to the end of all its processes.

        Returns:
            ``code``: its exit code; ``unclean``: why there must be no next one, empty where there may be.
        """
        listener = entry.listen(self._port)
        relay_pid = fork(lambda: self._relay(listener), output, [self._control])
        pid = fork(lambda: self._drive(report), output, [self._control, listener])
        listener.close()
        for descriptor in output:
            os.close(descriptor)
        code = self._wait(pid, relay_pid)
        end_everything()
        for place in SCRATCH:
            empty(place)
        return {"code": code, "unclean": unclean(self._before)}

    def _relay(self, listener: socket.socket) -> None:
        import asyncio

        asyncio.run(relay.relay(self._upstream, listener))

    def _drive(self, report: int | None) -> None:
        """Runs the driver as the main program that it is under a cold start."""
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        sys.argv = list(self._driver)
        module = types.ModuleType("__main__")
        module.__dict__.update(__file__=self._driver[0], __builtins__=__builtins__)
        sys.modules["__main__"] = module
        if report is not None:
            Observer(report)
        with open(self._driver[0], "rb") as stream:
            code = compile(stream.read(), self._driver[0], "exec")
        exec(code, module.__dict__)

    def _wait(self, pid: int, relay_pid: int) -> int:
        """Waits for the end of the session, of the relay, or of the lab; reaps orphans meanwhile."""
        ends = [os.pidfd_open(one) for one in (pid, relay_pid)]
        poll = select.poll()
        for descriptor in (*ends, self._control.fileno()):
            poll.register(descriptor, select.POLLIN)
        codes: dict[int, int] = {}
        while pid not in codes and relay_pid not in codes:
            if any(descriptor == self._control.fileno() for descriptor, _ in poll.poll(ORPHAN_MILLISECONDS)):
                os._exit(0)  # the lab is gone; everything here ends with process 1
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])
        for descriptor in ends:
            os.close(descriptor)
        if pid in codes:
            if relay_pid not in codes:
                os.kill(relay_pid, signal.SIGKILL)
                codes[relay_pid] = os.waitstatus_to_exitcode(os.waitpid(relay_pid, 0)[1])
            return entry.end_of_session(codes[pid], codes[relay_pid])
        return relay.UPSTREAM_GONE if codes[relay_pid] == relay.UPSTREAM_GONE else entry.RELAY_FAILED

    def _unfit(self) -> str:
        """Why a copy of this process would not be whole, or would share something with the next; or empty."""
        threads = os.listdir("/proc/self/task")
        if len(threads) != 1:
            return f"importing the agent started threads: {[t.name for t in threading.enumerate()]}"
        expected = {0, 1, 2, self._control.fileno()}
        files = [number for number in map(int, os.listdir("/proc/self/fd")) if number not in expected]
        left = [place for number in files if (place := _link(f"/proc/self/fd/{number}"))]
        if left:
            return f"importing the agent left files open: {left}"
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            shared = [
                line.split()[-1] for line in maps if line.split()[1].startswith("rw") and line.split()[1][3] == "s"
            ]
        if shared:
            return f"importing the agent made shared memory: {shared}"
        known = {*SCRATCH, *EPHEMERAL, *self._mounts}
        if unknown := [place for place in writable_mounts() if place not in known]:
            return f"places are writable that nobody would empty: {unknown}"
        return ""


def fork(work: Callable[[], None], output: list[int], shut: list[socket.socket]) -> int:
    """Starts a child with null input and the given output that ends with ``work``; returns its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, descriptor in enumerate((os.open("/dev/null", os.O_RDONLY), *output)):
            os.dup2(descriptor, number)
            os.close(descriptor)
        for one in shut:
            one.close()
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class Observer:
    """Sees, in the process of a rehearsal, which modules a session imports and what of the home importing touches.

    Args:
        report: Descriptor of the file to which it all is written before the process ends.
    """

    EVENTS: ClassVar = {
        **dict.fromkeys(("open", "sqlite3.connect"), "content"),
        **dict.fromkeys(("os.listdir", "os.scandir"), "names"),
        **dict.fromkeys(("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod"), "kind"),
    }
    """Audit events, and what of the path each may make importing depend on."""

    def __init__(self, report: int) -> None:
        self._report = report
        self._home = os.environ["HOME"]
        self._touched: dict[str, set[str]] = {}
        self._leave = os._exit
        os._exit = self._tell  # type: ignore[assignment]
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in self.EVENTS or not arguments or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(self._home + "/") and any(map(_is_initialising, list(sys.modules.values()))):
            self._touched.setdefault(os.path.relpath(path, self._home), set()).add(self.EVENTS[event])

    def _tell(self, code: int) -> None:
        places = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.abspath(__file__)))
        modules = []
        for name, module in list(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None)
            if origin and (origin in ("built-in", "frozen") or origin.startswith(places)):
                modules.append(name)
        touched = {path: sorted(parts) for path, parts in self._touched.items()}
        told = memoryview(json.dumps({"modules": modules, "touched": touched}).encode())
        while told:
            told = told[os.write(self._report, told) :]
        self._leave(code)


def _is_initialising(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def end_everything() -> None:
    """Kills every process but this one and waits until the last is gone.

    For process 1 of a namespace, -1 means all others in it; the kernel lets no fork slip through between.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def empty(place: str) -> None:
    """Removes what is in a directory; whether that went well is for ``unclean`` to say."""
    with os.scandir(place) as entries:
        found = list(entries)
    for one in found:
        if one.is_dir(follow_symlinks=False):
            with contextlib.suppress(RecursionError):
                shutil.rmtree(one.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(one.path)
    with contextlib.suppress(OSError):
        os.utime(place)


def measure() -> dict[str, Any]:
    """What a process of the same user can change of this one, and of the directories that stay."""
    names = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
    roots = {}
    for place in SCRATCH:
        info = os.stat(place)
        roots[place] = [info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_size, os.listxattr(place)]
    machine = os.uname().machine
    schedule = ctypes.create_string_buffer(256)
    if machine in SCHED_GETATTR:
        LIBC.syscall(SCHED_GETATTR[machine], 1, schedule, len(schedule), 0)
    priority = LIBC.syscall(IOPRIO_GET[machine], IOPRIO_WHO_PROCESS, 1) if machine in IOPRIO_GET else 0
    return {
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in names},
        "processors": sorted(os.sched_getaffinity(1)),
        "priority": [os.getpriority(os.PRIO_PROCESS, 1), schedule.raw.hex(), priority],
        "directories": roots,
    }


def unclean(before: dict[str, Any]) -> str:
    """What of a session is still there; empty where nothing is."""
    others = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    if others:
        return f"processes are left: {others}"
    for place in SCRATCH:
        if found := os.listdir(place):
            return f"{place} is not empty: {len(found)} left"
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sysvipc/{kind}", encoding="ascii") as table:
            if len(table.readlines()) > 1:
                return f"System V objects are left: {kind}"
    after = measure()
    changed = [name for name in before if before[name] != after[name]]
    return f"process 1 was changed: {changed}" if changed else ""


def writable_mounts() -> list[str]:
    """Mount points at which this process may write a file."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        points = [line.split()[4] for line in table]
    for point in points:
        with contextlib.suppress(OSError):
            kind = os.stat(point).st_mode
            if (stat.S_ISDIR(kind) or stat.S_ISREG(kind)) and os.access(point, os.W_OK):
                found.append(point)
    return found


def _link(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return ""


if __name__ == "__main__":
    sys.exit(main())
