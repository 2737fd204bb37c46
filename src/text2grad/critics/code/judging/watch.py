"""Waiting for the answer's process within its time limits."""

from __future__ import annotations

import select
import time

_TICK = 0.02  # seconds between two looks at the answer's process


class Watch:
    """Waits for the answer's process, for as long as it may run.

    Its processor time counts, and the time for which it is blocked; not the time for which it waits for a processor,
    so that the outcome does not depend on what else the machine is doing.
    """

    def __init__(self, pid: int, fd: int) -> None:
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(fd, select.POLLIN)
        self._writable.register(fd, select.POLLOUT)
        self._clock = (~pid << 3) | 2  # the kernel's number of that process's CPU clock
        self._status = f"/proc/{pid}/stat"
        self._blocked = 0.0
        self._last = time.monotonic()

    def wait(self, seconds: float, writing: bool = False) -> str | None:
        """Return None once there is something to read, or room to write; "timeout" or "idle" at a limit, or "died"."""
        poll = self._writable if writing else self._readable
        while not poll.poll(int(1000 * _TICK)):
            limit = self._look(seconds)
            if limit == "died" and poll.poll(0):
                break
            if limit is not None:
                return limit
        self._last = time.monotonic()
        return None

    def _look(self, seconds: float) -> str | None:
        now = time.monotonic()
        try:
            cpu = time.clock_gettime(self._clock)
            with open(self._status, "rb") as status:
                state = status.read().rpartition(b")")[2].split()[0]
        except OSError:
            state = b"Z"
        if state in (b"Z", b"X"):
            return "died"
        if state in (b"S", b"T", b"t"):
            self._blocked += min(now - self._last, 2 * _TICK)
        self._last = now
        if cpu > seconds:
            return "timeout"
        return "idle" if self._blocked > seconds else None
