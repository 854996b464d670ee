"""The system-call filter, run by an interpreter of its own over calls as the kernel would show them."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from lab.isolation import bwrap
from lab.isolation.seccomp import (
    AF_VSOCK,
    ALLOW,
    DENIED,
    EXAMINED,
    KILL,
    MISSING,
    REFUSE,
    filter_file,
    filter_program,
)

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FOREIGN = {"i386": 0x40000003, "arm": 0x40000028, "riscv64": 0xC00000F3, "big-endian arm64": 0x800000B7, "none": 0}
MACHINES = tuple(AUDIT)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
# read, write, openat, execve, exit_group, mmap, wait4, futex, setresuid, prctl, capset, personality, socketpair
HARMLESS = {
    "x86_64": (0, 1, 257, 59, 231, 9, 61, 202, 117, 157, 126, 135, 53),
    "aarch64": (63, 64, 56, 221, 94, 222, 260, 98, 147, 167, 91, 92, 199),
}
NEW_USER, NEW_NET, NEW_TASKS = 0x10000000, 0x40000000, 0x003D0F00  # the last is what a new thread is made with
SIGCHLD, AF_UNIX, AF_INET = 17, 1, 2


def verdict(program: bytes, audit: int, number: int, *args: int) -> int:
    """Runs a classic BPF program over one ``struct seccomp_data``; understands what the filter uses, no more."""
    whole = [arg & (1 << 64) - 1 for arg in (*args, *[0] * (6 - len(args)))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0x7F0000000000, *whole)
    lines = list(struct.iter_unpack("=HBBI", program))
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, operand = lines[at]
        at += 1
        if operation == 0x20:  # load a word
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x06:  # return
            return operand
        else:
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[operation]
            at += if_true if holds else if_false


def own(machine: str, name: str) -> int:
    return {**DENIED, **EXAMINED}[name][MACHINES.index(machine)]


def judge(machine: str, number: int, *args: int) -> int:
    program = filter_program(machine)
    assert program is not None
    return verdict(program, AUDIT[machine], number, *args)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_the_kernel_demands_of_a_program(machine: str) -> None:
    program = filter_program(machine)
    assert program is not None
    lines = list(struct.iter_unpack("=HBBI", program))
    assert len(program) % 8 == 0
    assert len(lines) < 256, "a jump reaches 255 lines"
    assert lines[-1][0] == 0x06
    for at, (operation, if_true, if_false, operand) in enumerate(lines):
        assert operation in (0x20, 0x06, 0x15, 0x35, 0x45)
        assert operation != 0x20 or (operand % 4 == 0 and operand < 64)
        if operation in (0x15, 0x35, 0x45):
            assert at + 1 + max(if_true, if_false) < len(lines)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", DENIED)
def test_the_list_is_refused_whatever_the_arguments(machine: str, name: str) -> None:
    for args in ((), (1, 2, 3, 4, 5, 6), (-1,) * 6):
        assert judge(machine, own(machine, name), *args) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_all_else_is_allowed(machine: str) -> None:
    named = {own(machine, name) for name in (*DENIED, *EXAMINED)}
    assert not named & set(HARMLESS[machine])
    for number in (*HARMLESS[machine], *(number for number in range(600) if number not in named)):
        assert judge(machine, number, NEW_USER, AF_VSOCK) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["clone", "unshare"])
def test_namespaces_are_refused_and_all_other_uses_allowed(machine: str, name: str) -> None:
    number = own(machine, name)
    for flags in (NEW_USER, NEW_USER | SIGCHLD, NEW_USER | NEW_NET | 0x20000, NEW_NET, NEW_USER | 0xABCD << 32):
        assert judge(machine, number, flags) == REFUSE
    # The upper half is no flag, and other arguments are none either.
    for flags in (0, SIGCHLD, NEW_TASKS, 0x4111, NEW_USER << 32):
        assert judge(machine, number, flags, NEW_USER, NEW_USER) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_clone3_is_missing_so_that_libc_takes_clone(machine: str) -> None:
    assert judge(machine, own(machine, "clone3"), 0x7F0000001000, 88) == MISSING
    assert MISSING & 0xFFFF == errno.ENOSYS
    assert REFUSE & 0xFFFF == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_to_the_hypervisor(machine: str) -> None:
    number = own(machine, "socket")
    assert judge(machine, number, AF_VSOCK, 1) == REFUSE
    for family in (AF_UNIX, AF_INET, 10, 16):
        assert judge(machine, number, family, AF_VSOCK) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_foreign_architectures_are_ended(machine: str) -> None:
    program = filter_program(machine)
    assert program is not None
    others = {**FOREIGN, **{name: audit for name, audit in AUDIT.items() if name != machine}}
    for audit in others.values():
        for number in (0, 1, own(machine, "keyctl"), 0x40000000):
            assert verdict(program, audit, number) == KILL


def test_x32_is_missing_as_in_a_kernel_without_it() -> None:
    for number in (0, 1, *(number for number, _ in DENIED.values()), 512, 547):
        assert judge("x86_64", 0x40000000 | number) == MISSING
    assert judge("x86_64", -1) == MISSING


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernel_headers(machine: str) -> None:
    if not HEADERS[machine].is_file():
        pytest.skip("no kernel headers on this machine")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", HEADERS[machine].read_text(), re.MULTILINE)
    numbers = {name: int(number) for name, number in found}
    assert len(numbers) > 250
    known = [name for name in (*DENIED, *EXAMINED) if name in numbers]  # old headers lack the newest calls
    assert len(known) > 40
    assert {name: own(machine, name) for name in known} == {name: numbers[name] for name in known}


def test_an_architecture_without_table_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert filter_program("riscv64") is None
    assert filter_program("i686") is None
    monkeypatch.setattr(bwrap, "filter_program", lambda: None)
    assert any("no system-call filter" in line for line in bwrap._weaknesses(as_root=True))
    monkeypatch.setattr(bwrap, "filter_program", lambda: b"12345678")
    lines = bwrap._weaknesses(as_root=True)
    assert any("deny list" in line for line in lines)
    assert not any("no system-call filter" in line for line in lines)


def test_the_file_is_read_from_its_beginning() -> None:
    descriptor = filter_file(b"12345678")
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        assert file.read() == b"12345678"
