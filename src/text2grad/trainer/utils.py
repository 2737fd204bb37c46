"""Learning-rate schedule, timing and heap memory of a step."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal


def learning_rate_factor(step: int, total: int, warmup: int, kind: Literal["constant", "linear", "cosine"]) -> float:
    """Return the factor of the learning rate at step 1 to total: linear warmup, then constant or decaying to 0.

    It depends on the step alone, so that resuming needs no scheduler state.
    """
    if step <= warmup:
        return step / warmup
    progress = (step - warmup - 1) / max(1, total - warmup)
    match kind:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - progress
        case "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * progress))


class StepTimer:
    """Seconds of a step and of its stages, as metrics. A stage ends when its results are on the CPU."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; its metric is `time/NAME`."""
        start = time.perf_counter()
        yield
        self.stages[f"time/{name}"] = time.perf_counter() - start

    def metrics(self) -> dict[str, float]:
        """Return `time/step`, the seconds since the timer was made, and the time of each stage."""
        return {"time/step": time.perf_counter() - self._start, **self.stages}


def release_free_memory() -> None:
    """Return the heap's free pages to the system, where the C library can (glibc).

    Every step allocates tensors of other sizes, so the heap of a long run on the CPU would grow by fragmentation.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
