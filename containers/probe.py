"""Tells what a program may do where this one runs: one JSON object on standard output.

Standard library only. The same file runs inside a sandbox and, as the positive control of every refusal that it
reports, outside.

Usage: probe.py QUESTION, one JSON object of which every key is optional; what is not asked for is not tried::

    {"tcp": ["192.0.2.1", 80], "tcp6": [...], "udp": [...], "abstract": "name", "name": "host",
     "write": ["/", ...], "calls": true}
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

TIMEOUT_SECONDS = 2.0
CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")

CLONE_NEWUSER = 0x10000000
USER_KEYRING = -4  # KEY_SPEC_USER_KEYRING, shared by all processes of a user id
KEYCTL_GET_KEYRING_ID, KEYCTL_UNLINK = 0, 9
CLONE3 = 435  # on every architecture
CALL_NUMBERS = {
    "x86_64": {"clone": 56, "add_key": 248, "keyctl": 250},
    "aarch64": {"clone": 220, "add_key": 217, "keyctl": 219},
}


def status_fields() -> dict[str, str]:
    """What the kernel says of this process."""
    pairs = (line.partition(":") for line in Path("/proc/self/status").read_text().splitlines())
    return {name: value.strip() for name, _, value in pairs}


def outcome(error: OSError | None) -> str:
    """``ok``, or the name of the error."""
    if error is None:
        return "ok"
    if isinstance(error, TimeoutError):
        return "ETIMEDOUT"
    if isinstance(error, socket.gaierror):
        return f"gai:{error.errno}"
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def try_write(directory: str) -> str:
    """Makes and removes a file in ``directory``."""
    path = Path(directory) / f".probe-{os.getpid()}"
    try:
        path.write_bytes(b"probe")
        path.unlink()
    except OSError as error:
        return outcome(error)
    return "ok"


def try_connect(family: int, address: object) -> str:
    """Connects a stream socket and closes it."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(TIMEOUT_SECONDS)
            sock.connect(address)  # type: ignore[arg-type]
    except OSError as error:
        return outcome(error)
    return "ok"


def try_dns(host: str, port: int) -> str:
    """Sends one query for an A record by UDP to a raw address and waits for any answer."""
    question = b"".join(bytes([len(part)]) + part for part in (b"probe", b"example", b"test")) + b"\0"
    query = struct.pack(">6H", 0x1AB0, 0x0100, 1, 0, 0, 0) + question + struct.pack(">2H", 1, 1)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(TIMEOUT_SECONDS)
            sock.sendto(query, (host, port))
            sock.recv(512)
    except OSError as error:
        return outcome(error)
    return "ok"


def try_resolve(name: str) -> str:
    """Asks the system's resolver, whatever it is."""
    try:
        socket.getaddrinfo(name, 80)
    except OSError as error:
        return outcome(error)
    return "ok"


def try_calls() -> dict[str, str]:
    """Tries, each in a child of its own, to make a user namespace in three ways and to use the user's keyring."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = CALL_NUMBERS.get(os.uname().machine)
    found = {"unshare": in_child(lambda: libc.unshare(CLONE_NEWUSER))}
    if numbers is None:
        return found

    def call(number: int, *arguments: object) -> int:
        # Every argument takes a whole register: as plain int, ctypes would leave its upper half undefined.
        return int(libc.syscall(ctypes.c_long(number), *(whole(value) for value in arguments)))

    def clone() -> int:
        return end_second(call(numbers["clone"], CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0))

    def clone3() -> int:
        # struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
        arguments = struct.pack("=8Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
        return end_second(call(CLONE3, arguments, len(arguments)))

    def add_key() -> int:
        key = call(numbers["add_key"], b"user", b"lab-probe", b"probe", 5, USER_KEYRING)
        if key >= 0:
            call(numbers["keyctl"], KEYCTL_UNLINK, key, USER_KEYRING)
        return key

    found["clone"] = in_child(clone)
    found["clone3"] = in_child(clone3)
    found["add_key"] = in_child(add_key)
    found["keyctl"] = in_child(lambda: call(numbers["keyctl"], KEYCTL_GET_KEYRING_ID, USER_KEYRING, 1))
    return found


def whole(value: object) -> object:
    """An argument of a raw system call."""
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value)  # type: ignore[arg-type]


def end_second(pid: int) -> int:
    """After a fork by raw system call: ends the child at once and reaps it."""
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return pid


def in_child(attempt: Callable[[], int]) -> str:
    """Outcome of a call by ctypes, made where it changes nothing for this process."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            ctypes.set_errno(0)
            code = 0 if attempt() >= 0 else ctypes.get_errno()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "ok" if status == 0 else errno.errorcode.get(status, f"exit {status}")


def processes() -> list[str]:
    """Command lines of all processes that can be seen."""
    found = []
    for entry in sorted(Path("/proc").iterdir(), key=lambda path: path.name):
        if entry.name.isdigit():
            try:
                text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            found.append(f"{entry.name} {text[:120]}")
    return found


def interfaces() -> list[str]:
    """Network interfaces other than loopback."""
    return sorted(name for _, name in socket.if_nameindex() if name != "lo")


def probe(asked: dict[str, object]) -> dict[str, object]:
    """Tries everything that is asked for."""
    fields = status_fields()
    found: dict[str, object] = {
        "uid": [int(value) for value in fields["Uid"].split()],
        "gid": [int(value) for value in fields["Gid"].split()],
        "groups": [int(value) for value in fields["Groups"].split()],
        "capabilities": {name: int(fields[name], 16) for name in CAPABILITY_SETS},
        "no_new_privs": int(fields["NoNewPrivs"]),
        "seccomp": int(fields.get("Seccomp", "0")),
        "pid": os.getpid(),
        "hostname": socket.gethostname(),
        # Python coerces LC_CTYPE by itself in a C locale; the start environment is what the kernel was given.
        "env": start_environment(),
        "processes": processes(),
        "interfaces": interfaces(),
        "writes": {path: try_write(path) for path in asked.get("write", ())},  # type: ignore[attr-defined]
    }
    if "tcp" in asked:
        found["tcp"] = try_connect(socket.AF_INET, tuple(asked["tcp"]))  # type: ignore[arg-type]
    if "tcp6" in asked:
        found["tcp6"] = try_connect(socket.AF_INET6, tuple(asked["tcp6"]))  # type: ignore[arg-type]
    if "udp" in asked:
        found["udp"] = try_dns(*asked["udp"])  # type: ignore[misc]
    if "abstract" in asked:
        found["abstract"] = try_connect(socket.AF_UNIX, b"\0" + str(asked["abstract"]).encode())
    if "name" in asked:
        found["name"] = try_resolve(str(asked["name"]))
    if asked.get("calls"):
        found["calls"] = try_calls()
    return found


def start_environment() -> dict[str, str]:
    """The environment as the kernel handed it over."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


if __name__ == "__main__":
    print(json.dumps(probe(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})))
