"""The probability that a clause praises, blames, or takes no stance: a linear model over its features.

Trained by `benchmarks/train_stance.py`; its probabilities are calibrated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from math import exp
from typing import NamedTuple

from text2grad.align.stance_features import extract_features

_SCALE = 100  # the weights are stored as hundredths


class StanceProbabilities(NamedTuple):
    """Sum to 1. unsure: that the clause takes no stance, or hedges."""

    good: float
    poor: float
    unsure: float


def predict_stance(clause: str, before: str = "", after: str = "", is_missing: bool = False) -> StanceProbabilities:
    """Return the probabilities of a clause's stances; for the arguments see `extract_features`."""
    return score_features(extract_features(clause, before, after, is_missing))


def score_features(features: Iterable[str]) -> StanceProbabilities:
    """Return softmax of the sum of the features' weights; unknown features weigh nothing."""
    weights = _load_weights()
    good, poor, unsure = weights["bias"]
    for feature in features:
        weight = weights.get(feature)
        if weight is not None:
            good += weight[0]
            poor += weight[1]
            unsure += weight[2]
    highest = max(good, poor, unsure)
    odds = exp((good - highest) / _SCALE), exp((poor - highest) / _SCALE), exp((unsure - highest) / _SCALE)
    total = sum(odds)
    return StanceProbabilities(odds[0] / total, odds[1] / total, odds[2] / total)


@lru_cache(maxsize=1)
def _load_weights() -> dict[str, tuple[int, int, int]]:
    """Return the weights of good, poor and unsure by feature."""
    text = files("text2grad.align").joinpath("weights/stance.json").read_text("utf-8")
    return {feature: (good, poor, unsure) for feature, (good, poor, unsure) in json.loads(text).items()}
