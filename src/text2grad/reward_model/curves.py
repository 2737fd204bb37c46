"""Ranking and calibration of probabilities against gold labels: pure functions over arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def precision_recall(scores: Array, gold: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """(precision, recall, threshold) at every distinct score, the highest first; each (distinct scores,).

    scores, gold: (items,). What has the same score is taken or left together.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(gold[order])
    last_of_ties = np.flatnonzero(np.diff(ranked, append=-np.inf))
    found = hits[last_of_ties]
    precision = found / (last_of_ties + 1)
    recall = found / max(int(gold.sum()), 1)
    return precision.astype(np.float64), recall.astype(np.float64), ranked[last_of_ties]


def average_precision(scores: Array, gold: NDArray[np.bool_]) -> float:
    """Sum over thresholds of (recall gained) x (precision there); the base rate for scores that say nothing."""
    if not gold.any():
        return 0.0
    precision, recall, _ = precision_recall(scores, gold)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def precision_at_recall(scores: Array, gold: NDArray[np.bool_], least: float) -> float:
    """The best precision among the thresholds that find at least this share of the gold items."""
    precision, recall, _ = precision_recall(scores, gold)
    reached = precision[recall >= least]
    return float(reached.max()) if len(reached) else 0.0


def reliability(probabilities: Array, gold: NDArray[np.bool_], bins: int = 10) -> list[tuple[float, float, int]]:
    """(mean probability, share of gold, items) of each bin of equal width that holds anything."""
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    found = []
    for place in range(bins):
        inside = places == place
        if inside.any():
            found.append((float(probabilities[inside].mean()), float(gold[inside].mean()), int(inside.sum())))
    return found


def expected_calibration_error(probabilities: Array, gold: NDArray[np.bool_], bins: int = 10) -> float:
    """Mean distance between what was predicted and what came, weighted by the items of each bin."""
    if not len(probabilities):
        return 0.0
    distances = [abs(said - came) * items for said, came, items in reliability(probabilities, gold, bins)]
    return float(sum(distances) / len(probabilities))
