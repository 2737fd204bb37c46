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

from text2grad.align.stance.stance_features import extract_features
from text2grad.align.stance.stance_net import score_clauses
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


def predict_stances_of_answer(
    clauses: Sequence[tuple[str, str, str]], contexts: Sequence[Sequence[str]]
) -> list[StanceProbabilities]:
    """Return the probabilities of clauses by both models. clauses: the arguments of `extract_features`.

    contexts: how each clause relates to the answer (`stance_context`).
    """
    if not clauses:
        return []
    network = score_clauses([clause for clause, _, _ in clauses], contexts).tolist()
    scores = (zip(_score(*clause), own, strict=True) for clause, own in zip(clauses, network, strict=True))
    return [_probabilities([_SHARPNESS * (first + second) for first, second in pairs]) for pairs in scores]


@lru_cache(maxsize=256)  # the same parts of a comment are asked about while it is split and once it is
def _score(clause: str, before: str, after: str) -> tuple[float, ...]:
    weights = _load_weights()
    found = [weights["bias"]]
    found += [weight for name in extract_features(clause, before, after) if (weight := weights.get(name))]
    return tuple([sum(column) / _SCALE for column in zip(*found, strict=True)])


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
