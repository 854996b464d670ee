"""Tells what a program may do where this one runs: one JSON object on standard output.

Standard library only. The same file runs inside a sandbox and, as the positive control of every refusal that it
reports, outside.

Usage: probe.py '{"tcp": ["192.0.2.1", 80], "udp": [...], "tcp6": [...], "abstract": "name", "name": "host", "write":
["/", ...]}' Every key is optional; what is not asked for is not tried.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import sys
from pathlib import Path

TIMEOUT_SECONDS = 2.0
CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


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
    return found


def start_environment() -> dict[str, str]:
    """The environment as the kernel handed it over."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


if __name__ == "__main__":
    print(json.dumps(probe(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})))
