"""Proof of isolation: a probe inside, listeners on this host that it must not reach, and the judgement.

Every refusal has its positive control: the same probe, run outside against the same listeners, must get through.
Only then does a refusal inside mean isolation, and not a listener that was never there.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from lab.errors import SandboxError
from lab.isolation.base import (
    SANDBOX_HOME,
    Backend,
    Limits,
    Mount,
    PreparedEnvironment,
    SandboxSpec,
    sandbox_ids,
)
from lab.isolation.bwrap_command import DRIVER_TARGET

PROBE_INSIDE = f"{DRIVER_TARGET}/probe.py"
"""The probe in every prepared environment."""

CHANNELS: Final = ("tcp", "tcp6", "udp", "abstract")
"""Ways out of a sandbox that the probe tries against the listeners."""

CALLS: Final = ("unshare", "clone", "clone3", "add_key", "keyctl")
"""System calls that the probe tries when asked for ``calls``: three ways to a user namespace, two to the keyring."""

_REFUSALS = ("EPERM", "ENOSYS")
_READ_ONLY = ("/", "/usr", "/etc", "/opt/agent", DRIVER_TARGET, "/var/tmp", "/dev")  # noqa: S108
_WRITABLE = (SANDBOX_HOME, "/tmp")  # noqa: S108
_HOST_SECONDS = 60
# Addresses of the documentation ranges: connecting a datagram socket chooses the source address and sends nothing.
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
_LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def own_address(family: socket.AddressFamily) -> str:
    """An address of this host that is not loopback, where there is one."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((_ELSEWHERE[family], 9))
        return str(sock.getsockname()[0])
    return _LOOPBACK[family]


class Listeners:
    """Listeners on this host's own addresses: TCP over IPv4 and IPv6, UDP, and an abstract unix socket."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self.question: dict[str, Any] = {}

    def __enter__(self) -> Listeners:
        with contextlib.ExitStack() as stack:
            for key, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
                with contextlib.suppress(OSError):  # a host without IPv6 has nothing to leak to
                    sock = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
                    sock.bind((own_address(family), 0))
                    self.question[key] = list(sock.getsockname()[:2])
                    sock.listen()
            self._answer_datagrams(stack)
            name = f"lab-probe-{uuid.uuid4().hex}"
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            abstract.bind(b"\0" + name.encode())
            abstract.listen()
            self.question["abstract"] = name
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def _answer_datagrams(self, stack: contextlib.ExitStack) -> None:
        sock = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sock.bind((own_address(socket.AF_INET), 0))
        self.question["udp"] = list(sock.getsockname())
        thread = threading.Thread(target=_echo, args=(sock,), daemon=True)
        thread.start()
        # A shutdown wakes the thread; a mere close would leave it blocked.
        stack.callback(thread.join, 5)
        stack.callback(lambda: _wake(sock))


def _echo(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, sender = sock.recvfrom(512)
            if not data:
                return
            sock.sendto(data, sender)


def _wake(sock: socket.socket) -> None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
        waker.sendto(b"", sock.getsockname())


def probe_outside(probe: Path, question: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the probe on the host: the positive control."""
    command = [sys.executable, str(probe), json.dumps(dict(question))]
    done = subprocess.run(command, capture_output=True, check=True, timeout=_HOST_SECONDS)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def host_refusals() -> tuple[str, ...]:
    """Why this host itself may refuse ``CALLS`` to the lab; empty where the positive control has to succeed."""
    wanted = {
        "/proc/sys/user/max_user_namespaces": "0",
        "/proc/sys/kernel/unprivileged_userns_clone": "0",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    }
    found = [f"{path} is {value}" for path, value in wanted.items() if _text(Path(path)).strip() == value]
    if "\nSeccomp:\t2" in _text(Path("/proc/self/status")):
        found.append("the lab itself runs under a system-call filter")
    if not Path("/proc/keys").exists():
        found.append("the kernel has no keyrings")
    return tuple(found)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def probe_spec(
    environment: PreparedEnvironment, home: Path, question: Mapping[str, Any], env: Mapping[str, str]
) -> SandboxSpec:
    """The sandbox in which the probe runs, with every path to try filled in.

    Args:
        environment: A prepared environment.
        home: Host directory shown as the writable home; must belong to ``sandbox_ids``.
        question: What ``Listeners.question`` says, and whatever else the probe understands.
        env: The whole environment of the probe.
    """
    asked = {**question, "write": [*_READ_ONLY, *_WRITABLE]}
    return SandboxSpec(
        environment,
        ("/opt/agent/bin/python3", "-I", PROBE_INSIDE, json.dumps(asked)),
        env=env,
        mounts=(Mount(home, SANDBOX_HOME, writable=True),),
        limits=Limits(wall_seconds=60),
        labels={"purpose": "conformance"},
    )


def probe_inside(backend: Backend, spec: SandboxSpec) -> dict[str, Any]:
    """Runs the probe in a sandbox.

    Raises:
        SandboxError: The sandbox did not run it to an end, or it failed.
    """
    done = backend.run(spec)
    if done.code != 0:
        raise SandboxError(f"the probe failed with {done.code}", stdout=done.stdout, stderr=done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def calls_let_through(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Calls that a report from inside shows as not refused by a filter; empty is the proof.

    An architecture on which the probe knows no numbers leaves calls untried, which is no proof: they are named too.
    """
    calls = report["calls"]
    return tuple(f"{name}: {calls.get(name, 'not tried')}" for name in CALLS if calls.get(name) not in _REFUSALS)


def violations(report: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, ...]:
    """What a report from inside shows that isolation forbids; empty is the proof.

    Args:
        report: The probe's report.
        env: The environment that the sandbox was given.
    """
    uid, gid = sandbox_ids()
    wanted_env = {"HOME": SANDBOX_HOME, **env}
    checks: list[tuple[str, Callable[[], bool]]] = [
        (f"user ids {report['uid']}", lambda: set(report["uid"]) == {uid}),
        (f"group ids {report['gid']}", lambda: set(report["gid"]) == {gid}),
        (f"supplementary groups {report['groups']}", lambda: 0 not in report["groups"]),
        (f"capabilities {report['capabilities']}", lambda: not any(report["capabilities"].values())),
        ("new privileges are possible", lambda: report["no_new_privs"] == 1),
        (f"process id {report['pid']} instead of 1", lambda: report["pid"] == 1),
        (f"foreign processes are visible: {report['processes']}", lambda: len(report["processes"]) == 1),
        (f"host name {report['hostname']}", lambda: report["hostname"] == "lab"),
        (f"network interfaces {report['interfaces']}", lambda: report["interfaces"] == []),
        (f"environment {sorted(report['env'])}", lambda: report["env"] == wanted_env),
    ]
    found = [text for text, holds in checks if not holds()]
    writes = report["writes"]
    found += [f"{path} is writable" for path in _READ_ONLY if writes.get(path) == "ok"]
    found += [f"{path} is not writable: {writes.get(path)}" for path in _WRITABLE if writes.get(path) != "ok"]
    found += [f"the host is reached by {key}" for key in (*CHANNELS, "name") if report.get(key) == "ok"]
    return tuple(found)
