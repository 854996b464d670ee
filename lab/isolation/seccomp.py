"""The system-call filter of the bubblewrap backend: a classic BPF program that refuses a list of calls.

It is a deny list. What it names is refused, every other call of the own architecture goes through, so it takes away
the parts of the kernel interface that no agent needs and that reach beyond its sandbox: namespaces (a user namespace
of one's own gives all capabilities in it), the keyrings of a user id that all sandboxes share, mounts, other
processes, the clock, modules and the like. Docker's default profile, an allow list, was the guide.

Layout and constants: seccomp(2), ``linux/seccomp.h``, ``linux/filter.h``, ``linux/bpf_common.h``, ``linux/audit.h``.
Numbers: ``asm/unistd_64.h`` for x86-64, ``asm-generic/unistd.h`` for arm64.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from dataclasses import dataclass
from typing import Final

NAMESPACE_FLAGS: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET, first argument of clone(2) and unshare(2)."""

AF_VSOCK: Final = 40
"""The one socket family that no network namespace confines: it leads to the hypervisor and its other guests."""

# x86-64, arm64
DENIED: Final = {
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "fanotify_init": (300, 262),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
}
"""Calls refused with EPERM whatever their arguments, and their numbers."""

EXAMINED: Final = {"clone": (56, 220), "unshare": (272, 97), "clone3": (435, 435), "socket": (41, 198)}
"""Calls that the filter treats by argument, or, as it cannot see clone3's, as missing, so that libc takes clone."""

_X32_BIT = 0x40000000  # __X32_SYSCALL_BIT: the same architecture word with other numbers

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # in struct seccomp_data; low half of the argument, little-endian

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
"""SECCOMP_RET_KILL_PROCESS: the process ends with SIGSYS."""

REFUSE: Final = 0x00050000 | errno.EPERM
MISSING: Final = 0x00050000 | errno.ENOSYS


@dataclass(frozen=True)
class _Architecture:
    column: int
    audit: int
    x32: bool = False


_ARCHITECTURES = {
    "x86_64": _Architecture(0, 0xC000003E, x32=True),
    "aarch64": _Architecture(1, 0xC00000B7),
}


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter as an array of ``struct sock_filter``, as bubblewrap's ``--seccomp`` wants it.

    Args:
        machine: Architecture as uname(2) names it; that of the running process where not given.

    Returns:
        None for an architecture without a table.
    """
    architecture = _ARCHITECTURES.get(_own_machine() if machine is None else machine)
    if architecture is None:
        return None
    column = architecture.column
    clone, unshare, clone3, socket = (EXAMINED[name][column] for name in ("clone", "unshare", "clone3", "socket"))
    lines = [_line(_LOAD, _ARCHITECTURE), _line(_EQUAL, architecture.audit, 1, 0), _line(_RETURN, KILL)]
    lines += [_line(_LOAD, _NUMBER)]
    if architecture.x32:
        lines += _verdict(_AT_LEAST, _X32_BIT, MISSING)
    lines += _verdict(_EQUAL, clone3, MISSING)
    lines += [_line(_EQUAL, clone, 1, 0), _line(_EQUAL, unshare, 0, 4)]
    lines += [_line(_LOAD, _FIRST_ARGUMENT), *_verdict(_ANY_BIT, NAMESPACE_FLAGS, REFUSE), _line(_RETURN, ALLOW)]
    lines += [_line(_EQUAL, socket, 0, 4)]
    lines += [_line(_LOAD, _FIRST_ARGUMENT), *_verdict(_EQUAL, AF_VSOCK, REFUSE), _line(_RETURN, ALLOW)]
    numbers = sorted(row[column] for row in DENIED.values())
    # All lead to the last line; the one before it is where those go that match none.
    lines += [_line(_EQUAL, number, len(numbers) - at, 0) for at, number in enumerate(numbers)]
    return b"".join([*lines, _line(_RETURN, ALLOW), _line(_RETURN, REFUSE)])


def filter_file(program: bytes) -> int:
    """An open descriptor from which ``program`` can be read once; the caller closes it."""
    descriptor = os.memfd_create("lab-seccomp")
    try:
        os.write(descriptor, program)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _own_machine() -> str:
    """Nothing is known of a 32-bit lab on a 64-bit kernel: the programs inside would be foreign to the table."""
    return os.uname().machine if sys.maxsize > 1 << 32 else ""


def _verdict(operation: int, operand: int, verdict: int) -> list[bytes]:
    return [_line(operation, operand, 0, 1), _line(_RETURN, verdict)]


def _line(operation: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One ``struct sock_filter``: jumps count from the next line."""
    return struct.pack("=HBBI", operation, if_true, if_false, operand)
