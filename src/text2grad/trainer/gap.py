"""The gap between the policy that sampled and the policy that is trained.

They hold the same weights, but not always the same numbers: a cache, another precision, other kernels or another engine
stand between them. What was sampled is then slightly off-policy, and each token's loss is weighted by how much more
probable it is to the trainer than it was to the sampler, up to a cap that keeps the variance in bounds.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def truncated_weights(trained: Tensor, sampled: Tensor, cap: float = math.inf) -> Tensor:
    """w_t = min(exp(trained_t - sampled_t), cap): truncated importance weights, without a gradient.

    trained, sampled: (batch, tokens), log-probabilities of the sampled tokens to the trainer and to the sampler.
    Returns (batch, tokens). Where both agree to the bit, the weight is 1 to the bit.
    """
    return torch.exp(trained.detach() - sampled).clamp(max=cap)


def gap_metrics(trained: Tensor, sampled: Tensor | None, mask: Tensor, cap: float | None) -> dict[str, float]:
    """How far the sampler was from the trainer, over valid tokens, in nats; NaN where nobody knows or none is valid.

    trained, sampled, mask: (batch, tokens). cap: None where nothing is corrected; the weights are then not truncated.
    `rollout_weight` has expectation 1 where nothing is truncated, however wide the gap.
    """
    names = ("rollout_gap", "rollout_gap_max", "rollout_weight")
    if sampled is None or not mask.any():
        return dict.fromkeys(names, math.nan)
    valid = mask.bool()
    gap = (trained - sampled)[valid].abs()
    weights = truncated_weights(trained, sampled, math.inf if cap is None else cap)[valid]
    return dict(zip(names, (gap.mean().item(), gap.max().item(), weights.mean().item()), strict=True))
