"""The catalogue of attacks on the sandbox, and what all of these programs begin with."""

from __future__ import annotations

from dataclasses import dataclass

from attack_limits import AMOUNT, MEMORY, TIME
from attack_protection import ESCAPE, KERNEL, NETWORK, READ, WRITE

PRELUDE = r"""
import contextlib, ctypes, mmap, os, signal, socket, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20


def through(what):
    os.write(1, f"THROUGH {what}\n".encode())


def held():
    os.write(1, b"m")


def call(name, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    libc.syscall.restype = ctypes.c_long
    return libc.syscall(ctypes.c_long(NUMBER[name]), *values)


def attempt(action, *arguments):
    with contextlib.suppress(Exception):
        return action(*arguments)


def read(path, size=1 << 16):
    with open(path, "rb") as file:
        return file.read(size)


def reads(path):
    data = attempt(read, path)
    if data:
        through(f"read {path}")
    return data or b""


def grow(seconds=9, dirty=True):
    kept, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            kept.append(mmap.mmap(-1, MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            kept[-1].write(bytes([len(kept) % 255 + 1]) * MIB)
            held()
        except (OSError, MemoryError, ValueError):
            time.sleep(0.05)


def fork_until(most):
    for _ in range(most):
        if attempt(os.fork) is None:
            return
"""

_KINDS = {
    "read": READ,
    "write": WRITE,
    "escape": ESCAPE,
    "network": NETWORK,
    "kernel": KERNEL,
    "time": TIME,
    "amount": AMOUNT,
    "memory": MEMORY,
}
_FIRST = {"what the last program left": "open('left', 'w').write('x'); open('/tmp/left', 'w').write('x')"}


@dataclass(frozen=True)
class Attack:
    """A program, what it goes for, and the name it has in the table; `first` runs before it in a sandbox of its own."""

    kind: str
    name: str
    source: str
    first: str = ""


ATTACKS = [
    Attack(kind, name, source, _FIRST.get(name, ""))
    for kind, scripts in _KINDS.items()
    for name, source in scripts.items()
]
