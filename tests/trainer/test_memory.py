"""Free heap pages go back to the system."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from text2grad.trainer.memory import release_free_memory

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
