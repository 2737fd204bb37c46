"""The filters, run by an interpreter of their few instructions, for both architectures."""

from __future__ import annotations

import errno
import os
import re
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from text2grad.sandbox import seccomp, syscalls
from text2grad.sandbox.syscalls import Numbers

ALLOW, ASK, KILL = 0x7FFF0000, 0x7FC00000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SIGCHLD, CLONE_VM, CLONE_THREAD, CLONE_NEWUSER, CLONE_NEWCGROUP = 17, 0x100, 0x10000, 0x10000000, 0x02000000
POINTERS = (0x7F00_1234_5678, 0x1_0000_0000)


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=name))
    return name


def run(program: bytes, number: int | None, *arguments: int, audit: int) -> int:
    """What the kernel would decide about a call."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("iIQ6Q", number, audit, 0, *padded)
    value = position = 0
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("HBBI", program, 8 * position)
        position += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            (value,) = struct.unpack_from("I", data, operand)
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            position += if_true if holds else if_false


def denies(machine: str, numbers: Numbers, *arguments: int) -> int:
    number = seccomp.number_of(numbers)
    return run(seccomp.denying_filter.__wrapped__(), number, *arguments, audit=AUDIT[machine])


def asks(machine: str, numbers: Numbers, *arguments: int) -> int:
    number = seccomp.number_of(numbers)
    return run(seccomp.asking_filter.__wrapped__(), number, *arguments, audit=AUDIT[machine])


def test_listed_calls_are_refused_and_others_allowed(machine: str) -> None:
    for listed, decision in ((syscalls.DENIED, EPERM), (syscalls.ABSENT, ENOSYS)):
        present = [numbers for numbers in listed.values() if seccomp.number_of(numbers) is not None]
        assert {denies(machine, numbers) for numbers in present} == {decision}
    read, exit_group = (0, 63), (231, 94)
    assert denies(machine, read) == denies(machine, exit_group) == ALLOW
    assert asks(machine, read) == asks(machine, exit_group) == ALLOW


def test_unknown_calls_and_those_of_other_architectures(machine: str) -> None:
    assert denies(machine, (452, 452)) == denies(machine, (0x40000000, 0x40000000)) == ENOSYS
    for program in (seccomp.denying_filter.__wrapped__(), seccomp.asking_filter.__wrapped__()):
        assert run(program, 0, audit=0x40000003) == KILL


def test_processes_are_asked_about_and_threads_are_not(machine: str) -> None:
    assert asks(machine, syscalls.CLONE, SIGCHLD) == asks(machine, syscalls.CLONE, CLONE_VM | SIGCHLD) == ASK
    assert asks(machine, syscalls.CLONE, CLONE_THREAD | CLONE_VM) == ALLOW
    assert denies(machine, syscalls.CLONE, SIGCHLD) == denies(machine, syscalls.CLONE, CLONE_THREAD) == ALLOW
    assert denies(machine, syscalls.CLONE, CLONE_NEWUSER) == denies(machine, syscalls.CLONE, CLONE_NEWCGROUP) == EPERM


def test_new_files_are_asked_about(machine: str) -> None:
    assert asks(machine, syscalls.OPENAT, 0, 0, os.O_RDWR) == ALLOW
    assert asks(machine, syscalls.OPENAT, 0, 0, os.O_WRONLY | os.O_CREAT) == ASK
    assert asks(machine, syscalls.OPENAT, 0, 0, 0o20000000 | os.O_RDWR) == ASK
    assert asks(machine, syscalls.NEW_FILES["mkdirat"]) == asks(machine, syscalls.SOCKETPAIR) == ASK


@pytest.mark.parametrize("pointer", POINTERS)
def test_limits_of_memory_and_of_others_cannot_be_set(machine: str, pointer: int) -> None:
    limit_memory, limit_cpu, own, other = 9, 0, 0, 1
    assert denies(machine, syscalls.PRLIMIT, own, limit_cpu, pointer) == ALLOW
    assert denies(machine, syscalls.PRLIMIT, own, limit_memory, pointer) == EPERM
    assert denies(machine, syscalls.PRLIMIT, other, limit_cpu, pointer) == EPERM
    assert denies(machine, syscalls.PRLIMIT, other, limit_memory, 0, pointer) == ALLOW  # reads it
    assert denies(machine, syscalls.SETRLIMIT, limit_memory, pointer) == EPERM
    assert denies(machine, syscalls.SETRLIMIT, limit_cpu, pointer) == ALLOW


def test_arguments_of_other_calls(machine: str) -> None:
    set_pipe_size, get_flags, push_character, window_size = 1031, 3, 0x5412, 0x5413
    assert denies(machine, syscalls.FCNTL, 1, set_pipe_size) == denies(machine, syscalls.FCNTL, 1, 1026) == EPERM
    assert denies(machine, syscalls.FCNTL, 1, get_flags) == ALLOW
    assert denies(machine, syscalls.IOCTL, 0, push_character) == EPERM
    assert denies(machine, syscalls.IOCTL, 0, window_size) == ALLOW


HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")


@pytest.mark.skipif(not all(map(os.path.exists, HEADERS)), reason="the kernel's headers are not installed")
def test_numbers_are_those_of_the_kernel() -> None:
    tables = syscalls.DENIED | syscalls.ABSENT | syscalls.FORKS | syscalls.NEW_FILES
    single = ("CLONE", "OPEN", "OPENAT", "SETRLIMIT", "PRLIMIT", "FCNTL", "IOCTL", "SECCOMP", "SOCKETPAIR")
    tables |= {name.lower().replace("prlimit", "prlimit64"): getattr(syscalls, name) for name in single}
    for column, header in enumerate(HEADERS):
        pattern = re.compile(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", re.MULTILINE)
        known = {name: int(number) for name, number in pattern.findall(Path(header).read_text(encoding="ascii"))}
        ours = {name: numbers[column] for name, numbers in tables.items() if name in known or numbers[column]}
        # renamed in the kernel's generic table, or newer than the installed headers
        assert {name: number for name, number in ours.items() if known.get(name, number) != number} == {}
        assert len(set(ours) & set(known)) > 80
