"""Bootstrap confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEW = 8  # items, with fewer of which an interval says little: two equal differences have one of width zero
_MAX_PICKS = 1 << 22  # numbers that are held at once


class Interval(NamedTuple):
    """A mean difference and its 95% interval."""

    difference: float
    low: float
    high: float


class Estimate(NamedTuple):
    """A mean and its 95% interval."""

    mean: float
    low: float
    high: float


def bootstrap(values: Sequence[float], resamples: int, seed: int) -> Estimate:
    """Return the mean, with the 2.5th and 97.5th percentile of its bootstrap distribution. values: at least one."""
    items = np.asarray(values, dtype=np.float64)
    low, high = np.percentile(_resampled_means(items, resamples, seed), [2.5, 97.5])
    return Estimate(float(items.mean()), float(low), float(high))


def paired_bootstrap(before: Sequence[float], after: Sequence[float], resamples: int, seed: int) -> Interval:
    """Return the mean of after - before, with the 2.5th and 97.5th percentile of its bootstrap distribution.

    before, after: one value per item, in the same order; at least one.
    """
    differences = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    low, high = np.percentile(_resampled_means(differences, resamples, seed), [2.5, 97.5])
    return Interval(float(differences.mean()), float(low), float(high))


def _resampled_means(items: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return the mean of each resample, (resamples,); they are drawn in parts, so that memory stays bounded."""
    rng, rows = np.random.default_rng(seed), max(1, _MAX_PICKS // len(items))
    sizes = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    return np.concatenate([items[rng.integers(len(items), size=(size, len(items)))].mean(axis=1) for size in sizes])
