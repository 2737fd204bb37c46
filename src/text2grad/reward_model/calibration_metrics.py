"""Ranking and calibration metrics of probabilities against gold labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def precision_recall(scores: Array, gold: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Return (precision, recall, thresholds), each (distinct scores,), from the highest score to the lowest.

    scores, gold: (items,). Items with equal scores are above or below a threshold together.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(gold[order])
    last_of_ties = np.flatnonzero(np.diff(ranked, append=-np.inf))
    true_positives = hits[last_of_ties]
    precision = true_positives / (last_of_ties + 1)
    recall = true_positives / max(int(gold.sum()), 1)
    return precision.astype(np.float64), recall.astype(np.float64), ranked[last_of_ties]


def average_precision(scores: Array, gold: NDArray[np.bool_]) -> float:
    """Return the sum over thresholds of (gain in recall) x precision; the base rate for constant scores."""
    if not gold.any():
        return 0.0
    precision, recall, _ = precision_recall(scores, gold)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def precision_at_recall(scores: Array, gold: NDArray[np.bool_], min_recall: float) -> float:
    """Return the best precision among the thresholds with at least this recall."""
    precision, recall, _ = precision_recall(scores, gold)
    reached = precision[recall >= min_recall]
    return float(reached.max()) if len(reached) else 0.0


def reliability(probabilities: Array, gold: NDArray[np.bool_], num_bins: int = 10) -> list[tuple[float, float, int]]:
    """Return (mean probability, gold frequency, count) of each non-empty bin of equal width."""
    bin_indices = np.minimum((probabilities * num_bins).astype(int), num_bins - 1)
    bins = []
    for index in range(num_bins):
        inside = bin_indices == index
        if inside.any():
            bins.append((float(probabilities[inside].mean()), float(gold[inside].mean()), int(inside.sum())))
    return bins


def expected_calibration_error(probabilities: Array, gold: NDArray[np.bool_], num_bins: int = 10) -> float:
    """Return the mean difference between predicted and observed frequency, weighted by the count of each bin."""
    if not len(probabilities):
        return 0.0
    bins = reliability(probabilities, gold, num_bins)
    return float(sum(abs(predicted - observed) * count for predicted, observed, count in bins) / len(probabilities))
