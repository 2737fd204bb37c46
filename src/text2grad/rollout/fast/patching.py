"""Modules that compute by another function for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

Forward = Callable[[Tensor], Tensor]


@contextmanager
def patched_forward(forwards: Sequence[tuple[Any, Forward]]) -> Iterator[None]:
    """Each module computes by the function beside it, and afterwards as its class does."""
    for module, forward in forwards:
        module.forward = forward
    try:
        yield
    finally:
        for module, _ in forwards:
            del module.forward
