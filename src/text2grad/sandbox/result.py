"""A program for the sandbox, the resources that it may use, and the result of its execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MEBIBYTE = 1 << 20

Termination = Literal["exit", "signal", "time", "cpu", "memory", "output"]


@dataclass(frozen=True)
class ResourceLimits:
    """Limits on one program together with all the processes that it starts, unless noted otherwise. Sizes in bytes."""

    wall_seconds: float = 10.0
    cpu_seconds: float = 10.0
    max_memory: int = 512 * MEBIBYTE  # address space of each process, and resident memory of all of them
    max_processes: int = 32  # threads count as processes
    max_file_size: int = 16 * MEBIBYTE
    max_disk: int = 64 * MEBIBYTE  # of the scratch folder
    max_output: int = MEBIBYTE  # of standard output and of standard error, each


@dataclass(frozen=True)
class Script:
    """A Python program. Its working folder is the scratch folder, with `files` and its own `main.py`."""

    source: str
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExecutionResult:
    """How a program terminated, what it printed and what it used.

    `termination` is "exit" with the exit code, "signal" with the signal's number, or the limit that it exceeded
    ("time", "cpu", "memory", "output") with `code` None. A process that allocates more than `max_memory` gets a
    MemoryError and may exit by itself; one that may not fork or write gets an OSError. `peak_memory` is resident
    memory in bytes, 0 for a program that ended before the first measurement.
    """

    termination: Termination
    code: int | None
    stdout: str
    stderr: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory: int

    @property
    def ok(self) -> bool:
        """Whether the program exited by itself with code 0."""
        return self.termination == "exit" and self.code == 0
