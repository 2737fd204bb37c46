"""The probability that a clause praises, blames, or takes no stance, and that it says that something is missing.

A linear model over the clause's features, softmax for the stances and a sigmoid for what is missing, tells where a
comment is split. The stance of a clause is the mean of its scores and those of a small network (`stance_net`), which
knows the meaning of words and how they relate to the answer.

Trained by `benchmarks/train_stance.py`; the probabilities of both together are calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp
from typing import NamedTuple

from text2grad.align.stance_features import extract_features
from text2grad.align.stance_net import score_clause
from text2grad.align.weight_files import load_weights

_SCALE = 100  # the weights are stored as hundredths
_LOWEST = -50.0  # exp of its opposite is finite
_SHARPNESS = 0.5  # of the sum of the two models' scores


class StanceProbabilities(NamedTuple):
    """good, poor and unsure sum to 1. unsure: that the clause takes no stance, or hedges.

    missing: that it says that something is missing.
    """

    good: float
    poor: float
    unsure: float
    missing: float


def predict_stance(clause: str, before: str = "", after: str = "") -> StanceProbabilities:
    """Return the linear model's probabilities of a clause's stances; for the arguments see `extract_features`."""
    return _probabilities(_score(clause, before, after))


def predict_stance_of_answer(clause: str, before: str, after: str, context: Sequence[str]) -> StanceProbabilities:
    """Return the probabilities by both models. context: how the clause relates to the answer (`stance_context`)."""
    pairs = zip(_score(clause, before, after), score_clause(clause, context).tolist(), strict=True)
    return _probabilities([_SHARPNESS * (linear + network) for linear, network in pairs])


def _score(clause: str, before: str, after: str) -> list[float]:
    weights = _load_weights()
    good, poor, unsure, missing = weights["bias"]
    for feature in extract_features(clause, before, after):
        weight = weights.get(feature)
        if weight is not None:
            good += weight[0]
            poor += weight[1]
            unsure += weight[2]
            missing += weight[3]
    return [good / _SCALE, poor / _SCALE, unsure / _SCALE, missing / _SCALE]


def _probabilities(scores: Sequence[float]) -> StanceProbabilities:
    highest = max(scores[:3])
    good, poor, unsure = (exp(score - highest) for score in scores[:3])
    total = good + poor + unsure
    missing = 1.0 / (1.0 + exp(-max(scores[3], _LOWEST)))
    return StanceProbabilities(good / total, poor / total, unsure / total, missing)


@lru_cache(maxsize=1)
def _load_weights() -> dict[str, list[int]]:
    """Return the weights of good, poor, unsure and missing by feature."""
    weights: dict[str, list[int]] = load_weights("text2grad.align", "stance")
    return weights
