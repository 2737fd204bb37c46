"""What a program may use, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MEBIBYTE = 1 << 20

Ending = Literal["exit", "signal", "time", "cpu", "memory", "output"]


@dataclass(frozen=True)
class Limits:
    """Bounds on one program with all the processes that it starts, unless said otherwise."""

    wall: float = 10.0  # seconds
    cpu: float = 10.0  # seconds
    memory: int = 512 * MEBIBYTE  # bytes; each process's address space, and the resident memory of all of them
    processes: int = 32  # threads count as processes
    file_size: int = 16 * MEBIBYTE  # bytes of one file
    disk: int = 64 * MEBIBYTE  # bytes of the scratch folder
    output: int = MEBIBYTE  # bytes of standard output, and as many of standard error


@dataclass(frozen=True)
class Program:
    """A Python program. It finds `files` in its working folder, the scratch folder, beside its own `main.py`."""

    source: str
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a program ended.

    `ending` is "exit" with `code`, "signal" with the signal's number as `code`, or the limit that it hit ("time",
    "cpu", "memory", "output"), with `code` None. A process that asks for more address space than `memory` gets a
    MemoryError and may exit by itself; one that may not fork or write gets an OSError. `memory` is the largest
    resident memory seen, 0 for a program that ended before it was looked at.
    """

    ending: Ending
    code: int | None
    stdout: str
    stderr: str
    wall: float
    cpu: float
    memory: int

    @property
    def ok(self) -> bool:
        return self.ending == "exit" and self.code == 0
