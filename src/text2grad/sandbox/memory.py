"""Division of a program's memory among its processes. Runs inside the sandbox, beside the supervisor.

The kernel limits the address space of a process, but not that of a family of them. So nobody forks without asking
here: the limits of all processes, that of the new one included, never add up to more than the program may have.
"""

from __future__ import annotations

import errno
import resource
import struct
import time
from fcntl import ioctl

from text2grad.sandbox.processes import list_processes, num_files, num_sockets

MAX_OPEN_FILES = 64
MAX_SOCKETS = 16  # over all processes; each can hold 208 KiB

_PER_PROCESS = MAX_OPEN_FILES << 16  # what the pipes of one process can hold; those of the first one are not counted
_MIN_SHARE = 4 << 20  # that a process must be able to grow by, or there is no use in starting it
_PENDING_SECONDS = 0.1
_MAX_ATTEMPTS = 8
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # of `struct seccomp_notif` and `struct seccomp_notif_resp`
_CONTINUE = 1


class Budget:
    """Limits the address space of all processes together to `total` bytes.

    A program that is alone has all of it. Whenever one forks, and when processes have ended, what is free is divided
    into equal shares. Files and pairs of sockets, memory of the kernel, are limited in number.
    """

    def __init__(self, total: int, listener: int, asked_calls: dict[int, str], scratch: str, max_files: int) -> None:
        self.total = total
        self.listener = listener
        self._asked_calls = asked_calls
        self._scratch = scratch
        self._max_files = max_files
        self._num_shares = 1
        # forks that are allowed but not seen yet, by thread: process, processes before, when to forget it
        self._pending: dict[int, tuple[int, set[int], float]] = {}

    def answer(self) -> None:
        """Decide about one system call that waits for it."""
        request = bytearray(80)
        try:
            ioctl(self.listener, _RECEIVE, request)
            identifier, thread, _, number = struct.unpack_from("QIIi", request)
            error = self._decide(self._asked_calls[number], thread)
            ioctl(self.listener, _SEND, struct.pack("QqiI", identifier, 0, -error, 0 if error else _CONTINUE))
        except (FileNotFoundError, ProcessLookupError):
            return  # the thread was killed meanwhile

    def is_kept(self, sizes: dict[int, int]) -> bool:
        """Return whether the address spaces are within the budget; divide it anew if processes have ended."""
        if len(sizes) + len(self._pending) < self._num_shares or self._pending:
            self._divide()
        return sum(sizes.values()) <= self.total

    def _decide(self, asked: str, thread: int) -> int:
        """Return the error that a system call has to fail with, 0 if it may go on."""
        if asked == "socketpair":
            return 0 if num_sockets() < MAX_SOCKETS else errno.EMFILE
        if asked == "file":
            return 0 if num_files(self._scratch) < self._max_files else errno.ENOSPC
        return 0 if self._admit(thread) else errno.EAGAIN

    def _admit(self, thread: int) -> bool:
        """Make room for a copy of the process that `thread` belongs to, if there is enough."""
        self._pending.pop(thread, None)  # it is back, so its last fork is done
        process, before = _process_of(thread), set(list_processes())
        self._pending[thread] = (process, before, float("inf"))
        if self._divide() >= _MIN_SHARE:
            self._pending[thread] = (process, before, time.monotonic() + _PENDING_SECONDS)
            return True
        self._pending.pop(thread, None)
        self._divide()
        return False

    def _divide(self) -> int:
        """Let each process grow by the same share of what is free, which is returned; a fork inherits the limit.

        A process may grow while this reads the sizes, so they are read again when the limits are set. Nothing is free
        if they do not come to rest.
        """
        sizes = self._sizes()
        for _ in range(_MAX_ATTEMPTS):
            self._num_shares = len(sizes) + len(self._pending)
            used = sum(sizes.values()) + sum(sizes.get(process, 0) for process, _, _ in self._pending.values())
            free = self.total - used - (self._num_shares - 1) * _PER_PROCESS
            share = max(0, free) // max(1, self._num_shares)
            for pid, size in sizes.items():
                _limit(pid, size + share)
            later = self._sizes()
            if all(pid in sizes and size <= sizes[pid] + share for pid, size in later.items()):
                return share
            sizes = later
        return 0

    def _sizes(self) -> dict[int, int]:
        """Return the bytes of address space by process; forget the forks whose process is now among them."""
        found = list_processes()
        now = time.monotonic()
        for thread, (parent, before, end) in list(self._pending.items()):
            child = next((pid for pid in found if pid not in before and found[pid][0] == parent), None)
            if child is not None or now > end:
                del self._pending[thread]
            if child is not None:  # it is the child of this fork and of no other
                for _, others, _ in self._pending.values():
                    others.add(child)
        return {pid: size for pid, (_, _, size) in found.items() if size}


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb") as status:
        return next((int(line.split()[1]) for line in status if line.startswith(b"Tgid:")), 0)


def _limit(pid: int, size: int) -> None:
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_AS)[1]
        resource.prlimit(pid, resource.RLIMIT_AS, (min(size, hard), hard))
    except ProcessLookupError:
        return
