"""Filters of system calls (seccomp), as programs of the kernel's packet filter.

The denying filter refuses what would leave the sandbox, and memory that no other limit counts. The asking filter stops
the calls that start a process, create a file or open a pair of sockets until the supervisor has decided about them.
"""

from __future__ import annotations

import errno
import os
import struct
from functools import cache

from text2grad.errors import UserError
from text2grad.sandbox import syscalls
from text2grad.sandbox.syscalls import Numbers

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in `struct seccomp_data`
_KILL, _ASK, _ALLOW = 0x80000000, 0x7FC00000, 0x7FFF0000
_CLONE_THREAD, _CLONE_PARENT, _CLONE_NAMESPACES = 0x10000, 0x8000, 0x7E020000
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_RLIMIT_AS = 9
_F_SETPIPE_SZ, _F_NOTIFY = 1031, 1026
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

Instruction = tuple[int, int, int, int]  # operation, jump if true, jump if false, operand


@cache
def denying_filter() -> bytes:
    """Return the filter that refuses calls without asking."""
    denied = _refuse(errno.EPERM)
    program = [*_check_architecture(), (_AT_LEAST, 0, 1, syscalls.FIRST_UNKNOWN), *_refuse(errno.ENOSYS)]
    for numbers in syscalls.ABSENT.values():
        program += _on_call(numbers, _refuse(errno.ENOSYS))
    for numbers in syscalls.DENIED.values():
        program += _on_call(numbers, denied)
    program += _on_call(
        syscalls.CLONE, [_argument(0), (_ANY_BIT, 0, 1, _CLONE_NAMESPACES | _CLONE_PARENT), *denied, _allow()]
    )
    program += _on_call(syscalls.SETRLIMIT, _if_argument(0, [_RLIMIT_AS]))
    # limits can be read, which is to pass no new one, and a process can set its own, but not that of its memory
    can_set = [_argument(0), (_EQUAL, 0, 2, 0), _argument(1), (_EQUAL, 0, 1, _RLIMIT_AS), *denied, _allow()]
    is_set = [_argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0), _allow()]
    program += _on_call(syscalls.PRLIMIT, [*is_set, *can_set])
    program += _on_call(syscalls.FCNTL, _if_argument(1, [_F_SETPIPE_SZ, _F_NOTIFY]))
    program += _on_call(syscalls.IOCTL, _if_argument(1, [_TIOCSTI, _TIOCLINUX]))
    return _assemble([*program, _allow()])


@cache
def asking_filter() -> bytes:
    """Return the filter that asks the supervisor about new processes, not threads, new files and pairs of sockets."""
    ask = [(_RETURN, 0, 0, _ASK)]
    program = list(_check_architecture())
    for numbers in (*syscalls.FORKS.values(), *syscalls.NEW_FILES.values(), syscalls.SOCKETPAIR):
        program += _on_call(numbers, ask)
    program += _on_call(syscalls.CLONE, [_argument(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), *ask, _allow()])
    for numbers, flags in ((syscalls.OPEN, 1), (syscalls.OPENAT, 2)):
        program += _on_call(numbers, [_argument(flags), (_ANY_BIT, 0, 1, _O_CREAT | _O_TMPFILE), *ask, _allow()])
    return _assemble([*program, _allow()])


@cache
def asked_calls() -> dict[int, str]:
    """Return what the asking filter asks for by the number of the system call: "fork", "file" or "socketpair"."""
    files = (*syscalls.NEW_FILES.values(), syscalls.OPEN, syscalls.OPENAT)
    asked = {"fork": (*syscalls.FORKS.values(), syscalls.CLONE), "file": files, "socketpair": (syscalls.SOCKETPAIR,)}
    found = {number_of(numbers): kind for kind, calls in asked.items() for numbers in calls}
    return {number: kind for number, kind in found.items() if number is not None}


def number_of(numbers: Numbers) -> int | None:
    """Return the number of a call on this machine, or None if it has no such call."""
    return numbers[_architecture()[0]]


def _architecture() -> tuple[int, int]:
    machine = os.uname().machine
    if machine not in syscalls.ARCHITECTURES:
        known = " and ".join(syscalls.ARCHITECTURES)
        raise UserError(f"the sandbox can filter the system calls of {known}, but not of {machine}")
    return syscalls.ARCHITECTURES[machine]


def _check_architecture() -> list[Instruction]:
    """Kill a process that uses the calls of another architecture, as 32-bit code does; load the call's number."""
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _architecture()[1]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]


def _on_call(numbers: Numbers, body: list[Instruction]) -> list[Instruction]:
    """Run `body`, which must return, if the loaded number is that of the call."""
    number = number_of(numbers)
    return [] if number is None else [(_EQUAL, 0, len(body), number), *body]


def _if_argument(index: int, values: list[int]) -> list[Instruction]:
    """Refuse the call if the lower half of an argument is one of `values`, and allow it otherwise."""
    tests = [(_EQUAL, len(values) - position, 0, value) for position, value in enumerate(values)]
    return [_argument(index), *tests, _allow(), *_refuse(errno.EPERM)]


def _argument(index: int, *, high: bool = False) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * index + 4 * high)


def _refuse(number: int) -> list[Instruction]:
    return [(_RETURN, 0, 0, 0x50000 | number)]


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)


def _assemble(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
