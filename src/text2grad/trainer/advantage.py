"""From token rewards to advantages: pure functions over (batch, tokens) tensors, and two small running states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Normalization = Literal["scale", "whiten", "none"]


def kl_per_token(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """log pi(y_t) - log pi_ref(y_t): the single-sample estimate of the KL divergence at each token. Equal shapes."""
    return logprobs - reference_logprobs


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation over token rewards.

    rewards, values, mask: (batch, tokens); mask is 1 on valid completion tokens, which are contiguous from the left.
    A_t = sum_l (gamma * lam)^l * (r_{t+l} + gamma * V_{t+l+1} - V_{t+l}); V after the last valid token is 0.
    Returns (advantages, returns), both (batch, tokens), 0 where mask is 0; returns = advantages + values.
    """
    rewards, values = rewards * mask, values * mask
    advantages = torch.zeros_like(rewards)
    carried = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        next_value = values[:, t + 1] if t + 1 < rewards.shape[1] else torch.zeros_like(carried)
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        carried = (delta + gamma * lam * carried) * mask[:, t]
        advantages[:, t] = carried
    return advantages, advantages + values


def normalize(advantages: Tensor, mask: Tensor, how: Normalization) -> Tensor:
    """Bring advantages to unit size over the valid tokens of the whole step.

    advantages, mask: (batch, tokens). `scale` divides by the standard deviation and leaves the mean: subtracting it
    would make unmentioned tokens positive wherever blame is sparse, which rewards length. `whiten` subtracts it too.
    Where all are nearly the same, `scale` divides by a tenth of their size instead, so that none becomes huge.
    Returns (batch, tokens), 0 where mask is 0.
    """
    if how == "none" or mask.sum() < 2:
        return advantages * mask
    valid = advantages[mask.bool()]
    spread = valid.std(correction=0)
    if how == "whiten":
        return (advantages - valid.mean()) / (spread + 1e-6) * mask
    return advantages / (torch.maximum(spread, 0.1 * valid.square().mean().sqrt()) + 1e-6) * mask


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float:
    """1 - Var(returns - values) / Var(returns) over valid tokens: 1 for a perfect value head, 0 for a useless one.

    NaN where the returns do not vary.
    """
    valid = mask.bool()
    if valid.sum() < 2 or (spread := returns[valid].var(correction=0)) == 0:
        return float("nan")
    return float(1 - (returns - values)[valid].var(correction=0) / spread)


@dataclass
class RunningScale:
    """Running standard deviation of sequence totals. It scales rewards and never shifts them.

    Totals are the same in every credit mode, so all modes are scaled alike.
    """

    count: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def update(self, totals: Tensor) -> None:
        """totals: (valid samples,), the sum of token rewards of each."""
        for total in totals.tolist():
            self.count += 1
            delta = total - self.mean
            self.mean += delta / self.count
            self.squares += delta * (total - self.mean)

    @property
    def std(self) -> float:
        """1 until two totals that differ have been seen."""
        deviation = (self.squares / self.count) ** 0.5 if self.count > 1 else 0.0
        return deviation if deviation > 1e-6 else 1.0


@dataclass
class KLControl:
    """The weight of the KL penalty. With a target it is nudged so that the KL of a sample approaches the target.

    beta <- beta * (1 + clip(kl / target - 1, -0.2, 0.2) * samples / horizon)
    """

    beta: float
    target: float | None = None
    horizon: float = 10_000

    def update(self, kl: float, samples: int) -> None:
        """kl: mean over samples of the KL summed over a sample's tokens."""
        if self.target is not None and math.isfinite(kl):
            error = min(max(kl / self.target - 1, -0.2), 0.2)
            self.beta *= max(1 + error * samples / self.horizon, 0.1)  # many samples must not turn its sign
