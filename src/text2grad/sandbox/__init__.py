"""Runs untrusted Python programs: no network, no files but a scratch folder, limits on all that they use.

The program sees the interpreter, its installed packages and the system's libraries, all read-only, and an empty scratch
folder that is gone when it ends. Bubblewrap shuts it in where that is installed and works, otherwise namespaces do;
where neither works, it is refused. What is not limited: the load that a program puts on the machine's cores until its
time is up. Memory is looked at 25 times a second, so many processes that all grow at once may overshoot for that long.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from text2grad.sandbox import probe
from text2grad.sandbox.backends import Backend
from text2grad.sandbox.execution import SandboxError, execute
from text2grad.sandbox.outcome import MEBIBYTE, Limits, Outcome, Program

__all__ = ["MEBIBYTE", "Backend", "Limits", "Outcome", "Program", "Sandbox", "SandboxError"]


class Sandbox:
    """A place to run programs. Raises UserError where it cannot protect the machine, unless `unsafe`."""

    def __init__(self, limits: Limits | None = None, *, workers: int | None = None, unsafe: bool = False) -> None:
        self.limits = limits or Limits()
        self.workers = workers or len(os.sched_getaffinity(0))
        self.backend: Backend = "unsafe" if unsafe else probe.backend()

    def run(self, program: Program, limits: Limits | None = None) -> Outcome:
        """Run one program; whatever it started is gone afterwards."""
        return execute(program, limits or self.limits, self.backend)

    def run_all(self, programs: Iterable[Program], limits: Limits | None = None) -> Iterator[Outcome | SandboxError]:
        """The outcomes in order, `workers` programs side by side; reads ahead no further than that.

        Where the sandbox broke under one program, its error stands in its place and the others are unharmed.
        """
        with ThreadPoolExecutor(self.workers) as pool:
            waiting: deque[Future[Outcome | SandboxError]] = deque()
            try:
                for program in programs:
                    waiting.append(pool.submit(self._attempt, program, limits))
                    if len(waiting) > self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _attempt(self, program: Program, limits: Limits | None) -> Outcome | SandboxError:
        try:
            return self.run(program, limits)
        except SandboxError as error:
            return error
