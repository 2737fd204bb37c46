"""Paired bootstrap confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A mean difference and its 95% interval."""

    difference: float
    low: float
    high: float


def paired_bootstrap(before: Sequence[float], after: Sequence[float], resamples: int, seed: int) -> Interval:
    """Return the mean of after - before, with the 2.5th and 97.5th percentile of its bootstrap distribution.

    before, after: one value per item, in the same order; at least one.
    """
    differences = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(len(differences), size=(resamples, len(differences)))
    low, high = np.percentile(differences[picks].mean(axis=1), [2.5, 97.5])
    return Interval(float(differences.mean()), float(low), float(high))
