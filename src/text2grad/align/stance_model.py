"""The probability that a clause praises, blames, or takes no stance, and that it says that something is missing.

A linear model over the clause's features: softmax for the stances, a sigmoid for what is missing.

Trained by `benchmarks/train_stance.py`; its probabilities are calibrated.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from math import exp
from typing import NamedTuple

from text2grad.align.stance_features import extract_features

_SCALE = 100  # the weights are stored as hundredths
_LOWEST = -50 * _SCALE  # exp of its opposite is finite


class StanceProbabilities(NamedTuple):
    """good, poor and unsure sum to 1. unsure: that the clause takes no stance, or hedges.

    missing: that it says that something is missing.
    """

    good: float
    poor: float
    unsure: float
    missing: float


def predict_stance(clause: str, before: str = "", after: str = "") -> StanceProbabilities:
    """Return the probabilities of a clause's stances; for the arguments see `extract_features`."""
    weights = _load_weights()
    good, poor, unsure, missing = weights["bias"]
    for feature in extract_features(clause, before, after):
        weight = weights.get(feature)
        if weight is not None:
            good += weight[0]
            poor += weight[1]
            unsure += weight[2]
            missing += weight[3]
    highest = max(good, poor, unsure)
    odds = exp((good - highest) / _SCALE), exp((poor - highest) / _SCALE), exp((unsure - highest) / _SCALE)
    total = sum(odds)
    absence = 1.0 / (1.0 + exp(-max(missing, _LOWEST) / _SCALE))
    return StanceProbabilities(odds[0] / total, odds[1] / total, odds[2] / total, absence)


@lru_cache(maxsize=1)
def _load_weights() -> dict[str, list[int]]:
    """Return the weights of good, poor, unsure and missing by feature."""
    text = files("text2grad.align").joinpath("weights/stance.json").read_text("utf-8")
    weights: dict[str, list[int]] = json.loads(text)
    return weights
