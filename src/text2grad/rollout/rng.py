"""Random streams keyed by purpose, so that a resumed, resharded or rebatched run draws the same numbers."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The purpose of the numbers; two purposes never share a stream."""

    SAMPLING = 1
    DATA_ORDER = 2
    SHUFFLED_CREDIT = 3
    EVALUATION = 4


def stream(purpose: Stream, seed: int, *key: int) -> np.random.Generator:
    """Return the generator of a purpose and key, for instance (step, sample)."""
    return np.random.default_rng([int(purpose), seed, *key])
