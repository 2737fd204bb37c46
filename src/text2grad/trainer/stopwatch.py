"""Where a step's time goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds since it was made, and of the parts that were timed; a part ends when its results are on the CPU."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.parts[f"seconds_{name}"] = time.perf_counter() - began

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began
