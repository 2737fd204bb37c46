"""Handing memory back between steps."""

from __future__ import annotations

import ctypes


def release_free_memory() -> None:
    """Give the heap's free pages back to the system, where the C library can (glibc).

    Every step allocates tensors of other sizes, so the heap of a long run on the CPU grows by its holes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
