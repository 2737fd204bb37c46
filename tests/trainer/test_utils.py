from __future__ import annotations

import ctypes
import time
from pathlib import Path

import pytest

from text2grad.trainer.utils import StepTimer, learning_rate_factor, release_free_memory

BLOCK = 64 * 1024  # below the size from which the C library maps blocks of their own


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library cannot trim its heap")
def test_a_heap_full_of_holes_shrinks() -> None:
    blocks = [b"x" * BLOCK for _ in range(4000)]
    blocks = blocks[::100]  # what stays keeps the heap from shrinking by itself
    before = resident_pages()
    release_free_memory()
    assert before - resident_pages() > 10_000  # of about 62 000 pages
    assert len(blocks) == 40


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]),
        ("cosine", [0.5, 1.0, 1.0, 0.853553, 0.5, 0.146447]),
    ],
)
def test_warm_up_then_schedule(kind: str, expected: list[float]) -> None:
    factors = [learning_rate_factor(step, total=6, warmup=2, kind=kind) for step in range(1, 7)]  # type: ignore[arg-type]
    assert factors == pytest.approx(expected, abs=1e-6)


def test_stages_are_timed_within_the_step() -> None:
    timer = StepTimer()
    with timer.stage("rollout"):
        time.sleep(0.02)
    time.sleep(0.01)
    metrics = timer.metrics()
    assert 0.02 <= metrics["time/rollout"] < metrics["time/step"]
    assert metrics["time/step"] >= 0.03
