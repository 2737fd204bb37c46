"""A sandbox for untrusted Python programs: no network, no files but a scratch folder, limits on all resources.

A program sees the interpreter, its standard library, the installed packages and the system's libraries, all read-only,
and an empty scratch folder that is deleted when it ends. It has no capabilities, cannot start programs of the system,
and its system calls are filtered. The sandbox uses bubblewrap where that is installed and works, otherwise plain
namespaces, and refuses to run where neither works. Not limited: the CPU load until the time limit.

Memory is limited without control groups, and in the same way everywhere: the address spaces of all processes and the
scratch folder together never exceed `max_memory`, because forks ask the supervisor first, and calls that give memory
outside of an address space are refused. Buffers of pipes and sockets, files and file locks are limited in number, page
tables to a sixteenth of the memory.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from text2grad.sandbox import probe
from text2grad.sandbox.backends import Backend
from text2grad.sandbox.execution import SandboxError, execute
from text2grad.sandbox.result import MEBIBYTE, ExecutionResult, ResourceLimits, Script

__all__ = [
    "MEBIBYTE",
    "READ_AHEAD",
    "Backend",
    "ExecutionResult",
    "ResourceLimits",
    "Sandbox",
    "SandboxError",
    "Script",
]


READ_AHEAD = 32  # programs per worker, whose outputs may all wait: an endless one takes as long as some twenty others


class Sandbox:
    """Runs programs. Raises UserError where it cannot protect the machine, unless `unsafe`."""

    def __init__(
        self, limits: ResourceLimits | None = None, *, num_workers: int | None = None, unsafe: bool = False
    ) -> None:
        self.limits = limits or ResourceLimits()
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.backend: Backend = "unsafe" if unsafe else probe.select_backend()

    def run(self, program: Script, limits: ResourceLimits | None = None) -> ExecutionResult:
        """Run one program and kill every process that it leaves behind."""
        return execute(program, limits or self.limits, self.backend)

    def run_all(
        self, programs: Iterable[Script], limits: ResourceLimits | None = None
    ) -> Iterator[ExecutionResult | SandboxError]:
        """Yield the results in order; `num_workers` programs run in parallel.

        So many are read ahead that one that runs into its time limit does not hold up those behind it. A program for
        which the sandbox itself failed yields the error; the others are not affected.
        """
        with ThreadPoolExecutor(self.num_workers) as pool:
            pending: deque[Future[ExecutionResult | SandboxError]] = deque()
            try:
                for program in programs:
                    pending.append(pool.submit(self._run_or_error, program, limits))
                    if len(pending) > READ_AHEAD * self.num_workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _run_or_error(self, program: Script, limits: ResourceLimits | None) -> ExecutionResult | SandboxError:
        try:
            return self.run(program, limits)
        except SandboxError as error:
            return error
