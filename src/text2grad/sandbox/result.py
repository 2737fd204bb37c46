"""A program for the sandbox, the resources that it may use, and the result of its execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from text2grad.errors import UserError

MEBIBYTE = 1 << 20

Termination = Literal["exit", "signal", "time", "cpu", "memory", "output"]


@dataclass(frozen=True)
class ResourceLimits:
    """Limits on one program together with all the processes that it starts, unless noted otherwise. Sizes in bytes.

    Of `max_memory`, the scratch folder has `max_disk`; the processes share the rest, and a fork that would leave too
    little for one of them fails.
    """

    wall_seconds: float = 10.0
    cpu_seconds: float = 10.0
    max_memory: int = 512 * MEBIBYTE
    max_processes: int = 32  # threads count as processes
    max_file_size: int = 16 * MEBIBYTE
    max_disk: int = 32 * MEBIBYTE  # of the scratch folder, which is in memory
    max_files: int = 1_000  # files and folders in the scratch folder
    max_output: int = MEBIBYTE  # of standard output and of standard error, each

    def __post_init__(self) -> None:
        if self.max_disk > self.max_memory // 2:
            raise UserError(
                f"max_disk is {self.max_disk} but max_memory is {self.max_memory}: the scratch folder is in memory "
                "and may have at most half of it"
            )


@dataclass(frozen=True)
class Script:
    """A Python program. Its working folder is the scratch folder, which has only its own `main.py`."""

    source: str
    stdin: str = ""


@dataclass(frozen=True)
class ExecutionResult:
    """How a program terminated, what it printed and what it used.

    `termination` is "exit" with the exit code, "signal" with the signal's number, or the limit that it exceeded
    ("time", "cpu", "memory", "output") with `code` None. A process that allocates more than it may gets a MemoryError
    and may exit by itself; one that may not fork or write gets an OSError. "memory" is memory that only shows
    afterwards: file locks or page tables. `peak_memory` is resident memory and the scratch folder in bytes, 0 for a
    program that ended before the first measurement.
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
